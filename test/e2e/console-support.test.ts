import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAppsScreen } from '../helpers/console-apps.ts'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import type { Size } from '../helpers/screen.ts'

// First things of a support person and of a new user, in a real terminal.

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost
let requestId: string
const directory = mkdtempSync(join(tmpdir(), 'otpd-console-'))
const envFile = (name: string) => join(directory, `${name}.env`)
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' } })
  await host.otpd(['project', 'create', 'shop'])
  for (const [name, environment] of [
    ['web', 'test'],
    ['desk', 'live'],
  ] as const)
    await host.otpd([
      'app',
      'create',
      name,
      '--project',
      'shop',
      '--env',
      environment,
      '--env-file',
      envFile(name),
    ])
  const send = (phone: string, name: string) =>
    host.json<{ requestId: string }>(['otp', 'send', phone, '--env-file', envFile(name)])
  await send('+14155550100', 'desk')
  requestId = (await send('+447700900123', 'web')).requestId
  await host.server.otpd(['otp', 'verify', requestId, 'x00000', '--env-file', envFile('web')])
})
afterAll(() => host.stop())

/** Opens the console, and waits until it reads keys: before that, the terminal itself echoes them. */
async function open(size?: Size) {
  const terminal = await host.open([], size)
  await terminal.waitUntil(() => !terminal.isRestored(), 'keys to be read')
  return terminal
}

const { openProject } = createAppsScreen(() => host)

describe('"+44… got no code" is answered in three keys', () => {
  test.each(['+447700900123', '447700900123', '+44 7700 900123', '7700 900123'])('%s', async (typed) => {
    const terminal = await open()
    terminal.press('/', typed, 'enter')
    await terminal.waitForText('── What happened ─')
    await terminal.waitForText('The code is in the inbox, and was sent to no phone.')
    await terminal.waitForText('→ code sent')
    expect(terminal.text()).toContain('[3 OTP]')
    expect(terminal.text()).not.toContain('+1415***0100')
    terminal.press('esc')
    await terminal.waitForText('+1415***0100')
    await terminal.close()
  })

  test('also when the number has none', async () => {
    const terminal = await open()
    terminal.press('/', '+4915112345678')
    await terminal.waitForText('Press enter to search beyond these.')
    terminal.press('enter')
    await terminal.waitForText('No code was ever sent to +4915112345678')
    await terminal.close()
  })
})

test('a token for support lists, unlocks and erases a number, and sees no secrets', async () => {
  const token = await host.json<{ token: string }>(['token', 'create', 'desk', '--scope', 'support'])
  const env = { OTPD_TOKEN: token.token }
  await host.json(['otp', 'send', '+447700900124', '--env-file', envFile('web')])
  const listed = await host.server.otpd(['otp', 'list', '--phone', '+447700900124'], { env })
  expect([listed.exitCode, listed.stdout]).toEqual([0, expect.stringContaining('+447700900124')])
  for (const digits of ['0124', '07700 900124'])
    expect((await host.server.otpd(['user', 'unlock', digits], { env })).stdout).toContain(
      '+447700900124 was not locked',
    )
  // Creating needs the scope write; listing the names before that, the scope read.
  expect((await host.server.otpd(['project', 'create', 'shop-2'], { env })).stderr).toContain(
    'the scope write',
  )
  const terminal = await host.open([], undefined, env)
  await terminal.waitUntil(() => !terminal.isRestored(), 'keys to be read')
  terminal.press('/', '+447700900124', 'enter')
  await terminal.waitForText('── What happened ─')
  terminal.press('u', 'enter')
  await terminal.waitForText('+4477***0124 was not locked')
  terminal.press('X', 'erase', 'enter')
  await terminal.waitForText('+4477***0124 is erased')
  await terminal.waitForText('No code was ever sent to +447700900124')
  terminal.press('6')
  await terminal.waitForText('This API token lacks the scope write.')
  await terminal.close()
})

test('a pending request is shown live: what happens to it appears by itself', async () => {
  const terminal = await open()
  terminal.press(':', requestId, 'enter')
  await terminal.waitForText('── What happened ─')
  await terminal.waitForText('◌ live')
  await host.server.otpd(['otp', 'verify', requestId, '000000', '--env-file', envFile('web')])
  await terminal.waitForText('▲ wrong code 1/5')
  await terminal.close()
})

test('a code is sent and verified on the page of an application that the console has created', async () => {
  const terminal = await openProject()
  terminal.press('n')
  await fillForm(terminal, { name: 'fresh', environment: 'test' })
  await submitForm(terminal)
  await terminal.waitForText('Application fresh (test) created')
  terminal.press('esc')
  await terminal.waitForText('Leave without saving?')
  terminal.press('enter')
  await terminal.waitForText('▸ fresh')
  terminal.press('enter')
  await terminal.waitForText('[Credentials]')
  terminal.press('S')
  await terminal.waitForText('Send a code as fresh')
  await fillForm(terminal, { phone: '+14155550177' })
  await submitForm(terminal)
  await terminal.waitForText('[Test]')
  await terminal.waitForText(/code +\d{6}/)
  terminal.press('V')
  await terminal.waitForText('Verify a code')
  await submitForm(terminal)
  await terminal.waitForText('● verified')
  await terminal.waitForText('after it was sent.')
  await terminal.close()
})

