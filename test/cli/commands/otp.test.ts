import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, errorResponse, pageResponse } from '../cli-fixture.ts'

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

test('a fault names the flags of the command instead of fields of the API', async () => {
  const message =
    'Expected a number with +, or its country: `country`, or `defaultCountry` of the application.'
  const error = { code: 'INVALID_PHONE_NUMBER', message, traceId: 'r', details: [{ path: 'phone', message }] }
  cli.respond = () => Response.json({ error }, { status: 400 })
  const { stderr } = await cli.home.otpd(['otp', 'send', '0151'], { env: asApplication })
  expect(stderr).toStartWith(
    'Error: <phone>: Expected a number with +, or its country: --country, or `defaultCountry` of the application.\n',
  )
})

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
  metadata: null,
  createdAt: '2026-11-20T11:58:00.000Z',
  expiresAt: '2026-11-20T12:03:00.000Z',
  verifiedAt: null,
  updatedAt: '2026-11-20T11:58:00.000Z',
}

const event = {
  id: 'evt_01arz3ndektsv4rrffq69g5fav',
  type: 'otp.sent',
  appId: request.appId,
  requestId: request.id,
  phone: request.phone,
  status: 'pending',
  detail: null,
  at: '2026-11-20T11:58:00.000Z',
}
const attempt = { channel: 'sms', provider: 'main', providerMessageId: null, latencyMs: 88 }
const events = [
  event,
  { ...event, ...attempt, type: 'delivery.attempted', outcome: 'refused', error: 'rate_limited' },
  { ...event, type: 'otp.attempt_failed', detail: '1/5', attempt: 1, attemptsMax: 5 },
  { ...event, type: 'otp.refused', reason: 'APP_RATE', count: 1, since: event.at, nextAt: event.at },
]

describe('otp list --phone', () => {
  test('says in one command what happened to the newest code', async () => {
    cli.respond = ({ path }) => {
      if (path.startsWith('/v1/applications')) return pageResponse({ id: request.appId, name: 'web' })
      return path.includes('/events') ? pageResponse(...events) : pageResponse(request)
    }
    const { stdout } = await cli.home.otpd(['otp', 'list', '--phone', request.phone])
    expect(cli.server.requests[0]?.path).toBe('/v1/otp?phone=%2B14155552671')
    expect(stdout).toMatch(
      /^PHONE .*\n\+14155552671 +… pending +accepted, SMS via main .* web .*\n\nWhat happened/,
    )
    expect(stdout).toContain('SMS via main: refused (rate limited)')
    expect(stdout).toMatch(/otp\.refused +1 send refused, next at \d\d:\d\d:\d\d \(APP_RATE\)/)
  })

  test('reads pages until --since', async () => {
    const older = { ...request, createdAt: '2026-11-20T09:00:00.000Z' }
    const next = { data: [request, request], pagination: { limit: 200, nextCursor: 'next' } }
    cli.respond = ({ path }) => (path.includes('cursor') ? pageResponse(request, older) : Response.json(next))
    const { stdout } = await cli.home.otpd(['otp', 'list', '--since', '1h', '-q'])
    expect(stdout).toBe(`${request.id}\n`.repeat(3))
    expect(cli.server.requests.map(({ path }) => path)).toEqual([
      '/v1/otp?limit=200',
      '/v1/otp?limit=200&cursor=next',
    ])
  })
})

describe('a part of an id', () => {
  const other = { ...request, id: 'otp_01arz3ndektsv4rrffq69gaaaa' }

  test.each(['otp_01arz3ndektsv4rrffq69g5', '5fav', 'otp_01ar…5fav', 'otp_01ar...5fav'])(
    '%p names the resource',
    async (part) => {
      cli.respond = ({ path }) => {
        if (path.includes('/events')) return pageResponse()
        return path.includes('5fav') ? Response.json({ data: request }) : pageResponse(other, request)
      }
      expect((await cli.home.otpd(['otp', 'get', part, '-q'])).stdout).toBe(`${request.id}\n`)
    },
  )

  test('of two resources is not guessed, and of none is 5', async () => {
    cli.respond = () => pageResponse(other, request)
    const two = await cli.home.otpd(['otp', 'get', 'otp_01arz3'])
    expect(two).toMatchObject({ exitCode: 2 })
    expect(two.stderr).toContain(
      `2 ids match otp_01arz3; use more of one of them.\n  ${other.id}\n  ${request.id}`,
    )
    const none = await cli.home.otpd(['otp', 'get', 'nope'])
    expect(none).toMatchObject({ exitCode: 5 })
    expect(none.stderr).toContain('You have no code nope.')
  })
})

