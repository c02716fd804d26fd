import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createScriptedServer } from '../cli/cli-fixture.ts'
import { binaryPath, runBinary, startServer } from '../helpers/binary.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { openScreen, type OpenScreen } from '../helpers/screen.ts'

// The console in a real terminal: how it opens, how it ends, and what surrounds every screen.

// A terminal, a server and a dozen commands on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost()
})
afterAll(() => host.stop())

const emptyHome = mkdtempSync(join(tmpdir(), 'otpd-console-'))
afterAll(() => rmSync(emptyHome, { recursive: true }))

const small = { columns: 80, rows: 24 }
const titles = ['Overview', 'Apps', 'OTP', 'Logs', 'Webhooks', 'Inbox']
const path = process.env.PATH ?? ''

/** Keys are read one by one: from here on the terminal has something to be restored from. */
const untilReadingKeys = (screen: OpenScreen) =>
  screen.waitUntil(() => !screen.isRestored(), 'keys to be read')

async function expectWhole(screen: OpenScreen) {
  await screen.waitUntil(() => !screen.isAlternate(), 'the main screen')
  expect(screen.hasCursor()).toBe(true)
  expect(screen.isRestored()).toBe(true)
  expect(screen.written().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(
    screen.written().lastIndexOf('\u001b[?2004h'),
  )
}

describe('the terminal is whole again', () => {
  test.each([
    ['q', 'q', 0],
    ['Ctrl-C', 'ctrl-c', 130],
  ])('after %s', async (_, key, exitCode) => {
    const screen = await host.open()
    await untilReadingKeys(screen)
    expect(screen.isAlternate()).toBe(true)
    screen.press(key)
    expect(await screen.exited).toBe(exitCode)
    await expectWhole(screen)
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('after %s', async (signal, exitCode) => {
    const screen = await host.open()
    await untilReadingKeys(screen)
    screen.child.kill(signal)
    expect(await screen.exited).toBe(exitCode)
    await expectWhole(screen)
  })

  test('after a fault of our own, which is told then', async () => {
    // No server of this version leaves the counts out.
    const server = createScriptedServer(({ path: requestPath }) =>
      Response.json({
        data: requestPath.includes('timeseries')
          ? []
          : requestPath.startsWith('/v1/analytics')
            ? {}
            : { id: 'x' },
      }),
    )
    const env = { PATH: path, HOME: emptyHome, OTPD_TOKEN: 'token', OTPD_SERVER: server.url }
    const screen = openScreen([binaryPath, 'console'], env, small)
    expect(await screen.exited).toBe(1)
    await expectWhole(screen)
    await screen.waitForText('this is a bug in otpd')
    await screen.close()
    await server.stop()
  })

  test.skipIf(Bun.which('bash') === null)('while Ctrl-Z has stopped it, and fg brings it back', async () => {
    const env = { PATH: path, HOME: host.server.home, OTPD_SERVER: host.server.url, PS1: 'shell> ' }
    const screen = openScreen(['bash', '--norc', '-i'], env, small)
    await screen.waitForText('shell>')
    screen.press(`${binaryPath} console`, 'enter')
    await screen.waitForText('[1 Overview]')
    screen.press('4')
    await screen.waitForText('[4 Logs]')
    screen.press('ctrl-z')
    await screen.waitUntil(() => !screen.isAlternate(), 'the main screen')
    await screen.waitForText(/Stopped[\s\S]*shell>/)
    screen.press('echo still $((40 + 2))', 'enter')
    await screen.waitForText('still 42')
    screen.press('fg', 'enter')
    await screen.waitForText('[4 Logs]')
    screen.press('5')
    await screen.waitForText('[5 Webhooks]')
    screen.press('q')
    await screen.waitUntil(() => !screen.isAlternate(), 'the main screen')
    await screen.close()
  })
})

describe('it opens', () => {
  test('with otpd alone on a terminal, and otpd alone in a pipe is the help', async () => {
    const env = { PATH: path, HOME: host.server.home, OTPD_SERVER: host.server.url }
    const screen = openScreen([binaryPath], env, small)
    await screen.waitForText('[1 Overview]')
    await screen.close()
    expect((await host.server.otpd([])).stdout).toContain('Usage: otpd')
  })

  test('otpd alone tells who is not logged in of all the commands', async () => {
    const env = { PATH: path, HOME: emptyHome, OTPD_SERVER: host.server.url }
    const screen = openScreen([binaryPath], env, small)
    expect(await screen.exited).toBe(4)
    await screen.waitForText('Log in with: otpd login')
    await screen.waitForText('All commands: otpd --help')
    await screen.close()
  })

  test('never in a pipe', async () => {
    const { exitCode, stderr } = await host.server.otpd(['console'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('The console needs a terminal.')
  })

  test.each([
    ['nobody is logged in', 4, 'Not logged in', 'otpd login'],
    ['the token is refused', 4, 'The token came from OTPD_TOKEN.', 'Give it a new one'],
    ['there is no server', 3, 'Cannot reach', 'otpd serve'],
  ])('not where %s, which is told where it was typed', async (reason, exitCode, expectedText, next) => {
    const refused: Record<string, string> = reason.startsWith('the token') ? { OTPD_TOKEN: 'x' } : {}
    const otherEnv: Record<string, string> = reason.startsWith('there')
      ? { OTPD_TOKEN: 'x', OTPD_SERVER: 'http://127.0.0.1:1' }
      : {}
    const env = { PATH: path, HOME: emptyHome, OTPD_SERVER: host.server.url, ...refused, ...otherEnv }
    const screen = openScreen([binaryPath, 'console'], env, small)
    expect(await screen.exited).toBe(exitCode)
    await screen.waitForText(expectedText)
    await screen.waitForText(next)
    expect(screen.written()).not.toContain('\u001b[?1049h')
    await screen.close()
  })
})

describe('around every screen', () => {
  test('are its name and number, and help says what does the same without it', async () => {
    const screen = await host.open()
    for (const [index, title] of titles.entries()) {
      screen.press(String(index + 1))
      await screen.waitForText(`[${index + 1} ${title}]`)
      await screen.waitForText(`── ${title} ─`)
      screen.press('?')
      await screen.waitForText('── Keys ─')
      screen.press('pagedown', 'pagedown')
      await screen.waitForText('The same without the console')
      screen.press('esc')
      await screen.waitForText(`── ${title} ─`)
    }
    await screen.close()
  })

  test('commands named in the help are commands', async () => {
    const screen = await host.open([], { columns: 120, rows: 60 })
    for (const [index] of titles.entries()) {
      screen.press(String(index + 1), '?')
      await screen.waitForText('The same without the console')
      const lines = screen.text().split('The same without the console')[1] ?? ''
      const commands = lines.split('\n').flatMap((line) => /^ {3}otpd ([a-z -]+)/.exec(line)?.[1] ?? [])
      expect(commands.length).toBeGreaterThan(0)
      for (const command of commands) {
        const commandWords = command
          .split(' ')
          .filter((word) => /^[a-z]/.test(word))
          .slice(0, 2)
        expect((await runBinary(emptyHome, [...commandWords, '--help'])).exitCode).toBe(0)
      }
      screen.press('esc')
      await screen.waitForTextGone('The same without the console')
    }
    await screen.close()
  })

  test.each([
    [60, 16],
    [80, 24],
    [200, 60],
  ])('everything stays inside %i columns and %i rows', async (columns, rows) => {
    const screen = await host.open([], { columns, rows })
    for (const [index, title] of titles.entries()) {
      screen.press(String(index + 1))
      await screen.waitForText(`── ${title} ─`)
      await screen.waitForText('q quit')
      const lines = screen.screen()
      expect(lines[0]).toMatch(/^ otpd {2}.*\d\d:\d\d:\d\d$/)
      expect(lines.at(-1)).toMatch(/\? keys {2}q quit$/)
    }
    await screen.close()
  })

  test('it follows the size of the terminal, and comes back from one that is too small', async () => {
    const screen = await host.open()
    screen.resize({ columns: 200, rows: 60 })
    await screen.waitUntil(
      () => screen.screen()[59]?.includes('q quit') === true,
      'the footer in the last row',
    )
    screen.resize({ columns: 59, rows: 24 })
    await screen.waitForText('terminal too small')
    await screen.waitForText('It is 59x24')
    screen.resize({ columns: 60, rows: 15 })
    await screen.waitForText('It is 60x15')
    screen.resize({ columns: 60, rows: 16 })
    await screen.waitForTextGone('terminal too small')
    await screen.waitUntil(
      () => screen.screen()[15]?.includes('q quit') === true,
      'the footer in the last row',
    )
    screen.press('q')
    expect(await screen.exited).toBe(0)
    await expectWhole(screen)
  })

  test('what is typed outlives a terminal that is too small, which takes no keys', async () => {
    const screen = await host.open()
    screen.press('4', '/', 'shop')
    await screen.waitForText('/ shop█')
    screen.resize({ columns: 40, rows: 10 })
    await screen.waitForText('terminal too small')
    screen.resize({ columns: 60, rows: 16 })
    await screen.waitForTextGone('terminal too small')
    screen.press('s')
    await screen.waitForText('/ shops█')
    screen.resize({ columns: 40, rows: 10 })
    await screen.waitForText('terminal too small')
    screen.press('q')
    expect(await screen.exited).toBe(0)
  })

  test('no colour is left under NO_COLOR, and nothing but ASCII with --ascii or without UTF-8', async () => {
    const plain = await host.open([], small, { NO_COLOR: '1' })
    plain.press('?')
    await plain.waitForText('── Keys ─')
    // oxlint-disable-next-line no-control-regex -- colours begin with one
    expect(plain.written().match(/\u001b\[[0-9;]*m/g)).toBeNull()
    for (const ascii of [await host.open(['--ascii']), await host.open([], small, { LC_ALL: 'C' })])
      for (const [index, title] of titles.entries()) {
        ascii.press(String(index + 1))
        await ascii.waitForText(`-- ${title} -`)
        expect(ascii.text()).toMatch(/^[\u0020-\u007e\n]*$/)
      }
  })

  test('--read-only is said, and what would change something says why it does not', async () => {
    const screen = await host.open(['--read-only'])
    await screen.waitForText('read-only')
    screen.press('5')
    await screen.waitForText('(n new)')
    screen.press('n')
    await screen.waitForText('n is unavailable: not in a console that was started with --read-only')
    await screen.close()
  })

  test('what is pasted is text where text is asked for, and never keys', async () => {
    const paste = (text: string) => `\u001b[200~${text}\u001b[201~`
    const screen = await host.open()
    await untilReadingKeys(screen)
    screen.press(paste('q2'), '4')
    await screen.waitForText('[4 Logs]')
    screen.press('/', paste('q2\nq'))
    await screen.waitForText('/ q2q█')
    await screen.close()
  })

  test('p stops what moves, and m shows phones', async () => {
    const screen = await host.open()
    screen.press('p', 'm')
    await screen.waitForText('paused')
    await screen.waitForText('p go on')
    await screen.waitForText('m mask')
    screen.press('p', 'm')
    await screen.waitForTextGone('paused')
    await screen.waitForText('m phones')
    await screen.close()
  })
})

test('a lost server is a state, and comes back by itself', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-console-'))
  const own = await startConsoleHost({ home })
  const screen = await own.open()
  await screen.waitForText('● operational')
  await own.server.stop()
  await screen.waitForText('✗ server lost')
  screen.press('4')
  await screen.waitForText('trying again')
  screen.press('1')
  // The same address and the same accounts.
  const { dataDir, url } = own.server
  const restartedServer = await startServer({ home, dataDir, env: { OTPD_LISTEN: new URL(url).host } })
  await screen.waitForText('● operational')
  screen.press('q')
  expect(await screen.exited).toBe(0)
  await restartedServer.stop()
  await own.stop()
  rmSync(home, { recursive: true })
})