test('a live application asks before it sends', async () => {
  const terminal = await openProject()
  terminal.press('/', 'desk', 'enter', 'enter')
  await terminal.waitForText('[Credentials]')
  terminal.press('S')
  await fillForm(terminal, { file: envFile('desk') })
  await submitForm(terminal)
  await terminal.waitForText('Send a code as desk')
  await terminal.waitForText(/to\s+the\s+inbox/)
  await fillForm(terminal, { phone: '+14155550178' })
  await submitForm(terminal)
  await terminal.waitForText('Send a real message?')
  terminal.press('esc')
  await terminal.waitForTextGone('Send a real message?')
  const sent = await host.json<{ phone: string }[]>(['otp', 'list'])
  expect(sent.map(({ phone }) => phone)).not.toContain('+14155550178')
  await terminal.close()
})

test('E shows only live, only test, and both again', async () => {
  const terminal = await open()
  terminal.press('3')
  await terminal.waitForText('+1415***0100')
  await terminal.waitForText('+4477***0123')
  terminal.press('E')
  await terminal.waitForTextGone('+4477***0123')
  expect(terminal.screen()[0]).toMatch(/ LIVE {2}\d\d:/)
  terminal.press('E')
  await terminal.waitForText('+4477***0123')
  await terminal.waitForTextGone('+1415***0100')
  terminal.press('E')
  await terminal.waitForText('+1415***0100')
  await terminal.close()
})

test.each([
  { columns: 60, rows: 16 },
  { columns: 80, rows: 24 },
  { columns: 200, rows: 60 },
])('tab walks through every screen at $columns x $rows, and the palette opens each by name', async (size) => {
  const terminal = await open(size)
  for (const title of ['Apps', 'OTP', 'Logs', 'Webhooks', 'Inbox', 'Users', 'Audit', 'Providers', 'Guard']) {
    terminal.press('tab')
    await terminal.waitForText(`── ${title} ─`)
    await terminal.waitForTextGone('Loading')
    expect(terminal.screen().every((line) => Bun.stringWidth(line) <= size.columns)).toBe(true)
  }
  terminal.press(':', 'profil')
  await terminal.waitForText('▸ Profile')
  terminal.press('enter')
  await terminal.waitForText('── Profile ─')
  await terminal.waitForText('ada@example.com')
  await terminal.close()
})

test('an API token is created, and shown once', async () => {
  const terminal = await open({ columns: 80, rows: 24 })
  terminal.press('-')
  await terminal.waitForText('n new token')
  terminal.press('n')
  await terminal.waitForText('New API token')
  terminal.press('deploy', 'enter', 'enter', 'ctrl-u', '2w', 'enter')
  await terminal.waitForText('expires: Expected a lifetime like 12h or 30d, or never.')
  terminal.press('ctrl-u', '2d', 'enter')
  await terminal.waitForText('API token deploy created')
  terminal.press('v')
  await terminal.waitForText(/otpd_pat_[0-9a-z]{48}/)
  const [token = ''] = /otpd_pat_[0-9a-z]{48}/.exec(terminal.screen().join('\n')) ?? []
  const authorization = `Bearer ${token}`
  const response = await fetch(`${host.server.url}/v1/projects`, { headers: { authorization } })
  expect(response.status).toBe(200)
  const tokens = await host.json<Array<{ name: string; scopes: string[] }>>(['token', 'list'])
  expect(tokens).toContainEqual(expect.objectContaining({ name: 'deploy', scopes: ['read'] }))
  terminal.press('esc')
  await terminal.waitForText('You can revoke the token, and create another one.')
  terminal.press('enter')
  await terminal.waitForText('n new token')
  await host.otpd(['token', 'revoke', 'deploy', '--yes'])
  await terminal.close()
})

test('an API token is shown whole and revoked, after its name is typed', async () => {
  const token = (await host.otpd(['token', 'create', 'ci', '--scope', 'otp:read'])).trim()
  const preview = `${token.slice(0, 13)}****${token.slice(-4)}`
  const terminal = await open({ columns: 80, rows: 24 })
  terminal.press('-')
  await terminal.waitForText(preview)
  terminal.press('D')
  await terminal.waitForText('Programs that use ci are refused at once.')
  terminal.press('ci', 'enter')
  await terminal.waitForText('API token ci revoked')
  // The tests before this one have tokens of their own.
  const left = (await host.json<Array<{ name: string }>>(['token', 'list'])).map(({ name }) => name)
  expect(left).not.toContain('ci')
  await terminal.close()
})

test('from 120 columns on, the overview has charts with axes and panels side by side', async () => {
  const terminal = await open({ columns: 120, rows: 40 })
  await terminal.waitForText(/Sent by day .* Verified by day/)
  await terminal.waitForText(/Failed by day .* Conversion by day/)
  await terminal.waitForText(/── Applications ─.*── Countries ─.*── Providers ─/)
  await terminal.waitForText(/── Webhooks ─.*── Recent failures ─/)
  await terminal.waitForText(/web +\d+ +\d+%/)
  await terminal.close()
})