describe('otp send', () => {
  const sent = {
    requestId: request.id,
    phone: request.phone,
    status: 'pending',
    expiresAt: request.expiresAt,
  }

  test('passes on who asks for the code, and leaves out what was not given', async () => {
    const bodies: unknown[] = []
    cli.respond = ({ method, body }) => {
      if (method === 'GET') return Response.json({ data: request })
      bodies.push(body)
      return Response.json({ data: sent }, { status: 201 })
    }
    const send = (...flags: string[]) =>
      cli.home.otpd(['otp', 'send', request.phone, ...flags], { env: asApplication })
    const fields = [
      '--channel',
      'voice',
      '--locale',
      'pt-BR',
      '--ttl',
      '120',
      '--metadata',
      'a=1',
      '--metadata',
      'b=x=y',
    ]
    expect(
      (await send('--client-ip', '192.0.2.1', '--device-id', 'b1c2', '--idempotency-key', 'k1')).exitCode,
    ).toBe(0)
    expect(cli.server.requests[0]?.headers.get('idempotency-key')).toBe('k1')
    expect((await send(...fields)).exitCode).toBe(0)
    expect((await send()).exitCode).toBe(0)
    expect(bodies.map((body) => JSON.parse(String(body)))).toEqual([
      { phone: request.phone, clientIp: '192.0.2.1', deviceId: 'b1c2' },
      {
        phone: request.phone,
        channel: 'voice',
        locale: 'pt-BR',
        ttlSeconds: 120,
        metadata: { a: '1', b: 'x=y' },
      },
      { phone: request.phone },
    ])
  })

  test.each([
    [
      { provider: 'inbox', deliveryStatus: null },
      '✓ Code for +14155552671 kept in the inbox (no provider is configured)',
    ],
    [{ provider: 'main', deliveryStatus: 'sent' }, '✓ Code sent to +14155552671 by SMS via main'],
    [{ provider: null, deliveryStatus: 'queued' }, '… Code for +14155552671 waits for a provider (SMS)'],
    [
      { provider: 'main', deliveryStatus: 'unknown' },
      '▲ Code for +14155552671 may have been sent by SMS via main',
    ],
  ])('says where the code is: %o', async (delivery, title) => {
    cli.respond = ({ method }) =>
      method === 'GET'
        ? Response.json({ data: { ...request, ...delivery } })
        : Response.json({ data: sent }, { status: 201 })
    const result = await cli.home.otpd(['otp', 'send', request.phone], { env: asApplication })
    expect(result.stdout).toStartWith(title)
    expect(result.stderr.includes('Next: otpd inbox')).toBe(delivery.provider === 'inbox')
  })

  test('makes no second call for scripts, and prints only the id with --quiet', async () => {
    cli.respond = () => Response.json({ data: sent }, { status: 201 })
    const quiet = await cli.home.otpd(['otp', 'send', request.phone, '-q'], { env: asApplication })
    expect(quiet).toMatchObject({ stdout: `${request.id}\n`, stderr: '' })
    await cli.home.otpd(['otp', 'send', request.phone, '--json'], { env: asApplication })
    expect(cli.server.requests.map(({ method }) => method)).toEqual(['POST', 'POST'])
  })

  test('names flags and arguments instead of the fields of the API', async () => {
    const details = [{ in: 'body', path: 'ttlSeconds', code: 'INVALID', message: 'Expected 60 to 600.' }]
    const respond = (...more: object[]) => {
      const error = { code: 'INVALID_ARGUMENT', message: 'No.', traceId: 'r', details: [...details, ...more] }
      cli.respond = () => Response.json({ error }, { status: 400 })
    }
    const send = async (...flags: string[]) =>
      (await cli.home.otpd(['otp', 'send', request.phone, '--ttl', '1', ...flags], { env: asApplication }))
        .stderr
    respond()
    expect(await send()).toBe('Error: --ttl: Expected 60 to 600.\n')
    expect(JSON.parse(await send('--json')).error.details[0].path).toBe('ttlSeconds')
    respond({ in: 'body', path: 'phone', code: 'INVALID', message: 'Expected a phone number.' })
    expect(await send()).toBe(
      'Error: 2 values are not valid.\n  --ttl: Expected 60 to 600.\n  <phone>: Expected a phone number.\n',
    )
  })

  test('refuses a name that is given twice', async () => {
    const { stderr, exitCode } = await cli.home.otpd(
      ['otp', 'send', request.phone, '--metadata', 'order=1', '--metadata', 'order=2'],
      { env: asApplication },
    )
    expect([exitCode, stderr]).toEqual([2, 'Error: --metadata order is given twice.\n  Keep one of them.\n'])
    expect(cli.server.requests).toEqual([])
  })

  test('counts the items of a list from 1, as the settings do', async () => {
    const details = [{ in: 'body', path: 'returnOrigins.0', code: 'INVALID', message: 'Expected https://.' }]
    const error = { code: 'INVALID_ARGUMENT', message: 'No.', traceId: 'r', details }
    cli.respond = () => Response.json({ error }, { status: 400 })
    const { stderr } = await cli.home.otpd([
      'app',
      'page',
      'app_01arz3ndektsv4rrffq69g5fav',
      '--return-origin',
      'x',
    ])
    expect(stderr).toBe('Error: --return-origin 1: Expected https://.\n')
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
    cli.respond = ({ method }) => Response.json({ data: method === 'GET' ? request : sent })
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

  test.each(['0612345678', '(415) 555-2671', '2012345'])(
    'sends %s as a phone, so that the server says what it lacks',
    async (phone) => {
      cli.respond = () => errorResponse(400, 'INVALID_PHONE_NUMBER', 'Write it in E.164 format.')
      const result = await cli.home.otpd(['otp', 'resend', phone], { env: asApplication })
      expect(result).toMatchObject({ exitCode: 2, stdout: '' })
      expect(result.stderr).toContain('Write it in E.164 format.')
      expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual({ phone })
    },
  )

  test('too soon is 7, with the time to wait', async () => {
    const error = { code: 'RATE_LIMITED', message: 'Wait and try again.', traceId: 'r' }
    cli.respond = () => Response.json({ error }, { status: 429, headers: { 'retry-after': '12' } })
    const result = await cli.home.otpd(['otp', 'resend', request.id], { env: asApplication })
    expect(result).toMatchObject({ exitCode: 7, stdout: '' })
    expect(result.stderr).toContain('Try again in 12 s.')
  })
})

test.each([
  ['send', [], { phone: '07700 900123', country: 'GB' }],
  ['deliver', ['907155'], { phone: '07700 900123', country: 'GB', code: '907155' }],
  ['resend', [], { phone: '07700 900123', country: 'GB' }],
  ['verify', ['424242'], { phone: '07700 900123', country: 'GB', code: '424242' }],
  ['cancel', [], { phone: '07700 900123', country: 'GB' }],
])('otp %s takes a number as it is written in --country', async (verb, rest, body) => {
  cli.respond = () => errorResponse(404, 'NOT_FOUND', 'No code is pending.')
  await cli.home.otpd(['otp', verb, '07700 900123', ...rest, '--country', 'GB'], { env: asApplication })
  expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual(body)
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
    expect(lines[1]).toMatch(/^\+14155552671 {2}… pending .* 2 min ago .* otp_01ar…5fav$/)
  })

  test('of no codes says what to do, and with a filter how to see all', async () => {
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['otp', 'ls'])).stdout).toContain('otpd otp send')
    expect((await cli.home.otpd(['otp', 'ls', '--all'])).stdout).toContain('otpd otp send')
    expect((await cli.home.otpd(['otp', 'ls', '--status', 'failed'])).stdout).toBe(
      'No matching codes. See all of them: otpd otp list\n',
    )
    expect((await cli.home.otpd(['otp', 'ls', '--phone', request.phone])).stdout).toBe(
      'No matching codes. See refused sends: otpd logs --type otp.refused\n',
    )
  })
})

