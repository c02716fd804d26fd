import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createEdge, type Edge } from '../helpers/edge.ts'

const listed = 'https://console.example'
const other = 'https://evil.example'

let off: Edge
let on: Edge

beforeAll(async () => {
  off = await createEdge()
  on = await createEdge({ env: { OTPD_CORS_ORIGINS: `${listed},http://localhost:3000` } })
})
afterAll(async () => {
  await off.service.dispose()
  await on.service.dispose()
})

const forServers = new Set(['/v1/otp/send', '/v1/otp/resend', '/v1/otp/verify', '/v1/otp/cancel'])

const ask = (edge: Edge, method: string, path: string, headers: Record<string, string>) =>
  edge.service.app.handle(new Request(`http://otpd.test${path}`, { method, headers }))

const preflight = (edge: Edge, method: string, path: string, origin: string) =>
  ask(edge, 'OPTIONS', path, {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization',
  })

const allowances = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

/** Each operation with a path of its own. */
const places = (edge: Edge) =>
  edge.operations.map((operation) => ({
    method: operation.method,
    path: edge.fillPath(operation, edge.owner),
  }))

describe('pages of other sites', () => {
  test('may call nothing unless the operator names their origin', async () => {
    for (const { method, path } of places(off)) {
      for (const origin of [listed, other, 'null']) {
        expect(allowances(await ask(off, method, path, { origin }))).toEqual({})
        const answer = await preflight(off, method, path, origin)
        expect([path, answer.status, allowances(answer)]).toEqual([path, 405, {}])
      }
    }
  })

  test('of a listed origin may call the console routes, with a token of their own', async () => {
    for (const { method, path } of places(on)) {
      const answer = await preflight(on, method, path, listed)
      if (forServers.has(path)) {
        expect([path, answer.status, allowances(answer)]).toEqual([path, 405, {}])
        continue
      }
      expect([path, answer.status, await answer.text()]).toEqual([path, 204, ''])
      expect(allowances(answer)).toEqual({
        'access-control-allow-origin': listed,
        'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
        'access-control-allow-headers': 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID',
        'access-control-max-age': '600',
      })
      const call = await ask(on, method, path, { origin: listed })
      expect(allowances(call)).toEqual({
        'access-control-allow-origin': listed,
        'access-control-expose-headers':
          'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotency-Replayed',
      })
      expect(call.headers.get('vary')).toBe('Origin')
    }
  })

  test('of any origin may not call what takes the secrets of an application', async () => {
    for (const path of forServers) {
      for (const variant of [path, `${path}/`, `${path}?x=1`]) {
        expect(allowances(await ask(on, 'POST', variant, { origin: listed }))).toEqual({})
        expect(allowances(await preflight(on, 'POST', variant, listed))).toEqual({})
      }
    }
    expect(allowances(await preflight(on, 'POST', '/v1/callbacks/x/y', listed))).toEqual({})
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
  ])('of the origin %s, which is not listed, may call nothing', async (origin) => {
    for (const { method, path } of places(on)) {
      expect(allowances(await preflight(on, method, path, origin))).toEqual({})
      const answer = await ask(on, method, path, { origin })
      expect(allowances(answer)).toEqual({})
      // A cache must not give this answer to a page of another origin.
      expect(answer.headers.get('vary')).toBe('Origin')
    }
  })

  test('are told of errors too, so that they can show them', async () => {
    for (const [method, path, status] of [
      ['GET', '/v1/projects', 401],
      ['GET', '/v1/nothing', 404],
      ['PUT', '/v1/projects', 405],
    ] as const) {
      const answer = await ask(on, method, path, { origin: listed })
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([status, listed])
    }
  })

  test('never send a cookie along, and an answer to a preflight is as safe as any', async () => {
    const answer = await preflight(on, 'GET', '/v1/projects', listed)
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    })
    for (const { method, path } of places(on)) {
      const { headers } = await ask(on, method, path, { origin: listed })
      expect([headers.get('set-cookie'), headers.get('access-control-allow-credentials')]).toEqual([
        null,
        null,
      ])
    }
  })
})
