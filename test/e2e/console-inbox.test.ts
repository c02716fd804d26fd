import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { lastCopiedText } from '../helpers/screen.ts'

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0' } })
})
afterAll(() => host.stop())

type Item = { code: string; requestId: string }

const openInbox = async (size = { columns: 80, rows: 24 }) => {
  const screen = await host.open([], size)
  screen.press('6')
  await screen.waitForText('[6 Inbox]')
  return screen
}

// Must run first, before any code is sent.
test('an empty inbox says which messages appear in it, and shows a new one without a key press', async () => {
  const screen = await openInbox()
  await screen.waitForText('No messages in the last 24 hours.')
  await host.otpd(['project', 'create', 'shop'])
  await host.otpd([
    'app',
    'create',
    '東京アプリ',
    '--project',
    'shop',
    '--env',
    'live',
    '--env-file',
    'a.env',
  ])
  await host.otpd(['otp', 'send', '+14155550132', '--env-file', 'a.env'])
  await screen.waitForText(/▸ .*\+1415\*\*\*0132 +\d{6} +in (5 min|4 min \d+ s) +東京アプリ/)
  await screen.close()
})

test('y copies the code, the message is shown, and enter opens the request', async () => {
  await host.otpd(['otp', 'send', '+14155550133', '--env-file', 'a.env'])
  const [item] = await host.json<Item[]>(['inbox', '--limit', '1'])
  const screen = await openInbox()
  await screen.waitForText(/▸ .*0133/)
  await screen.waitForText(`${item?.code} is your 東京アプリ verification code.`)
  screen.press('y')
  await screen.waitForText('copied code')
  expect(lastCopiedText(screen.written())).toBe(item?.code ?? '')
  screen.press('enter')
  await screen.waitForText('[3 OTP]')
  await screen.waitForText(item?.requestId ?? '')
  await screen.close()
})

test('a used code is no longer shown', async () => {
  const [item] = await host.json<Item[]>(['inbox', '--limit', '1'])
  const screen = await openInbox({ columns: 60, rows: 16 })
  await screen.waitForText(item?.code ?? '')
  await host.otpd(['otp', 'verify', item?.requestId ?? '', item?.code ?? '', '--env-file', 'a.env'])
  await screen.waitForText(/▸ .*0133 +- +no longer valid/)
  await screen.close()
})
