import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost()
})
afterAll(() => host.stop())

describe('the terminal is whole again', () => {
  test.each([
    ['q', 'q', 0],
    ['Ctrl-C', 'ctrl-c', 130],
  ])('after %s', async (_, key, exitCode) => {
    const terminal = await host.open()
    await terminal.until(() => !terminal.isRestored(), 'keys to be read one by one')
    expect(terminal.isAlternate()).toBe(true)
    terminal.press(key)
    expect(await terminal.exited).toBe(exitCode)
    await terminal.until(() => !terminal.isAlternate(), 'the main screen')
    expect(terminal.hasCursor()).toBe(true)
    expect(terminal.isRestored()).toBe(true)
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('after %s', async (signal, exitCode) => {
    const terminal = await host.open()
    await terminal.until(() => !terminal.isRestored(), 'keys to be read one by one')
    terminal.child.kill(signal)
    expect(await terminal.exited).toBe(exitCode)
    await terminal.until(() => !terminal.isAlternate(), 'the main screen')
    expect(terminal.hasCursor()).toBe(true)
    expect(terminal.isRestored()).toBe(true)
  })
})

test('every screen opens by its number', async () => {
  const terminal = await host.open()
  for (const [key, title] of ['Overview', 'Apps', 'OTP', 'Logs', 'Webhooks', 'Inbox'].entries()) {
    terminal.press(String(key + 1))
    await terminal.seen(`[${key + 1} ${title}]`)
    await terminal.seen(`── ${title} ─`)
  }
  await terminal.close()
})
