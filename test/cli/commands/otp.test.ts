import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('otp verify', () => {
  test('says how many attempts are left', async () => {
    const error = {
      code: 'INVALID_CODE',
      message: 'The code is wrong.',
      traceId: 'r',
      metadata: { attemptsRemaining: 4 },
    }
    cli.respond = () => Response.json({ error }, { status: 400 })
    const env = { OTPD_CLIENT_ID: 'c', OTPD_CLIENT_SECRET: 's', OTPD_API_KEY: 'k' }
    const result = await cli.home.otpd(['otp', 'verify', 'otp_1', '000000'], { env })
    expect(result.exitCode).toBe(6)
    expect(result.stderr).toContain('Attempts left: 4.')
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

describe('otp send', () => {
  const sent = {
    requestId: request.id,
    phone: request.phone,
    status: 'pending',
    expiresAt: request.expiresAt,
  }

  test('passes on who asks for the code, and leaves out what was not given', async () => {
    const bodies: unknown[] = []
    cli.respond = ({ body }) => {
      bodies.push(body)
      return Response.json({ data: sent }, { status: 201 })
    }
    const send = (...flags: string[]) =>
      cli.home.otpd(['otp', 'send', request.phone, ...flags], { env: asApplication })
    expect((await send('--client-ip', '192.0.2.1', '--device-id', 'b1c2')).exitCode).toBe(0)
    expect((await send()).exitCode).toBe(0)
    expect(bodies.map((body) => JSON.parse(String(body)))).toEqual([
      { phone: request.phone, clientIp: '192.0.2.1', deviceId: 'b1c2' },
      { phone: request.phone },
    ])
  })
})

describe('otp resend', () => {
  const sent = {
    requestId: request.id,
    phone: request.phone,
    status: 'pending',
    expiresAt: request.expiresAt,
  }

  test('sends the given channel, and suggests the next command', async () => {
    cli.respond = () => Response.json({ data: sent })
    const args = ['otp', 'resend', request.id, '--channel', 'voice']
    const result = await cli.home.otpd(args, { env: asApplication })
    expect(result.exitCode).toBe(0)
    expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual({
      requestId: request.id,
      channel: 'voice',
    })
    expect(result.stdout).toContain('✓ Code sent to +14155552671')
    expect(result.stderr).toContain(`otpd otp verify ${request.id} CODE`)
  })

  test('too soon is 7, with the time to wait', async () => {
    const error = { code: 'RATE_LIMITED', message: 'Wait and try again.', traceId: 'r' }
    cli.respond = () => Response.json({ error }, { status: 429, headers: { 'retry-after': '12' } })
    const result = await cli.home.otpd(['otp', 'resend', request.id], { env: asApplication })
    expect(result).toMatchObject({ exitCode: 7, stdout: '' })
    expect(result.stderr).toContain('Try again in 12 s.')
  })
})

test('otp cancel names the phone', async () => {
  cli.respond = () =>
    Response.json({ data: { requestId: request.id, status: 'canceled', phone: request.phone } })
  const result = await cli.home.otpd(['otp', 'cancel', request.id], { env: asApplication })
  expect(result).toMatchObject({ exitCode: 0, stdout: '✓ The code for +14155552671 is canceled\n' })
})

describe('otp list', () => {
  test('sends the given filters, and fits a terminal', async () => {
    cli.respond = () => pageResponse(request, { ...request, status: 'verified' })
    const args = ['otp', 'list', '--app', request.appId, '--status', 'pending', '--limit', '2']
    const { stdout } = await cli.home.otpd(args, { columns: 90 })
    expect(cli.server.requests[0]?.path).toBe(`/v1/otp?limit=2&appId=${request.appId}&status=pending`)
    const lines = Bun.stripANSI(stdout).split('\n')
    expect(lines[1]).toMatch(/^otp_\w{26} {2}\+14155552671 {2}… pending +live +1\/5 +2 min ago$/)
  })

  test('of no codes says what to do, and with a filter how to see all', async () => {
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['otp', 'ls'])).stdout).toContain('otpd otp send')
    expect((await cli.home.otpd(['otp', 'ls', '--status', 'failed'])).stdout).toBe(
      'No matching codes. See all of them: otpd otp list\n',
    )
  })
})

describe('otp get', () => {
  test('shows status, delivery and attempts', async () => {
    cli.respond = () => Response.json({ data: { ...request, resends: 1 } })
    const { stdout } = await cli.home.otpd(['otp', 'get', request.id, '--no-color'], {
      columns: 80,
    })
    expect(stdout).toMatch(/ {2}Sent +2 min ago by sms, main, accepted\n {2}Resends +1\n/)
    expect(stdout).toMatch(/ {2}Expires +in 3 min\n$/)
    expect(cli.server.requests[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  test('calls as the application when there is no login', async () => {
    cli.respond = () => Response.json({ data: request })
    const env = { ...asApplication, OTPD_CONFIG_DIR: '/nowhere', OTPD_SERVER: cli.server.url }
    expect((await cli.home.otpd(['otp', 'get', request.id], { env })).exitCode).toBe(0)
    expect(cli.server.requests[0]?.headers.get('x-api-key')).toBe('k')
    expect(cli.server.requests[0]?.headers.get('authorization')).toBeNull()
  })
})
