import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { lastCopiedText } from '../helpers/screen.ts'

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost
const send = (phone: string, app = 'live') => host.otpd(['otp', 'send', phone, '--env-file', `${app}.env`])

beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0', OTPD_PHONE_SEND_BUDGET: 'enforce' } })
})
afterAll(() => host.stop())

const openLogs = async (size = { columns: 80, rows: 24 }) => {
  const screen = await host.open([], size)
  screen.press('4')
  await screen.waitForText('[4 Logs]')
  return screen
}

// Must run first, before any event.
test('an empty log says how to send a code, and shows new events without a key press', async () => {
  const screen = await openLogs()
  await screen.waitForText('No events yet. Send a code:')
  await host.otpd(['project', 'create', 'shop'])
  for (const env of ['live', 'test'])
    await host.otpd(['app', 'create', env, '--project', 'shop', '--env', env, '--env-file', `${env}.env`])
  await send('+14155550132')
  await screen.waitForText(/▸ \d\d:\d\d:\d\d +→ otp\.sent +\+1415\*\*\*0132 +live/)
  await screen.waitForText('● live  1/min')
  await screen.close()
})

describe('the list', () => {
  test('follows the newest entry until another is selected, and follows again after G', async () => {
    const screen = await openLogs({ columns: 80, rows: 16 })
    for (let index = 10; index < 22; index++) await send(`+141555501${index}`)
    await screen.waitForText(/▸ .*0121/)
    screen.press('k')
    await screen.waitForText(/▸ .*0120/)
    await send('+14155550122')
    await screen.waitForText('↓ 1 more, G to follow')
    await screen.waitForText(/▸ .*0120/)
    screen.press('G')
    await screen.waitForText(/▸ .*0122/)
    await send('+14155550123')
    await screen.waitForText(/▸ .*0123/)
    await screen.close()
  })

  test('shows the details of an entry, and copies its JSON or its id', async () => {
    await send('+14155550140')
    const screen = await openLogs()
    await screen.waitForText(/▸ .*0140/)
    screen.press('enter')
    await screen.waitForText('── Entry ─')
    await screen.waitForText(/ phone +\+1415\*\*\*0140\n/)
    screen.press('y')
    await screen.waitForText('copied entry as JSON')
    const entry: unknown = JSON.parse(lastCopiedText(screen.written()))
    expect(entry).toMatchObject({ type: 'otp.sent', phone: '+14155550140' })
    screen.press('esc')
    await screen.waitForTextGone('── Entry ─')
    screen.press('y')
    await screen.waitForText('copied id')
    expect(lastCopiedText(screen.written())).toMatch(/^otp_/)
    await screen.close()
  })

  test('is filtered by type, by application, and with a form', async () => {
    await send('+14155550150', 'test')
    await host.server.otpd(['otp', 'send', '+14155550151', '--env-file', 'live.env'])
    const screen = await openLogs()
    await screen.waitForText('app: all   type: all')
    await screen.waitForText(/▸ .*0151 +live/)
    screen.press('t')
    await screen.waitForText('type: failures')
    await screen.waitForText('No matching events yet.')
    screen.press('t', 't', 't', 't', 't')
    await screen.waitForText('type: all')
    await screen.waitForText(/▸ .*0151 +live/)
    screen.press('a')
    await screen.waitForText('Filter by application')
    screen.press('live', 'enter')
    await screen.waitForText('app: live')
    await screen.waitForTextGone('0150')
    screen.press('a')
    await screen.waitForText('▸ All applications')
    screen.press('enter')
    await screen.waitForText('0150')
    screen.press('f')
    await screen.waitForText('Filter the log')
    await fillForm(screen, { 'app name or id': 'nothing' })
    await submitForm(screen)
    await screen.waitForText('no such application')
    await fillForm(screen, { 'app name or id': 'test', 'phone ends in': '0150' })
    await submitForm(screen)
    await screen.waitForText('app: test   type: all   phone: 0150')
    await screen.waitForText(/▸ .*0150 +test/)
    await screen.waitForTextGone('0151')
    await screen.close()
  })

  test('shows only rows that contain the text typed after /', async () => {
    await send('+14155550160')
    await send('+447911120012')
    const screen = await openLogs()
    await screen.waitForText(/▸ .*0012/)
    screen.press('/', '0160')
    await screen.waitForText('/ 0160█')
    await screen.waitForTextGone('0012')
    screen.press('enter')
    await screen.waitForText(/▸ .*0160/)
    screen.press('esc')
    await screen.waitForText('0012')
    await screen.close()
  })

  test('says in words how often and until when sends are refused', async () => {
    for (let sent = 0; sent < 5; sent++) await send('+14155550165')
    await expect(send('+14155550165')).rejects.toThrow('Too many codes were sent')
    const screen = await openLogs({ columns: 160, rows: 24 })
    // Within minutes of midnight it is on the next day.
    await screen.waitForText(
      /▸ .*otp\.refused .* 1 send refused, next at (\d\d-\d\d \d\d:\d\d|\d\d:\d\d:\d\d) \(PHONE_SEND_BUDGET\)/,
    )
    await screen.close()
  })

  test('does not change while paused, and shows the missed events afterwards', async () => {
    await send('+14155550170')
    const screen = await openLogs()
    await screen.waitForText(/▸ .*0170/)
    screen.press('p')
    await screen.waitForText('paused, p resumes')
    await send('+14155550171')
    screen.press('m')
    await screen.waitForText(/▸ .*\+14155550170/)
    expect(screen.text()).not.toContain('+14155550171')
    screen.press('p')
    await screen.waitForText(/▸ .*\+14155550171/)
    await screen.close()
  })
})

test('the log shows where the connection was lost and restored, and every event in between', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-console-'))
  const own = await startConsoleHost({ home })
  await own.otpd(['project', 'create', 'shop'])
  await own.otpd(['app', 'create', 'live', '--project', 'shop', '--env', 'live', '--env-file', 'live.env'])
  await own.otpd(['otp', 'send', '+14155550180', '--env-file', 'live.env'])
  const screen = await own.open([], { columns: 80, rows: 24 })
  screen.press('4')
  await screen.waitForText('0180')
  await own.server.stop()
  await screen.waitForText(/── .*, retrying ──/)
  await screen.waitForText('connection lost')
  const { dataDir, url } = own.server
  const restartedServer = await startServer({ home, dataDir, env: { OTPD_LISTEN: new URL(url).host } })
  await own.otpd(['otp', 'send', '+14155550181', '--env-file', 'live.env'])
  await screen.waitForText(/── reconnected after .*, no events missed ──\s*\n.*0181/)
  await screen.waitForText('● live')
  await restartedServer.stop()
  await own.stop()
  rmSync(home, { recursive: true })
})
