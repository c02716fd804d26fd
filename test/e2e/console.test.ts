import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createScriptedServer } from '../cli/cli-fixture.ts'
import { binaryPath, runBinary, startServer } from '../helpers/binary.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { openScreen, type OpenScreen } from '../helpers/screen.ts'
import { version } from '../../cli/version.ts'

// The console in a real terminal: how it opens, how it ends, and what surrounds every screen.

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
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

/** Waits for raw mode: from then on there is something to restore in the terminal. */
const untilReadingKeys = (screen: OpenScreen) =>
  screen.waitUntil(() => !screen.isRestored(), 'keys to be read')

async function expectRestored(screen: OpenScreen) {
  await screen.waitUntil(() => !screen.isAlternate(), 'the main screen')
  expect(screen.hasCursor()).toBe(true)
  expect(screen.isRestored()).toBe(true)
  expect(screen.written().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(
    screen.written().lastIndexOf('\u001b[?2004h'),
  )
}

describe('the terminal is restored', () => {
  test.each([
    ['q', 'q', 0],
    ['Ctrl-C', 'ctrl-c', 130],
  ])('after %s', async (_, key, exitCode) => {
    const screen = await host.open()
    await untilReadingKeys(screen)
    expect(screen.isAlternate()).toBe(true)
    screen.press(key)
    expect(await screen.exited).toBe(exitCode)
    await expectRestored(screen)
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
    await expectRestored(screen)
  })

  test('after an unexpected error, which is printed then', async () => {
    // A server of this version, and a response without the counts, which none sends.
    const server = createScriptedServer(({ path: requestPath }) =>
      Response.json({
        info: { version },
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
    await expectRestored(screen)
    await screen.waitForText('this is a bug in otpd')
    await screen.close()
    await server.stop()
  })

  test.skipIf(Bun.which('bash') === null)('while Ctrl-Z has suspended it, and fg resumes it', async () => {
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
  test('with otpd alone in a terminal; in a pipe, otpd alone prints the help', async () => {
    const env = { PATH: path, HOME: host.server.home, OTPD_SERVER: host.server.url }
    const screen = openScreen([binaryPath], env, small)
    await screen.waitForText('[1 Overview]')
    await screen.close()
    expect((await host.server.otpd([])).stdout).toContain('Usage: otpd')
  })

  test('not without a login, when otpd alone also names otpd --help', async () => {
    const env = { PATH: path, HOME: emptyHome, OTPD_SERVER: host.server.url }
    const screen = openScreen([binaryPath], env, small)
    expect(await screen.exited).toBe(4)
    await screen.waitForText('Log in with: otpd login')
    await screen.waitForText('See all commands with: otpd --help')
    await screen.close()
  })

  test('never in a pipe', async () => {
    const { exitCode, stderr } = await host.server.otpd(['console'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('The console needs a terminal.')
  })

  test.each([
    ['there is no login', 4, 'Not logged in', 'otpd login'],
    ['the token is refused', 4, 'The token came from OTPD_TOKEN.', 'Set a new OTPD_TOKEN, or unset it'],
    ['there is no server', 3, 'Cannot reach', 'otpd serve'],
  ])('not when %s, which is printed in the shell', async (reason, exitCode, expectedText, next) => {
    const refused: Record<string, string> = reason.startsWith('the token') ? { OTPD_TOKEN: 'x' } : {}
    const otherEnv: Record<string, string> =
      reason === 'there is no server' ? { OTPD_TOKEN: 'x', OTPD_SERVER: 'http://127.0.0.1:1' } : {}
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
  test('the title and digit are shown, and the help lists equivalent commands', async () => {
    const screen = await host.open()
    for (const [index, title] of titles.entries()) {
      screen.press(String(index + 1))
      await screen.waitForText(`[${index + 1} ${title}]`)
      await screen.waitForText(`── ${title} ─`)
      screen.press('?')
      await screen.waitForText('── Keys ─')
      screen.press('pagedown', 'pagedown')
      await screen.waitForText('Equivalent commands')
      screen.press('esc')
      await screen.waitForText(`── ${title} ─`)
    }
    await screen.close()
  })

  test('commands named in the help are commands', async () => {
    const screen = await host.open([], { columns: 120, rows: 60 })
    for (const [index] of titles.entries()) {
      screen.press(String(index + 1), '?')
      await screen.waitForText('Equivalent commands')
      const lines = screen.text().split('Equivalent commands')[1] ?? ''
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
      await screen.waitForTextGone('Equivalent commands')
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

  test('the frame follows the size of the terminal, and comes back after one that is too small', async () => {
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
    await expectRestored(screen)
  })

  test('typed text survives a terminal that is too small, which takes no keys', async () => {
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

  test('NO_COLOR removes every colour; --ascii and a locale without UTF-8 leave only ASCII', async () => {
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

  test('--read-only is shown, and keys that would change something say why they do not', async () => {
    const screen = await host.open(['--read-only'])
    await screen.waitForText('read-only')
    screen.press('5')
    await screen.waitForText('(n new)')
    screen.press('n')
    await screen.waitForText('n is unavailable: the console was started with --read-only')
    await screen.close()
  })

  test('pasted text is typed into a text field, and never acts as keys', async () => {
    const paste = (text: string) => `\u001b[200~${text}\u001b[201~`
    const screen = await host.open()
    await untilReadingKeys(screen)
    screen.press(paste('q2'), '4')
    await screen.waitForText('[4 Logs]')
    screen.press('/', paste('q2\nq'))
    await screen.waitForText('/ q2q█')
    await screen.close()
  })

  test('p pauses updates, and m shows phones', async () => {
    const screen = await host.open()
    screen.press('p', 'm')
    await screen.waitForText('paused')
    await screen.waitForText('p resume')
    await screen.waitForText('m mask')
    screen.press('p', 'm')
    await screen.waitForTextGone('paused')
    await screen.waitForText('m phones')
    await screen.close()
  })
})

test('an unreachable server is shown, and the console reconnects by itself', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-console-'))
  const own = await startConsoleHost({ home })
  const screen = await own.open()
  await screen.waitForText('● operational')
  await own.server.stop()
  await screen.waitForText('✗ server unreachable')
  screen.press('4')
  await screen.waitForText('retrying')
  screen.press('1')
  // At the same address, with the same accounts.
  const { dataDir, url } = own.server
  const restartedServer = await startServer({ home, dataDir, env: { OTPD_LISTEN: new URL(url).host } })
  await screen.waitForText('● operational')
  screen.press('q')
  expect(await screen.exited).toBe(0)
  await restartedServer.stop()
  await own.stop()
  rmSync(home, { recursive: true })
})
