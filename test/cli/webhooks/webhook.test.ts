import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { signWebhook } from '../../../src/shared/webhook-signature.ts'
import { startReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.ts'
import { createCliFixture, pageResponse, errorResponse } from '../cli-fixture.ts'

const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
const nowSeconds = Date.parse('2026-11-20T12:00:00Z') / 1000
const body = '{"id":"evt_1","type":"otp.verified"}'
const appId = 'app_01arz3ndektsv4rrffq69g5fav'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

test('the signature matches the test vector in the documentation', () => {
  expect(signWebhook(secret, { id: 'msg_1', timestamp: '1700000000', body: '{"a":1}' })).toBe(
    'v1,YForqA5y0HLhU/b+46qmStvR80u6DaHHtk9wY/o80/Y=',
  )
})

describe('webhook verify', () => {
  type Delivery = { id: string; timestamp: string; signature: string; body: string; secret: string }
  const genuine = (): Delivery => {
    const message = { id: 'evt_1', timestamp: String(nowSeconds), body }
    return { ...message, secret, signature: signWebhook(secret, message) }
  }

  const verify = (delivery: Delivery, ...flags: string[]) =>
    cli.home.otpd(
      [
        'webhook',
        'verify',
        '--secret-stdin',
        '--id',
        delivery.id,
        '--timestamp',
        delivery.timestamp,
        '--signature',
        delivery.signature,
        ...flags,
      ],
      { input: `${delivery.secret}\n${delivery.body}` },
    )

  const verifyAndReadFaults = async (delivery: Delivery) => {
    const result = await verify(delivery, '--json')
    const { valid, faults }: { valid: boolean; faults: Array<{ part: string; message: string }> } =
      JSON.parse(result.stdout).data
    expect(result.exitCode).toBe(valid ? 0 : 8)
    return faults
  }

  test('accepts a genuine delivery, also with signatures of other versions and secrets', async () => {
    expect(await verifyAndReadFaults(genuine())).toEqual([])
    const { signature } = genuine()
    const other = `v1,${'A'.repeat(43)}=`
    expect(await verifyAndReadFaults({ ...genuine(), signature: `v1a,xyz ${other} ${signature}` })).toEqual(
      [],
    )
    const result = await verify(genuine())
    expect([result.exitCode, result.stdout]).toEqual([
      0,
      expect.stringContaining('✓ The delivery is genuine.'),
    ])
  })

  const signed = (change: Partial<Delivery>) => {
    const delivery = { ...genuine(), ...change }
    return { ...delivery, signature: signWebhook(secret, delivery) }
  }

  test.each<[string, () => Delivery, string, RegExp]>([
    ['a newline at the end', () => ({ ...genuine(), body: `${body}\n` }), 'body', /ends with a newline/],
    [
      'a body that was parsed',
      () => ({ ...genuine(), body: '{ "id": "evt_1", "type": "otp.verified" }' }),
      'body',
      /serialized again/,
    ],
    ['other line endings', () => ({ ...signed({ body: '{\n}' }), body: '{\r\n}' }), 'body', /line endings/],
    [
      'another body',
      () => ({ ...genuine(), body: body.replace('verified', 'failed') }),
      'signature',
      /the body was changed/,
    ],
    [
      'another secret',
      () => ({ ...genuine(), secret: secret.replaceAll('0', '1') }),
      'signature',
      /the secret is wrong/,
    ],
    [
      'an old timestamp',
      () => signed({ timestamp: String(nowSeconds - 301) }),
      'timestamp',
      /too old: signed 5 min 1 s ago/,
    ],
    ['a timestamp ahead', () => signed({ timestamp: String(nowSeconds + 301) }), 'timestamp', /too new/],
    [
      'no version',
      () => ({ ...genuine(), signature: genuine().signature.slice(3) }),
      'signature',
      /no version/,
    ],
    ['hexadecimal', () => ({ ...genuine(), signature: 'ab'.repeat(32) }), 'signature', /hexadecimal/],
  ])('names what is wrong: %s', async (_, make, part, message) => {
    expect(await verifyAndReadFaults(make())).toEqual([{ part, message: expect.stringMatching(message) }])
  })

  test('reports a wrong id as such', async () => {
    const faults = await verifyAndReadFaults({ ...genuine(), id: 'evt_2' })
    expect(faults.map(({ part }) => part)).toEqual(['id', 'id'])
  })

  test.each([
    ['ph_test_api_0123', /a different credential/],
    ['0123456789abcdef', /does not begin with whsec_/],
    [secret.slice(0, -1), /has 47 characters/],
    [secret.replace('0', 'x'), /not hexadecimal/],
  ])('says what is wrong with the secret %s, without repeating it', async (wrong, message) => {
    const faults = await verifyAndReadFaults({ ...genuine(), secret: wrong })
    expect(faults).toEqual([
      { part: 'secret', message: expect.stringMatching(message) },
      { part: 'signature', message: expect.stringContaining('cannot be checked') },
    ])
    expect(JSON.stringify(faults)).not.toContain(wrong)
  })

  test('recognizes a timestamp in milliseconds', async () => {
    const faults = await verifyAndReadFaults({ ...genuine(), timestamp: `${nowSeconds}000` })
    expect(faults).toEqual([
      { part: 'timestamp', message: expect.stringContaining('milliseconds') },
      { part: 'timestamp', message: 'was signed in seconds' },
    ])
  })

  test('reads headers and body from files, and the secret from an --env-file or the application', async () => {
    const { id, timestamp, signature } = genuine()
    const { directory } = cli.home
    await Bun.write(
      join(directory, 'headers'),
      `HTTP/1.1 200 OK\r\nWebhook-Id: ${id}\r\nwebhook-timestamp:${timestamp}\r\nWEBHOOK-SIGNATURE: ${signature}\r\n`,
    )
    await Bun.write(join(directory, 'body'), body)
    await Bun.write(join(directory, '.env'), `OTPD_WEBHOOK_SECRET=${secret}\n`)
    const files = ['--header-file', 'headers', '--body-file', 'body']
    const verifyExitCode = async (...flags: string[]) =>
      (await cli.home.otpd(['webhook', 'verify', ...files, ...flags])).exitCode
    expect(await verifyExitCode('--env-file', '.env')).toBe(0)
    cli.respond = () => Response.json({ data: { webhookSecret: secret } })
    expect(await verifyExitCode('--app', appId)).toBe(0)
    expect(await verifyExitCode()).toBe(2)
    expect(await verifyExitCode('--app', appId, '--env-file', '.env')).toBe(2)
    expect(await verifyExitCode('--env-file', '.env', '--body-file', 'nothing')).toBe(2)
  })
})

describe('webhook listen', () => {
  let receiver: WebhookReceiver
  let status = 200

  beforeEach(async () => {
    status = 200
    receiver = await startReceiver(() => new Response('ok', { status }))
  })
  afterEach(() => receiver.stop())

  const requestId = 'otp_01arz3ndektsv4rrffq69g5fav'
  const entry = (overrides: Record<string, unknown> = {}) => ({
    id: 'evt_1',
    type: 'otp.verified',
    appId,
    requestId,
    phone: '+14155550100',
    status: 'verified',
    detail: null,
    at: '2026-11-20T11:59:59.000Z',
    ...overrides,
  })
  const request = {
    id: requestId,
    requestId,
    appId,
    environment: 'test',
    phone: '+14155550100',
    country: 'US',
    status: 'verified',
    failureReason: null,
    channel: 'sms',
    provider: null,
    deliveryStatus: null,
    attempts: 1,
    maxAttempts: 5,
    resends: 0,
    metadata: null,
    createdAt: '2026-11-20T11:59:00.000Z',
    expiresAt: '2026-11-20T12:04:00.000Z',
    verifiedAt: '2026-11-20T11:59:59.000Z',
    updatedAt: '2026-11-20T11:59:59.000Z',
  }

  /** Serves these entries in one stream, then responds with 401, which ends the command. */
  function serveEntries(...entries: object[]) {
    const streams: string[] = []
    cli.respond = async ({ path }) => {
      if (path.startsWith('/v1/logs/stream')) {
        streams.push(path)
        const text = entries.map((entry) => `data: ${JSON.stringify(entry)}\n\n`).join('')
        if (streams.length === 1)
          return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
        await receiver.waitForCount(entries.length)
        return errorResponse(401, 'UNAUTHENTICATED', 'The token has expired.')
      }
      if (path.startsWith('/v1/otp/')) return Response.json({ data: request })
      if (path.endsWith('/webhook-secret')) return Response.json({ data: { webhookSecret: secret } })
      return path.includes('?')
        ? pageResponse({ id: appId, name: 'web' })
        : Response.json({ data: { id: appId, name: 'web', projectId: 'prj_1' } })
    }
    return streams
  }

  test('forwards an event as the service would have sent it, which a stock library verifies', async () => {
    const streams = serveEntries(entry())
    const target = `${receiver.url}/hook?a=1`
    const result = await cli.home.otpd(['webhook', 'listen', '--forward-to', target, '--app', 'web'])
    expect(result.stderr).toContain(
      "\nSigned with the application's webhook secret: otpd app webhook-secret web\n",
    )
    const [received] = receiver.received
    if (!received) throw new Error('The receiver got no request.')
    expect(received.path).toBe('/hook?a=1')
    // The library uses the real clock, which differs from this test's.
    const { 'webhook-timestamp': timestamp = '' } = received.headers
    expect(timestamp).toBe(String(nowSeconds))
    const expected = new Webhook(secret).sign('evt_1', new Date(nowSeconds * 1000), received.body)
    expect(received.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': 'evt_1',
      'webhook-signature': expected,
    })
    expect(JSON.parse(received.body)).toEqual({
      id: 'evt_1',
      type: 'otp.verified',
      timestamp: '2026-11-20T11:59:59.000Z',
      data: {
        requestId,
        appId,
        projectId: 'prj_1',
        environment: 'test',
        phone: '+14155550100',
        country: 'US',
        status: 'verified',
        failureReason: null,
        channel: 'sms',
        attempts: 1,
        metadata: null,
        createdAt: request.createdAt,
        expiresAt: request.expiresAt,
        verifiedAt: request.verifiedAt,
      },
    })
    expect(new URL(streams[0] ?? '', 'http://x').searchParams.get('appId')).toBe(appId)
    expect(result.stdout).toMatch(/^\d\d:\d\d:\d\d --> otp\.verified evt_1\n/)
    expect(result.stdout).toContain(`<-- 200 POST ${target} [`)
  })

  test('prints no password of the address that it forwards to', async () => {
    serveEntries(entry())
    const target = receiver.url.replace('://', '://ada:s3cret@')
    const { stdout, stderr } = await cli.home.otpd(['webhook', 'listen', '--forward-to', target])
    expect(receiver.received[0]?.headers).toMatchObject({ authorization: `Basic ${btoa('ada:s3cret')}` })
    expect(stdout).toContain(`POST ${receiver.url}/ [`)
    expect(stdout + stderr).not.toContain('s3cret')
  })

  test.each([[['--app', 'web']], [[]]])(
    'refuses a token that may not read the secret at its start: %j',
    async (app) => {
      const streams = serveEntries(entry())
      const serve = cli.respond
      cli.respond = (recorded) =>
        recorded.path.endsWith('/webhook-secret')
          ? errorResponse(403, 'FORBIDDEN', 'This API token lacks the scope write.')
          : serve(recorded)
      const result = await cli.home.otpd(['webhook', 'listen', '--forward-to', receiver.url, ...app])
      expect(result).toMatchObject({ exitCode: 4, stdout: '' })
      expect(result.stderr).toStartWith('Error: This API token lacks the scope write.\n')
      expect(streams).toEqual([])
    },
  )

  test('sends the values that the request had at the time of the event', async () => {
    serveEntries(entry({ type: 'otp.sent', status: 'pending' }))
    const result = await cli.home.otpd(['webhook', 'listen', '--forward-to', receiver.url])
    expect(result.stderr).toContain(
      "\nSigned with the application's webhook secret: otpd app webhook-secret APP\n",
    )
    expect(JSON.parse(receiver.received[0]?.body ?? '').data).toMatchObject({
      status: 'pending',
      attempts: 0,
      verifiedAt: null,
    })
  })

  test('names the session of the ready page', async () => {
    serveEntries(entry({ type: 'session.verified', detail: 'ses_1' }), entry({ detail: 'other' }))
    await cli.home.otpd(['webhook', 'listen', '--forward-to', receiver.url])
    const bodies = receiver.received.map(({ body }) => JSON.parse(body))
    const sessionIds = bodies.map(({ type, data }) => [type, data.sessionId])
    expect(sessionIds.toSorted()).toEqual([
      ['otp.verified', undefined],
      ['session.verified', 'ses_1'],
    ])
  })

  test('forwards an alert of the guard, which has no request', async () => {
    const detail = 'NL +316123 nothing_verified 214 unverified, usually 6'
    serveEntries(entry({ type: 'guard.alert', requestId: null, phone: null, status: null, detail }))
    await cli.home.otpd(['webhook', 'listen', '--forward-to', receiver.url])
    expect(JSON.parse(receiver.received[0]?.body ?? '')).toEqual({
      id: 'evt_1',
      type: 'guard.alert',
      timestamp: '2026-11-20T11:59:59.000Z',
      data: { country: 'NL', prefix: '+316123', reason: 'nothing_verified', unverified: 214, usual: 6 },
    })
  })

  test('reports an event that was not delivered, as a line of JSON with --json', async () => {
    status = 500
    serveEntries(entry())
    const result = await cli.home.otpd(['webhook', 'listen', '--forward-to', receiver.url, '--json'])
    expect(JSON.parse(result.stdout)).toEqual({
      id: 'evt_1',
      type: 'otp.verified',
      url: `${receiver.url}/`,
      statusCode: 500,
      error: null,
      durationMs: expect.any(Number),
    })
  })

  test('requests only the chosen event types, and by default only those that webhooks can have', async () => {
    const streams = serveEntries()
    const listen = (...flags: string[]) =>
      cli.home.otpd(['webhook', 'listen', '--forward-to', '3000', ...flags])
    await listen('--events', 'otp.failed, otp.expired')
    await listen()
    const types = streams.map((path) => new URL(path, 'http://x').searchParams.get('type'))
    expect(types[0]).toBe('otp.failed,otp.expired')
    expect(types.at(-1)?.split(',')).toHaveLength(10)
    expect(types.at(-1)).not.toContain('attempt_failed')
  })

  test('prints only the secret with --print-secret', async () => {
    serveEntries()
    const result = await cli.home.otpd(['webhook', 'listen', '--print-secret', '--app', 'web'])
    expect([result.exitCode, result.stdout, result.stderr]).toEqual([0, `${secret}\n`, ''])
  })

  test.each([
    [[]],
    [['--forward-to', 'ftp://x']],
    [['--forward-to', 'http://']],
    [['--forward-to', '-1']],
    [['--forward-to', '/hook']],
    [['--forward-to', '3000', '--events', 'otp.unheard']],
    [['--print-secret']],
  ])('rejects %j before any call', async (flags) => {
    expect((await cli.home.otpd(['webhook', 'listen', ...flags])).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})
