import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApiTester, type ApiTester } from '../helpers/api-tester.ts'

const listed = 'https://console.example'
const other = 'https://evil.example'

let apiWithoutCors: ApiTester
let apiWithCors: ApiTester

beforeAll(async () => {
  apiWithoutCors = await createApiTester()
  apiWithCors = await createApiTester({ env: { OTPD_CORS_ORIGINS: `${listed},http://localhost:3000` } })
}, 60_000)
afterAll(async () => {
  await apiWithoutCors.service.dispose()
  await apiWithCors.service.dispose()
})

const forServers = new Set([
  '/v1/otp/send',
  '/v1/otp/resend',
  '/v1/otp/verify',
  '/v1/otp/cancel',
  '/v1/otp/proofs',
  '/v1/otp/deliver',
  '/v1/otp/sessions',
])

const ask = (apiTester: ApiTester, method: string, path: string, headers: Record<string, string>) =>
  apiTester.service.app.handle(new Request(`http://otpd.test${path}`, { method, headers }))

const preflight = (apiTester: ApiTester, method: string, path: string, origin: string) =>
  ask(apiTester, 'OPTIONS', path, {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization',
  })

const corsHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

/** Method and path of every operation. */
const listRequests = (apiTester: ApiTester) =>
  apiTester.operations.map((operation) => ({
    method: operation.method,
    path: apiTester.fillPath(operation, apiTester.owner),
  }))

describe('pages of other origins', () => {
  test('may call nothing unless the operator lists their origin', async () => {
    for (const { method, path } of listRequests(apiWithoutCors)) {
      for (const origin of [listed, other, 'null']) {
        expect(corsHeaders(await ask(apiWithoutCors, method, path, { origin }))).toEqual({})
        const response = await preflight(apiWithoutCors, method, path, origin)
        expect([path, response.status, corsHeaders(response)]).toEqual([path, 405, {}])
      }
    }
  })

  test('may call the console routes with a token if their origin is listed', async () => {
    for (const { method, path } of listRequests(apiWithCors)) {
      const response = await preflight(apiWithCors, method, path, listed)
      if (forServers.has(path) || /^\/v1\/otp\/(deliver|sessions)\//.test(path)) {
        expect([path, response.status, corsHeaders(response)]).toEqual([path, 405, {}])
        continue
      }
      expect([path, response.status, await response.text()]).toEqual([path, 204, ''])
      expect(corsHeaders(response)).toEqual({
        'access-control-allow-origin': listed,
        'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
        'access-control-allow-headers': 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID',
        'access-control-max-age': '600',
      })
      const call = await ask(apiWithCors, method, path, { origin: listed })
      expect(corsHeaders(call)).toEqual({
        'access-control-allow-origin': listed,
        'access-control-expose-headers':
          'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotency-Replayed',
      })
      expect(call.headers.get('vary')).toBe('Origin')
    }
  })

  test('may never call routes that take the secrets of an application', async () => {
    for (const path of forServers) {
      for (const variant of [path, `${path}/`, `${path}?x=1`]) {
        expect(corsHeaders(await ask(apiWithCors, 'POST', variant, { origin: listed }))).toEqual({})
        expect(corsHeaders(await preflight(apiWithCors, 'POST', variant, listed))).toEqual({})
      }
    }
    expect(corsHeaders(await preflight(apiWithCors, 'POST', '/v1/callbacks/x/y', listed))).toEqual({})
  })

  test.each([
    other,
    'null',
    '*',
    `${listed}.evil.example`,
    `${listed}:8443`,
    'http://console.example',
    'https://Console.example',
    `${listed}/`,
    `${listed},${other}`,
    'https://consoleXexample',
  ])('may call nothing from the unlisted origin %s', async (origin) => {
    for (const { method, path } of listRequests(apiWithCors)) {
      expect(corsHeaders(await preflight(apiWithCors, method, path, origin))).toEqual({})
      const response = await ask(apiWithCors, method, path, { origin })
      expect(corsHeaders(response)).toEqual({})
      // A cache must not serve this response to a page of another origin.
      expect(response.headers.get('vary')).toBe('Origin')
    }
  })

  test('can read errors, too', async () => {
    for (const [method, path, status] of [
      ['GET', '/v1/projects', 401],
      ['GET', '/v1/nothing', 404],
      ['PUT', '/v1/projects', 405],
    ] as const) {
      const response = await ask(apiWithCors, method, path, { origin: listed })
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, listed])
    }
  })

  test('never send cookies, and preflight responses have the security headers', async () => {
    const response = await preflight(apiWithCors, 'GET', '/v1/projects', listed)
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    })
    for (const { method, path } of listRequests(apiWithCors)) {
      const { headers } = await ask(apiWithCors, method, path, { origin: listed })
      expect([headers.get('set-cookie'), headers.get('access-control-allow-credentials')]).toEqual([
        null,
        null,
      ])
    }
  })
})
