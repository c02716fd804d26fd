import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

let host: ConsoleHost
let credentials: Record<string, string>
const envFile = join(mkdtempSync(join(tmpdir(), 'otpd-console-')), 'web.env')

beforeAll(async () => {
  host = await startConsoleHost()
  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', envFile])
  await host.otpd([
    'app',
    'create',
    'desk',
    '--project',
    'shop',
    '--env',
    'live',
    '--env-file',
    `${envFile}.desk`,
  ])
  const lines = readFileSync(envFile, 'utf8').matchAll(/^(OTPD_\w+)=(.*)$/gm)
  credentials = Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]))
})
afterAll(() => host.stop())

/** The key in the footer. In parentheses it is unavailable, as long as the applications are not loaded. */
const canSend = /(?<!\()S send/

const send = (phone: string) =>
  host.json<{ requestId: string; code: string }>(['otp', 'send', phone, '--env-file', envFile])

test('an empty account shows how to send a code', async () => {
  const terminal = await host.open()
  terminal.press('3')
  await terminal.waitForText('No codes yet')
  await terminal.waitForText('otpd otp send PHONE --env-file FILE')
  await terminal.close()
})

describe('with requests', () => {
  let first: { requestId: string; code: string }
  beforeAll(async () => {
    first = await send('+14155550100')
    const second = await send('+447700900123')
    await host.otpd(['otp', 'verify', second.requestId, second.code, '--env-file', envFile])
  })

  test('they are listed newest first, with phones masked until m', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText('+4477***0123')
    expect(terminal.text()).toMatch(
      /\+4477\*\*\*0123 +● verified +1\/5 +web[^]*\+1415\*\*\*0100 +◌ pending +0\/5/,
    )
    expect(terminal.text()).not.toContain('+14155550100')
    terminal.press('m')
    await terminal.waitForText('+14155550100')
    await terminal.close()
  })

  test('s cycles through the statuses, and a offers the applications, found by part of their name', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText('app: all   status: all')
    for (const status of ['pending', 'verified']) {
      terminal.press('s')
      await terminal.waitForText(`status: ${status}`)
    }
    await terminal.waitForTextGone('◌ pending')
    for (const status of ['failed', 'expired', 'canceled', 'all']) {
      terminal.press('s')
      await terminal.waitForText(`status: ${status}`)
    }
    await terminal.waitForText('◌ pending')
    terminal.press('a')
    await terminal.waitForText('Filter by application')
    await terminal.waitForText('▸ All applications')
    terminal.press('dsk')
    await terminal.waitForText('▸ desk')
    terminal.press('enter')
    await terminal.waitForText('app: desk')
    await terminal.waitForText('No matching codes')
    await terminal.close()
  })

  test('/ searches the unmasked phone number', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText('+4477***0123')
    terminal.press('/', '555010')
    await terminal.waitForTextGone('+4477***0123')
    expect(terminal.text()).toContain('+1415***0100')
    terminal.press('esc')
    await terminal.waitForText('+4477***0123')
    await terminal.close()
  })

  test('enter opens a request, with its code masked until v', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText('+1415***0100')
    terminal.press('G')
    await terminal.waitForText(/▸.*0100/)
    terminal.press('enter')
    await terminal.waitForText('0 of 5')
    await terminal.waitForText('code sent')
    await terminal.waitForText('••••••••••••')
    expect(terminal.text()).not.toContain(first.code)
    terminal.press('v')
    await terminal.waitForText(first.code)
    terminal.press('esc')
    await terminal.waitForTextGone(first.code)
    await terminal.waitForText('+4477***0123')
    await terminal.close()
  })

  test('y copies the id', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText('+1415***0100')
    terminal.press('G')
    await terminal.waitForText(/▸.*0100/)
    terminal.press('y')
    await terminal.waitForText('copied request id')
    expect(terminal.written()).toContain(`]52;c;${Buffer.from(first.requestId).toString('base64')}`)
    await terminal.close()
  })

  test('without credentials of the application S asks for their file, and refuses that of another one', async () => {
    const terminal = await host.open()
    terminal.press('3')
    await terminal.waitForText(canSend)
    terminal.press('S')
    await terminal.waitForText('Send a code as')
    terminal.press('web', 'enter')
    await terminal.waitForText('Credentials of web')
    await fillForm(terminal, { file: `${envFile}.desk` })
    await submitForm(terminal)
    await terminal.waitForText('OTPD_CLIENT_ID=ph_test_client_')
    await fillForm(terminal, { file: envFile })
    await submitForm(terminal)
    await terminal.waitForText('Send a code as web')
    await terminal.close()
  })
})

describe('as an application', () => {
  test('a code is sent; a wrong one is refused, the right one verified, and the keys become unavailable', async () => {
    const terminal = await host.open([], undefined, credentials)
    terminal.press('3')
    await terminal.waitForText(canSend)
    terminal.press('S')
    await terminal.waitForText('Send a code as')
    terminal.press('web', 'enter')
    await fillForm(terminal, { phone: '+4155' })
    await submitForm(terminal)
    await terminal.waitForText(/phone: Expected a number with/)
    await fillForm(terminal, { phone: '+14155550177' })
    await submitForm(terminal)
    await terminal.waitForText('code sent')
    await terminal.waitForText('0 of 5')
    const [message] = await host.json<{ code: string }[]>(['inbox', '--limit', '1'])
    const code = message?.code ?? ''
    terminal.press('V')
    await fillForm(terminal, { code: code === '000000' ? '111111' : '000000' })
    await submitForm(terminal)
    await terminal.waitForText(/wrong|invalid|incorrect|does not match/i)
    await fillForm(terminal, { code })
    await submitForm(terminal)
    await terminal.waitForText('● verified')
    await terminal.waitForText('(V verify)')
    terminal.press('V')
    await terminal.waitForText('V is unavailable: the request is verified')
    await terminal.close()
  })

  test('a code is canceled only after `cancel` is typed', async () => {
    await send('+14155550188')
    const terminal = await host.open([], undefined, credentials)
    terminal.press('3')
    await terminal.waitForText('+1415***0188')
    terminal.press('g', 'enter')
    await terminal.waitForText('0 of 5')
    terminal.press('D')
    await terminal.waitForText('Cancel a code')
    terminal.press('enter')
    await terminal.waitForText('type cancel first')
    terminal.press('cancel', 'enter')
    await terminal.waitForText('○ canceled')
    await terminal.close()
  })

  test('--read-only disables these keys', async () => {
    const terminal = await host.open(['--read-only'], undefined, credentials)
    terminal.press('3')
    await terminal.waitForText('(S send)')
    terminal.press('S')
    await terminal.waitForText('S is unavailable: the console was started with --read-only')
    await terminal.close()
  })
})

test.each([
  { columns: 60, rows: 16 },
  { columns: 200, rows: 60 },
])('fits a terminal of $columns x $rows', async (size) => {
  const terminal = await host.open([], size)
  terminal.press('3')
  await terminal.waitForText('▸')
  expect(terminal.screen().every((line) => Bun.stringWidth(line) <= size.columns)).toBe(true)
  expect(terminal.text()).toMatch(/\? keys +q quit$/)
  terminal.press('g', 'enter')
  await terminal.waitForText('of 5')
  await terminal.close()
})
