import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { lastCopiedText } from '../helpers/screen.ts'

let host: ConsoleHost
const envFile = join(mkdtempSync(join(tmpdir(), 'otpd-console-')), 'web.env')
/** Response of the receiver, and the bodies that it received. */
let response = { status: 200, body: 'thanks' }
const received: string[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    received.push(await request.text())
    return new Response(response.body, { status: response.status })
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

test('an empty account shows how to create an application, and then a webhook', async () => {
  const terminal = await host.open()
  terminal.press('5')
  await terminal.waitForText('Create an application first: 2 opens Apps')
  terminal.press('n')
  await terminal.waitForText('n is unavailable: there is no application yet')
  await terminal.close()

  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', envFile])
  const second = await host.open()
  second.press('5')
  await second.waitForText('otpd webhook create --app APP --url URL')
  await second.close()
})

describe('an endpoint', () => {
  test('is created with a form that shows the error of a field', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.waitForText('No webhooks yet')
    terminal.press('n')
    await terminal.waitForText('New webhook')
    await terminal.waitForText(/application +web/)
    await fillForm(terminal, { url, events: 'otp.verified,nothing' })
    await submitForm(terminal)
    await terminal.waitForText('unknown event type: nothing')
    await fillForm(terminal, { events: '*' })
    await submitForm(terminal)
    await terminal.waitForText('webhook created')
    await terminal.waitForText('● enabled')
    await terminal.waitForText('No deliveries yet')
    await terminal.close()
  })

  test('receives a test event, and its response is shown', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.waitForText('● enabled')
    terminal.press('T')
    await terminal.waitForText('Sends a signed otp.verified')
    terminal.press('enter')
    await terminal.waitForText('200 delivered')
    expect(received.at(-1)).toContain('otp.verified')
    response = { status: 503, body: 'no healthy upstream' }
    terminal.press('T')
    await terminal.waitForText('Sends a signed otp.verified')
    terminal.press('enter')
    await terminal.waitForText('503, not delivered')
    await terminal.close()
  })

  test('shows its deliveries with the response to each attempt, and redelivers one', async () => {
    response = { status: 503, body: 'no healthy upstream' }
    await host.otpd(['otp', 'send', '+14155550100', '--env-file', envFile])

    const terminal = await host.open()
    terminal.press('5')
    await terminal.waitForText(/otp\.sent +◌ pending +1 +503/)
    await terminal.waitForText('▲ failing')
    terminal.press('enter')
    await terminal.waitForText('R redeliver')
    terminal.press('enter')
    await terminal.waitForText('no healthy upstream')
    await terminal.waitForText('Only 200 to 299 counts as delivered.')
    terminal.press('t')
    await terminal.waitForText(`POST ${url}`)
    await terminal.waitForText(/webhook-signature: v1,/)
    terminal.press('pagedown')
    await terminal.waitForText('"phone": "+1415***0100"')
    terminal.press('y')
    await terminal.waitForText('copied body')
    expect(lastCopiedText(terminal.written())).toBe(received.at(-1) ?? '')
    terminal.press('esc')
    await terminal.waitForText('no healthy upstream')
    response = { status: 200, body: 'thanks' }
    terminal.press('R')
    await terminal.waitForText('with the same webhook-id')
    terminal.press('enter')
    await terminal.waitForText('● delivered')
    await terminal.waitForText('thanks')
    terminal.press('esc')
    await terminal.waitForText(/otp\.sent +● delivered/)
    terminal.press('f')
    await terminal.waitForText('No failed deliveries')
    terminal.press('f')
    await terminal.waitForText(/otp\.sent +● delivered/)
    terminal.press('esc')
    await terminal.waitForText('T test')
    await terminal.close()
  })

  test('is edited, disabled and enabled', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.waitForText('T test')
    terminal.press('e')
    await terminal.waitForText('Edit webhook')
    await terminal.waitForText(url)
    await fillForm(terminal, { description: 'for the shop' })
    await submitForm(terminal)
    await terminal.waitForText('webhook saved')
    expect(await host.otpd(['webhook', 'list', '--json'])).toContain('for the shop')
    terminal.press('x')
    await terminal.waitForText('Disable webhook')
    terminal.press('enter')
    await terminal.waitForText('○ disabled')
    await terminal.waitForText('x enable')
    terminal.press('x', 'enter')
    await terminal.waitForText('● enabled')
    await terminal.close()
  })

  test('shows endpoints or deliveries in a small terminal', async () => {
    const terminal = await host.open([], { columns: 60, rows: 16 })
    terminal.press('5')
    await terminal.waitForText('● enabled')
    expect(terminal.text()).not.toContain('Deliveries to')
    terminal.press('enter')
    await terminal.waitForText('Deliveries to')
    terminal.press('esc')
    await terminal.waitForTextGone('Deliveries to')
    await terminal.close()
  })

  test('cannot be changed under --read-only', async () => {
    const terminal = await host.open(['--read-only'])
    terminal.press('5')
    await terminal.waitForText('● enabled')
    for (const key of ['n', 'e', 'T', 'x', 'D']) {
      terminal.press(key)
      await terminal.waitForText(`${key} is unavailable: the console was started with --read-only`)
    }
    await terminal.close()
  })

  test('is deleted after its host is typed', async () => {
    const terminal = await host.open()
    terminal.press('5')
    await terminal.waitForText('● enabled')
    terminal.press('D')
    await terminal.waitForText('Delete webhook')
    terminal.press('enter')
    await terminal.waitForText(`type 127.0.0.1:${receiver.port} first`)
    terminal.press(`127.0.0.1:${receiver.port}`, 'enter')
    await terminal.waitForText('No webhooks yet')
    await terminal.close()
  })
})
