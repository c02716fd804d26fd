import { afterAll, beforeAll, describe, setDefaultTimeout, test } from 'bun:test'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0' } })
})
afterAll(() => host.stop())

const failVerification = async (phone: string) => {
  const { requestId } = await host.json<{ requestId: string }>([
    'otp',
    'send',
    phone,
    '--env-file',
    'live.env',
  ])
  for (let attempt = 0; attempt < 5; attempt++)
    await host.server.otpd(['otp', 'verify', requestId, '000000', '--env-file', 'live.env'])
  return requestId
}

// The order of the tests matters: the account grows.
test('an empty account shows the first steps, and ticks each one off once it is done elsewhere', async () => {
  const screen = await host.open()
  await screen.waitForText('No codes yet')
  await screen.waitForText('○ otpd project create shop')
  await host.otpd(['project', 'create', 'shop'])
  screen.press('r')
  await screen.waitForText('✓ otpd project create shop')
  await screen.waitForText('○ otpd app create web')
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'live', '--env-file', 'live.env'])
  screen.press('r')
  await screen.waitForText('✓ otpd app create web')
  await screen.waitForText('LIVE')
  await host.otpd(['otp', 'send', '+14155550132', '--env-file', 'live.env'])
  screen.press('r')
  await screen.waitForTextGone('No codes yet')
  await screen.waitForText('No failures.')
  await screen.close()
})

describe('with codes', () => {
  let requestId: string
  beforeAll(async () => {
    requestId = await failVerification('+14155552671')
    await failVerification('+447911120012')
  })

  test('there are five counts, and bars with their largest day, today and total', async () => {
    const screen = await host.open()
    await screen.waitForText(/APPLICATIONS +OTP REQUESTS +VERIFIED +SUCCESS +ACTIVE USERS\n 1 +3 +0 +0% +0\n/)
    await screen.waitForText(/ sent +·{29}█ +3 +3 +3\n/)
    await screen.waitForText(/ failed +·{29}█ +2 +2 +2\n/)
    await screen.close()
  })

  test('t selects the next range', async () => {
    const screen = await host.open()
    await screen.waitForText('[30d]')
    screen.press('t')
    await screen.waitForText('[90d]')
    screen.press('t')
    await screen.waitForText('[7d]')
    await screen.waitForText(/ sent +·{6}█ +3/)
    await screen.close()
  })

  test('failures are listed newest first, phones masked, and enter opens the request', async () => {
    const screen = await host.open()
    await screen.waitForText(
      /▸ \d\d:\d\d:\d\d +\+4479\*\*\*0012 +failed: max attempts +web\n {2}\d.*\+1415\*\*\*2671/,
    )
    screen.press('m', 'j')
    await screen.waitForText(/▸ .*\+14155552671/)
    screen.press('enter')
    await screen.waitForText('[3 OTP]')
    await screen.waitForText(requestId)
    await screen.close()
  })

  test.each([
    [60, 16],
    [200, 60],
  ])('fits %i columns and %i rows', async (columns, rows) => {
    const screen = await host.open([], { columns, rows })
    await screen.waitForText(/SUCCESS +(ACTIVE )?USERS/)
    await screen.waitForText(/verified %|Conversion by day/)
    await screen.waitForText('failed: max attempts')
    await screen.close()
  })

  test('--ascii draws bars with ASCII characters', async () => {
    const screen = await host.open(['--ascii'])
    await screen.waitForText(/ sent +# +3 +3 +3\n/)
    await screen.close()
  })
})

test('a failing webhook is shown, and w opens it', async () => {
  const receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response(null, { status: 503 }),
  })
  const own = await startConsoleHost({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_SEND_PER_MINUTE: '0' } })
  await own.otpd(['project', 'create', 'shop'])
  await own.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'live', '--env-file', 'live.env'])
  const url = `http://127.0.0.1:${receiver.port}/hooks`
  await own.otpd(['webhook', 'create', '--app', 'web', '--url', url, '--events', 'otp.sent'])
  await own.otpd(['otp', 'send', '+14155550132', '--env-file', 'live.env'])
  const screen = await own.open([], { columns: 100, rows: 30 })
  await screen.waitForText(`▲ webhook of web is failing, first failure just now: ${url}`)
  screen.press('w')
  await screen.waitForText('[5 Webhooks]')
  await own.stop()
  await receiver.stop(true)
})
