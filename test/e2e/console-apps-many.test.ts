import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAppsScreen } from '../helpers/console-apps.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import type { OpenScreen } from '../helpers/screen.ts'

// Creates a thousand applications first.
setDefaultTimeout(300_000)

const planFile = join(mkdtempSync(join(tmpdir(), 'otpd-console-')), 'otpd.toml')
writeFileSync(planFile, '[plans.free]\nprojects = 200\napplications = 2000\n')

/** Wide characters, combining accents, and names of the maximum length. */
const oddNames = ['東京アプリケーション', 'cafe\u0301 re\u0301sume\u0301', 'x'.repeat(80), '漢'.repeat(80)]

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_CONFIG: planFile, OTPD_CONSOLE_PER_MINUTE: '0' } })
  const authorization = `Bearer ${(await host.otpd(['auth', 'token'])).trim()}`
  const post = async (path: string, body: object): Promise<string> => {
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(host.server.url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const { data }: { data: { id: string } } = JSON.parse(await response.text())
    return data.id
  }
  for (let at = 0; at < 50; at++) {
    const name = `${oddNames[at % oddNames.length]}`.slice(0, 70) + ` ${at}`
    const projectId = await post('/v1/projects', { name, description: 'Anmeldung für 東京 '.repeat(10) })
    const names = Array.from({ length: 20 }, (_, index) =>
      `${index} ${oddNames[index % oddNames.length]}`.slice(0, 80),
    )
    await Promise.all(
      [...names.slice(1), `app-${at}`].map((one, index) =>
        post('/v1/applications', {
          name: one,
          projectId,
          environment: index % 2 === 0 ? 'live' : 'test',
        }),
      ),
    )
  }
})
afterAll(() => host.stop())

const { openApps } = createAppsScreen(() => host)

/** Returns the screen column of the bar between the panes, for each row. */
const barColumns = (terminal: OpenScreen) =>
  terminal
    .screen()
    .filter((line) => line.includes('│'))
    .map((line) => Bun.stringWidth(line.slice(0, line.indexOf('│'))))

test('a thousand applications in fifty projects can be browsed, found and opened', async () => {
  const terminal = await openApps()
  await terminal.waitForText(/Projects +50 of 200/)
  await terminal.waitForText('1000 of 2000 in all')
  expect(new Set(barColumns(terminal)).size).toBe(1)
  terminal.press('G')
  await terminal.waitForText('51 of 51')
  expect(new Set(barColumns(terminal)).size).toBe(1)
  terminal.press('g', 'j', 'enter', 'G')
  await terminal.waitForText('20 of 20')
  terminal.press('esc')
  await terminal.waitForText('2 of 51')

  // The project is found by the name of one of its applications.
  terminal.press('/', 'app-17', 'enter')
  await terminal.waitForTextGone('of 51')
  await terminal.waitForText(/▸ .* 17 +20 │/)
  terminal.press('enter')
  await terminal.waitForText('Apps › ')
  terminal.press('/', 'app-17', 'enter', 'enter')
  await terminal.waitForText('[Credentials]')
  await terminal.close()
})

test('names of every width keep the columns in line, at every size', async () => {
  const terminal = await openApps()
  await terminal.waitForText('1000 of 2000 in all')
  terminal.press('enter')
  await terminal.waitForText('Apps › ')
  for (const size of [
    { columns: 200, rows: 60 },
    { columns: 97, rows: 31 },
    { columns: 80, rows: 24 },
  ]) {
    terminal.resize(size)
    await terminal.waitUntil(() => terminal.screen().length === size.rows, 'the size')
    // Rows have the same width up to the environment, whatever their names are.
    await terminal.waitUntil(() => {
      const columns = terminal
        .screen()
        .map((line) => /^(.*│.*?)(?:LIVE|test) {2}[●○]/u.exec(line)?.[1])
        .flatMap((before) => (before === undefined ? [] : [Bun.stringWidth(before)]))
      return columns.length > 8 && new Set(columns).size === 1 && new Set(barColumns(terminal)).size === 1
    }, 'straight columns')
    expect(Math.max(...terminal.screen().map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(
      size.columns,
    )
  }
  for (const name of ['漢', 'cafe\u0301', 'xxx', '東京']) {
    terminal.press('/')
    await terminal.waitForText(/^│?.*\/ .*█/m)
    terminal.press('ctrl-u', name, 'enter')
    await terminal.waitForTextGone('█')
    await terminal.waitForText(/▸ \d+ .*[●○] active/)
    terminal.press('enter')
    await terminal.waitForText('[Credentials]')
    const [, , , heading = ''] = terminal.screen()
    expect(heading).toMatch(/(LIVE|test) {2}● active$/)
    expect(Bun.stringWidth(heading)).toBe(79)
    expect(heading.includes('…')).toBe(['漢', 'xxx'].includes(name))
    terminal.press('esc')
    await terminal.waitForText('in all')
  }
  await terminal.close()
})