describe('otp get', () => {
  test('shows status, delivery and attempts', async () => {
    cli.respond = ({ path }) =>
      path.startsWith('/v1/applications')
        ? errorResponse(404, 'NOT_FOUND', 'No such application.')
        : path.includes('/events')
          ? pageResponse(...events)
          : Response.json({ data: { ...request, resends: 1 } })
    const { stdout } = await cli.home.otpd(['otp', 'get', request.id, '--no-color'], {
      columns: 80,
    })
    // The application was deleted since: its id is left.
    expect(stdout).toMatch(/ {2}Application +app_\w+, live\n/)
    expect(stdout).toMatch(/ {2}Sent +2 min ago, by SMS via main, accepted\n {2}Resends +1\n/)
    expect(stdout).toMatch(/ {2}Expires +in 3 min\n\nTIME \(\S+\) +EVENT +DETAIL\n/)
    expect(stdout).toMatch(/ · delivery\.attempted +SMS via main: refused \(rate limited\) in 88 ms\n/)
    expect(stdout).toMatch(/ ▲ otp\.attempt_failed +1\/5\n/)
    expect(cli.server.requests[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  test('calls as the application when there is no login', async () => {
    cli.respond = ({ path }) =>
      path.includes('/events') ? pageResponse(...events) : Response.json({ data: request })
    const env = { ...asApplication, OTPD_CONFIG_DIR: '/nowhere', OTPD_SERVER: cli.server.url }
    expect((await cli.home.otpd(['otp', 'get', request.id], { env })).exitCode).toBe(0)
    expect(cli.server.requests[0]?.headers.get('x-api-key')).toBe('k')
    expect(cli.server.requests[0]?.headers.get('authorization')).toBeNull()
  })
})
