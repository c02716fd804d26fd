import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import {
  ChallengeRequiredError,
  Otpd,
  OtpdError,
  PermissionError,
  type OtpdOptions,
} from '../../src/client/index.ts'

type Answer = { status: number; body?: object; headers?: Record<string, string> }

/** Answers of the server, in turn; then the last one. Status -1 never answers. */
let answers: Answer[] = []
const calls: Array<{ path: string; headers: Headers; body: string }> = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url)
    calls.push({ path: pathname, headers: request.headers, body: await request.text() })
    const {
      status,
      body = {},
      headers = {},
    } = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500 }
    if (status === -1) return new Promise<Response>(() => {})
    return Response.json(body, { status, headers })
  },
})
afterAll(() => server.stop(true))
beforeEach(() => void calls.splice(0))

const sent: Answer = { status: 200, body: { data: { requestId: 'otp_1', status: 'pending' } } }
/** An answer that was lost on its way. */
const lost: Answer = { status: 200, headers: { 'x-lost': 'true' } }
const loseAnswers = async (url: string, init: RequestInit) => {
  const response = await fetch(url, init)
  if (response.headers.has('x-lost')) throw new TypeError('The socket was closed.')
  return response
}
const faults = [{ in: 'body', path: 'phone', code: 'REQUIRED', message: 'Required, but missing.' }]
const refused = (status: number, code: string, headers: Record<string, string> = {}): Answer => ({
  status,
  headers,
  body: { error: { code, message: 'No.', reason: 'REASON', details: faults, metadata: { a: 1 } } },
})
const secrets = { clientId: 'client_a', clientSecret: 'secret_b', apiKey: 'api_c' }
const create = (options: OtpdOptions = {}) =>
  new Otpd({ url: server.url.href, fetch: loseAnswers, ...secrets, ...options })
const phone = '+14155550100'
const errorOf = async (call: Promise<unknown>): Promise<OtpdError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof OtpdError) return error
  throw new Error(`expected an OtpdError, and got ${String(error)}`)
}
const keys = () => calls.map(({ headers }) => headers.get('idempotency-key'))

describe('a send', () => {
  test.each([
    ['408', { status: 408 }],
    ['500', refused(500, 'INTERNAL')],
    ['502 of a proxy', { status: 502 }],
    ['503', refused(503, 'UNAVAILABLE', { 'retry-after': '1' })],
    ['429 that ends soon', refused(429, 'RATE_LIMITED', { 'retry-after': '1' })],
  ])('is repeated after %s, with the same key', async (_, answer) => {
    answers = [answer, sent]
    expect(await create().send({ phone })).toMatchObject({ requestId: 'otp_1' })
    expect(calls).toHaveLength(2)
    expect(new Set(keys()).size).toBe(1)
    expect(keys()[0]).toMatch(/^[0-9a-f-]{36}$/)
    expect(calls[1]?.body).toBe(JSON.stringify({ phone }))
  })

  test.each([
    ['400', refused(400, 'INVALID_ARGUMENT'), 'InvalidRequestError'],
    ['401', refused(401, 'UNAUTHENTICATED'), 'AuthenticationError'],
    ['403', refused(403, 'DESTINATION_BLOCKED'), 'PermissionError'],
    ['403 with a challenge', refused(403, 'CHALLENGE_REQUIRED'), 'ChallengeRequiredError'],
    ['404', refused(404, 'NOT_FOUND'), 'NotFoundError'],
    ['409', refused(409, 'CONFLICT'), 'ConflictError'],
    ['410', refused(410, 'OTP_EXPIRED'), 'GoneError'],
    ['422', refused(422, 'IDEMPOTENCY_KEY_REUSED'), 'InvalidRequestError'],
    ['429 that ends late', refused(429, 'RATE_LIMITED', { 'retry-after': '11' }), 'RateLimitError'],
    ['429 that does not end', refused(429, 'RATE_LIMITED'), 'RateLimitError'],
    ['502 of all providers', refused(502, 'DELIVERY_FAILED'), 'ServerError'],
    ['503 that ends late', refused(503, 'UNAVAILABLE', { 'retry-after': '60' }), 'ServerError'],
  ])('is not repeated after %s', async (_, answer, name) => {
    answers = [{ ...answer, headers: { ...answer.headers, 'x-request-id': 'req_1' } }]
    const error = await errorOf(create().send({ phone }))
    expect([error.name, error.status, calls.length]).toEqual([name, answer.status, 1])
    expect([error.reason, error.metadata, error.requestId]).toEqual(['REASON', { a: 1 }, 'req_1'])
    expect(error.details).toMatchObject(faults)
    expect(error.retryAfterSeconds).toBe(Number(answer.headers?.['retry-after']) || undefined)
  })

  test('is repeated while the try whose answer was lost goes on at the server', async () => {
    const error = { code: 'CONFLICT', message: 'Wait.', reason: 'IDEMPOTENCY_IN_PROGRESS' }
    answers = [lost, { status: 409, headers: { 'retry-after': '1' }, body: { error } }, sent]
    expect(await create().send({ phone })).toMatchObject({ requestId: 'otp_1' })
    expect(new Set(keys()).size).toBe(1)
    expect(calls).toHaveLength(3)
  })

  test('that needs a challenge gets its data, and passes on its token under a key of its own', async () => {
    const challenge = { kind: 'turnstile', siteKey: '0x4AAA' } as const
    const error = { code: 'CHALLENGE_REQUIRED', message: 'Pass it.', metadata: challenge }
    answers = [{ status: 403, body: { error } }, sent]
    const thrown = await errorOf(create().send({ phone }))
    expect(thrown).toBeInstanceOf(PermissionError)
    if (!(thrown instanceof ChallengeRequiredError)) throw thrown
    expect(thrown.challenge).toEqual(challenge)
    await create().send({ phone, challenge: 'token' })
    expect(calls[1]?.body).toBe(JSON.stringify({ phone, challenge: 'token' }))
    expect(new Set(keys()).size).toBe(2)
  })

  test('is made three times at most, or as often as wanted', async () => {
    answers = [refused(500, 'INTERNAL')]
    expect((await errorOf(create().send({ phone }))).name).toBe('ServerError')
    expect(calls).toHaveLength(3)
    await errorOf(create({ maxRetries: 0 }).send({ phone }))
    expect(calls).toHaveLength(4)
    expect(new Set(keys()).size).toBe(2)
  })

  test('keeps the key of the caller', async () => {
    answers = [lost, sent]
    await create().send({ phone }, { idempotencyKey: 'order-7' })
    expect(keys()).toEqual(['order-7', 'order-7'])
  })

  test.each(['', 'order 7', 'ordér-7', '€', 'k'.repeat(256)])('is refused with the key %j', async (key) => {
    const error = await errorOf(create().send({ phone }, { idempotencyKey: key }))
    expect([error.name, error.reason, calls.length]).toEqual([
      'InvalidRequestError',
      'IDEMPOTENCY_KEY_INVALID',
      0,
    ])
  })

  test('and a resend and a delivery have a key, and no other call', async () => {
    answers = [sent]
    const otp = create()
    await otp.send({ phone })
    await otp.resend({ phone })
    await otp.deliver({ phone, code: '1234' })
    await otp.verify({ phone, code: '123456' })
    await otp.cancel({ phone })
    await otp.get('otp/1')
    expect(keys().map((key) => key !== null)).toEqual([true, true, true, false, false, false])
    expect(calls.at(-1)?.path).toBe('/v1/otp/otp%2F1')
  })
})

