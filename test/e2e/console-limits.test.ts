import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

// Starts a server and a terminal, which takes long on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost | undefined
afterEach(async () => {
  await host?.stop()
  host = undefined
})

/** Counts the calls with a login that the server has answered. */
const countCalls = ({ server }: ConsoleHost) =>
  server
    .log()
    .split('\n')
    .filter((line) => line.includes('"msg":"request"') && !/"route":"\/v1\/(health|auth)/.test(line)).length

test('a console makes at most a third of the calls that a developer has, on every screen', async () => {
  host = await startConsoleHost({ env: { OTPD_LOG_LEVEL: 'debug' } })
  const terminal = await host.open()
  const seconds = 5
  for (const screen of ['1', '2', '3', '4', '5', '6']) {
    terminal.press(screen)
    const before = countCalls(host)
    await Bun.sleep(seconds * 1000)
    const perMinute = ((countCalls(host) - before) * 60) / seconds
    process.stderr.write(`Console, screen ${screen}: ${perMinute} calls a minute\n`)
    expect(perMinute).toBeLessThanOrEqual(200)
  }
  await terminal.close()
})

test('a console says that calls are limited, keeps what it has, and goes on by itself', async () => {
  host = await startConsoleHost({ env: { OTPD_LOG_LEVEL: 'debug', OTPD_CONSOLE_PER_MINUTE: '25' } })
  const terminal = await host.open()
  await terminal.waitForText('The server limits calls per minute')
  const before = countCalls(host)
  await Bun.sleep(5_000)
  // Every poll waits for Retry-After instead of asking again every two seconds.
  expect(countCalls(host) - before).toBeLessThanOrEqual(6)
  await terminal.waitForTextGone('The server limits calls per minute')
  await terminal.close()
})
