import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

let host: ConsoleHost
const envFile = join(mkdtempSync(join(tmpdir(), 'otpd-console-')), 'web.env')
/** What the receiver answers, and what it was sent. */
let answer = { status: 200, body: 'thanks' }
const received: string[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    received.push(await request.text())
    return new Response(answer.body, { status: answer.status })
  },
})
const url = `http://127.0.0.1:${receiver.port}/hooks`

beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1' } })
})
afterAll(async () => {
  await host.stop()
  await receiver.stop(true)
})

test('an empty account is led to its first application, and then to its first webhook', async () => {
  const terminal = await host.open()
  terminal.press('5')
  await terminal.seen('there is none: 2 opens Apps')
  terminal.press('n')
  await terminal.seen('n is unavailable: there is no application yet')
  await terminal.close()

  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', envFile])
  const second = await host.open()
  second.press('5')
  await second.seen('otpd webhook create --app APP --url URL')
  await second.close()
})

describe('an endpoint', () => {
  test('is made in a form that says what is wrong with a field', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.seen('No webhooks yet')
    terminal.press('n')
    await terminal.seen('New webhook')
    await terminal.seen(/application +web/)
    terminal.press('enter')
    terminal.press('ctrl-u')
    await terminal.gone('https://')
    terminal.press(url, 'enter', ',nothing', 'enter', 'enter')
    await terminal.seen('no event is called nothing')
    terminal.press('ctrl-u')
    await terminal.gone('nothing')
    terminal.press('*', 'enter', 'enter')
    await terminal.seen('webhook created')
    await terminal.seen('● enabled')
    await terminal.seen('No deliveries yet')
    await terminal.close()
  })

  test('is sent a test, and its answer is told', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.seen('● enabled')
    terminal.press('T')
    await terminal.seen('Sends one signed otp.verified')
    terminal.press('enter')
    await terminal.seen('200 delivered')
    expect(received.at(-1)).toContain('otp.verified')
    answer = { status: 503, body: 'no healthy upstream' }
    terminal.press('T')
    await terminal.seen('Sends one signed otp.verified')
    terminal.press('enter')
    await terminal.seen('503, not delivered')
    await terminal.close()
  })

  test('shows its deliveries, each attempt of one with what was answered, and sends it again', async () => {
    answer = { status: 503, body: 'no healthy upstream' }
    await host.otpd(['otp', 'send', '+14155550100', '--env-file', envFile])

    const terminal = await host.open()
    terminal.press('5')
    await terminal.seen(/otp\.sent +◌ pending +1 +503/)
    await terminal.seen('▲ failing')
    terminal.press('enter')
    await terminal.seen('R resend')
    terminal.press('enter')
    await terminal.seen('no healthy upstream')
    await terminal.seen('Only 200 to 299 says that an event was taken.')
    answer = { status: 200, body: 'thanks' }
    terminal.press('R')
    await terminal.seen('with the same webhook-id')
    terminal.press('enter')
    await terminal.seen('● delivered')
    await terminal.seen('thanks')
    terminal.press('esc')
    await terminal.seen(/otp\.sent +● delivered/)
    terminal.press('f')
    await terminal.seen('None failed')
    terminal.press('f')
    await terminal.seen(/otp\.sent +● delivered/)
    terminal.press('esc')
    await terminal.seen('T test')
    await terminal.close()
  })

  test('is edited, disabled and enabled', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.seen('T test')
    terminal.press('e')
    await terminal.seen('Edit webhook')
    await terminal.seen(url)
    terminal.press('enter', 'enter', 'for the shop', 'enter')
    await terminal.seen('webhook saved')
    expect(await host.otpd(['webhook', 'list', '--json'])).toContain('for the shop')
    terminal.press('x')
    await terminal.seen('Disable webhook')
    terminal.press('enter')
    await terminal.seen('○ disabled')
    await terminal.seen('x enable')
    terminal.press('x', 'enter')
    await terminal.seen('● enabled')
    await terminal.close()
  })

  test('one at a time is shown where there is little room', async () => {
    const terminal = await host.open([], { columns: 60, rows: 16 })
    terminal.press('5')
    await terminal.seen('● enabled')
    expect(terminal.text()).not.toContain('Deliveries to')
    terminal.press('enter')
    await terminal.seen('Deliveries to')
    terminal.press('esc')
    await terminal.gone('Deliveries to')
    await terminal.close()
  })

  test('cannot be changed under --read-only', async () => {
    const terminal = await host.open(['--read-only'])
    terminal.press('5')
    await terminal.seen('● enabled')
    for (const key of ['n', 'e', 'T', 'x', 'D']) {
      terminal.press(key)
      await terminal.seen(`${key} is unavailable: not in a console`)
    }
    await terminal.close()
  })

  test('is deleted once its host was typed', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.seen('● enabled')
    terminal.press('D')
    await terminal.seen('Delete webhook')
    terminal.press('enter')
    await terminal.seen(`type 127.0.0.1:${receiver.port} first`)
    terminal.press(`127.0.0.1:${receiver.port}`, 'enter')
    await terminal.seen('No webhooks yet')
    await terminal.close()
  })
})
