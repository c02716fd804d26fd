import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, page } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

describe('otp verify', () => {
  test('tells how many attempts are left', async () => {
    const error = {
      code: 'INVALID_CODE',
      message: 'The code is wrong.',
      traceId: 'r',
      metadata: { attemptsRemaining: 4 },
    }
    talk.answer = () => Response.json({ error }, { status: 400 })
    const env = { OTPD_CLIENT_ID: 'c', OTPD_CLIENT_SECRET: 's', OTPD_API_KEY: 'k' }
    const ran = await talk.home.otpd(['otp', 'verify', 'otp_1', '000000'], { env })
    expect(ran.exitCode).toBe(6)
    expect(ran.stderr).toContain('Attempts left: 4.')
  })
})

const asApplication = { OTPD_CLIENT_ID: 'c', OTPD_CLIENT_SECRET: 's', OTPD_API_KEY: 'k' }
const request = {
  id: 'otp_01arz3ndektsv4rrffq69g5fav',
  requestId: 'otp_01arz3ndektsv4rrffq69g5fav',
  appId: 'app_01arz3ndektsv4rrffq69g5fav',
  environment: 'live',
  phone: '+14155552671',
  country: 'US',
  status: 'pending',
  failureReason: null,
  channel: 'sms',
  provider: 'main',
  deliveryStatus: 'accepted',
  attempts: 1,
  maxAttempts: 5,
  resends: 0,
  createdAt: '2026-11-20T11:58:00.000Z',
  expiresAt: '2026-11-20T12:03:00.000Z',
  verifiedAt: null,
  updatedAt: '2026-11-20T11:58:00.000Z',
}

describe('otp resend', () => {
  const sent = {
    requestId: request.id,
    phone: request.phone,
    status: 'pending',
    expiresAt: request.expiresAt,
  }

  test('sends the channel where one is named, and says what comes next', async () => {
    talk.answer = () => Response.json({ data: sent })
    const args = ['otp', 'resend', request.id, '--channel', 'voice']
    const ran = await talk.home.otpd(args, { env: asApplication })
    expect(ran.exitCode).toBe(0)
    expect(JSON.parse(talk.server.asked[0]?.body ?? '')).toEqual({ requestId: request.id, channel: 'voice' })
    expect(ran.stdout).toContain('✓ Code sent to +14155552671')
    expect(ran.stderr).toContain(`otpd otp verify ${request.id} CODE`)
  })

  test('too soon is 7, with the time to wait', async () => {
    const error = { code: 'RATE_LIMITED', message: 'Wait and try again.', traceId: 'r' }
    talk.answer = () => Response.json({ error }, { status: 429, headers: { 'retry-after': '12' } })
    const ran = await talk.home.otpd(['otp', 'resend', request.id], { env: asApplication })
    expect(ran).toMatchObject({ exitCode: 7, stdout: '' })
    expect(ran.stderr).toContain('Try again in 12 s.')
  })
})

test('otp cancel says whose code it was', async () => {
  talk.answer = () =>
    Response.json({ data: { requestId: request.id, status: 'canceled', phone: request.phone } })
  const ran = await talk.home.otpd(['otp', 'cancel', request.id], { env: asApplication })
  expect(ran).toMatchObject({ exitCode: 0, stdout: '✓ The code for +14155552671 is canceled\n' })
})

describe('otp list', () => {
  test('asks for what was named, and fits a terminal', async () => {
    talk.answer = () => page(request, { ...request, status: 'verified' })
    const args = ['otp', 'list', '--app', request.appId, '--status', 'pending', '--limit', '2']
    const { stdout } = await talk.home.otpd(args, { columns: 90 })
    expect(talk.server.asked[0]?.path).toBe(`/v1/otp?limit=2&appId=${request.appId}&status=pending`)
    const lines = Bun.stripANSI(stdout).split('\n')
    expect(lines[1]).toMatch(/^otp_\w{26} {2}\+14155552671 {2}… pending +live +1\/5 +2 min ago$/)
  })

  test('of nothing says what to do, and with a filter how to see all', async () => {
    talk.answer = () => page()
    expect((await talk.home.otpd(['otp', 'ls'])).stdout).toContain('otpd otp send')
    expect((await talk.home.otpd(['otp', 'ls', '--status', 'failed'])).stdout).toBe(
      'No such codes. See all of them: otpd otp list\n',
    )
  })
})

describe('otp get', () => {
  test('shows what became of it', async () => {
    talk.answer = () => Response.json({ data: { ...request, resends: 1 } })
    const { stdout } = await talk.home.otpd(['otp', 'get', request.id, '--no-color'], {
      columns: 80,
    })
    expect(stdout).toMatch(/ {2}Sent +2 min ago by sms, main, accepted\n {2}Resent +once\n/)
    expect(stdout).toMatch(/ {2}Expires +in 3 min\n$/)
    expect(talk.server.asked[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  test('asks as the application where nobody is logged in', async () => {
    talk.answer = () => Response.json({ data: request })
    const env = { ...asApplication, OTPD_CONFIG_DIR: '/nowhere', OTPD_SERVER: talk.server.url }
    expect((await talk.home.otpd(['otp', 'get', request.id], { env })).exitCode).toBe(0)
    expect(talk.server.asked[0]?.headers.get('x-api-key')).toBe('k')
    expect(talk.server.asked[0]?.headers.get('authorization')).toBeNull()
  })
})