describe('a check', () => {
  test.each([
    ['a lost answer', lost],
    ['408', { status: 408 }],
    ['500', refused(500, 'INTERNAL')],
    ['502 of a proxy', { status: 502 }],
  ])('is not repeated after %s, since it may have been made', async (_, answer) => {
    answers = [answer, sent]
    await errorOf(create().check({ phone, code: '123456' }))
    expect(calls).toHaveLength(1)
  })

  test.each([refused(503, 'UNAVAILABLE'), refused(429, 'RATE_LIMITED', { 'retry-after': '1' })])(
    'is repeated after %j, which says that nothing was done',
    async (answer) => {
      answers = [answer, { status: 200, body: { data: { requestId: 'otp_1', status: 'verified' } } }]
      expect((await create().check({ phone, code: '123456' })).verified).toBe(true)
      expect(calls).toHaveLength(2)
    },
  )

  test.each([
    [refused(400, 'INVALID_CODE'), 'wrong'],
    [refused(400, 'INVALID_PHONE_NUMBER'), 'unknown'],
    [refused(410, 'OTP_EXPIRED'), 'expired'],
    [refused(409, 'ALREADY_VERIFIED'), 'used'],
    [refused(410, 'ATTEMPTS_EXHAUSTED'), 'exhausted'],
    [refused(410, 'OTP_CANCELED'), 'canceled'],
    [refused(404, 'NOT_FOUND'), 'unknown'],
  ])('has a result for %j', async (answer, reason) => {
    answers = [answer]
    expect(await create().check({ phone, code: '123456' })).toMatchObject({ verified: false, reason })
    expect((await errorOf(create().verify({ phone, code: '123456' }))).status).toBe(answer.status)
  })

  test('has a result for a malformed code', async () => {
    answers = [refused(400, 'INVALID_ARGUMENT')]
    expect(await create().check({ phone, code: 'abc' })).toMatchObject({ verified: false, reason: 'wrong' })
    expect((await errorOf(create().check({ phone, code: '123456' }))).code).toBe('INVALID_ARGUMENT')
  })

  test('throws for all else', async () => {
    answers = [refused(429, 'RATE_LIMITED')]
    expect((await errorOf(create().check({ phone, code: '123456' }))).name).toBe('RateLimitError')
  })
})

describe('a call without an answer', () => {
  test('ends after its time', async () => {
    answers = [{ status: -1 }]
    const startedAt = performance.now()
    const error = await errorOf(create({ timeoutMs: 300, maxRetries: 1 }).send({ phone }))
    expect([error.name, error.code, error.status, calls.length]).toEqual(['TimeoutError', 'TIMEOUT', 0, 2])
    const own = await errorOf(create({ maxRetries: 0 }).verify({ phone, code: '1' }, { timeoutMs: 50 }))
    expect(own.name).toBe('TimeoutError')
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })

  test('ends with the signal of the caller, also between two tries', async () => {
    for (const answer of [{ status: -1 }, refused(503, 'UNAVAILABLE', { 'retry-after': '10' })]) {
      answers = [answer]
      const controller = new AbortController()
      const call = create().send({ phone }, { signal: controller.signal })
      while (calls.length === 0) await Bun.sleep(5)
      controller.abort(new Error('the user left'))
      expect(call).rejects.toThrow('the user left')
      await call.catch(() => {})
      expect(calls.splice(0)).toHaveLength(1)
    }
  })

  test('is a ConnectionError where nothing listens', async () => {
    const error = await errorOf(create({ url: 'http://127.0.0.1:1', maxRetries: 0 }).get('otp_1'))
    expect([error.name, error.code, error.status]).toEqual(['ConnectionError', 'CONNECTION', 0])
    expect(error.message).toMatch(/^http:\/\/127\.0\.0\.1:\d+ cannot be reached\.$/)
  })

  test('does not follow a redirect, which would take the secrets along', async () => {
    answers = [{ status: 307, headers: { location: `${server.url.href}other` } }]
    expect((await errorOf(create({ maxRetries: 0 }).send({ phone }))).name).toBe('ConnectionError')
    expect(calls.map(({ path }) => path)).toEqual(['/v1/otp/send'])
  })
})

test('what another server answers is an error with the status', async () => {
  answers = [{ status: 200, body: ['<html>'] }]
  expect(await errorOf(create().get('otp_1'))).toMatchObject({ status: 200, code: 'UNKNOWN' })
})

test('headers of the caller are sent, and never replace the credentials', async () => {
  answers = [sent]
  await create({ headers: { 'x-team': 'shop', 'x-api-key': 'other' } }).send({ phone })
  const { headers } = calls[0] ?? { headers: new Headers() }
  expect([headers.get('x-team'), headers.get('x-api-key')]).toEqual(['shop', 'api_c'])
})

test('secrets are in no text about the client or an error', async () => {
  answers = [refused(401, 'UNAUTHENTICATED')]
  const otp = create()
  const error = await errorOf(otp.send({ phone }))
  for (const subject of [otp, error])
    for (const text of [
      inspect(subject, { depth: 9, showHidden: true }),
      String(subject),
      JSON.stringify(subject),
    ])
      for (const secret of Object.values(secrets)) expect(text).not.toContain(secret)
})

test('the client is not made without an address or a credential, or in a browser', () => {
  const env = { ...process.env }
  for (const name of ['OTPD_URL', 'OTPD_SERVER', 'OTPD_CLIENT_ID', 'OTPD_CLIENT_SECRET', 'OTPD_API_KEY'])
    delete process.env[name]
  expect(() => new Otpd(secrets)).toThrow(
    'OTPD_URL or OTPD_SERVER is missing. Set it, or pass the option url.',
  )
  expect(() => new Otpd({ url: 'http://x', clientId: 'a', clientSecret: 'b' })).toThrow(
    'OTPD_API_KEY is missing. Set it, or pass the option apiKey.',
  )
  for (const url of ['127.0.0.1:8080', 'localhost:8080', 'ftp://otp.example', 'https://otp.example/v1/'])
    expect(() => new Otpd({ url, ...secrets })).toThrow('Write it like https://otp.example.com, without /v1.')
  Object.assign(process.env, env)
  Object.assign(globalThis, { document: {} })
  try {
    expect(() => create()).toThrow('call it from a server')
    expect(() => create({ dangerouslyAllowBrowser: true })).not.toThrow()
  } finally {
    Reflect.deleteProperty(globalThis, 'document')
  }
})

test('a webhook is refused with the reason if the body was parsed, or there is no secret', async () => {
  const { verify } = create().webhooks
  const unset = process.env['OTPD_NO_SUCH_SECRET']
  // @ts-expect-error: JavaScript has no types that forbid it
  expect(verify('{}', {}, unset)).rejects.toThrow('expected whsec_')
  // @ts-expect-error
  expect(verify({ type: 'otp.verified' }, {}, 'whsec_YQ==')).rejects.toThrow('was not parsed')
})
