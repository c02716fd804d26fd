import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { insertDeveloper } from '../../../src/domain/accounts/developers.ts'
import { testClock } from '../../helpers/clock.ts'
import { startIdentityServer } from '../../helpers/identity.ts'
import { startFakeOidcProvider, startOidcProvider } from '../../helpers/oidc.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

let service: TestService
let provider: Awaited<ReturnType<typeof startFakeOidcProvider>>
let server: Awaited<ReturnType<typeof startIdentityServer>>

beforeAll(async () => {
  service = await createTestService()
  provider = await startFakeOidcProvider()
  server = await startIdentityServer(service, { env: env('open') })
})
afterAll(async () => {
  await server.stop()
  await provider.stop()
  await service.dispose()
})
beforeEach(() => {
  service.clock.advance(60_000)
  provider.state.mode = 'ok'
})

const env = (signUp: 'open' | 'closed') => ({
  OTPD_OIDC_ISSUER: provider.issuer,
  OTPD_OIDC_AUDIENCE: provider.audience,
  OTPD_SIGNUP: signUp,
})
const sign = (claims = {}) => provider.sign(service.clock.now(), claims)
const call = (authorization?: string, init: RequestInit = {}) =>
  fetch(`${server.url}/v1/developer/me`, {
    ...init,
    headers: { ...init.headers, ...(authorization !== undefined && { authorization }) },
  })

describe('401 with the challenge of RFC 6750', () => {
  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another scheme', 'Basic YTpi'],
    ['only the scheme', 'Bearer'],
    ['the scheme and spaces', 'Bearer   '],
  ])('%s: TOKEN_MISSING, without an error code in the challenge', async (_name, authorization) => {
    const response = await call(authorization)
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="otpd"')
    const traceId = response.headers.get('x-request-id')
    expect(await response.json()).toMatchObject({
      error: { code: 'UNAUTHENTICATED', reason: 'TOKEN_MISSING', traceId },
    })
  })

  test('credentials of an application: TOKEN_MISSING, and what to send instead', async () => {
    const response = await service.request('GET', '/v1/logs', {
      headers: { 'x-client-id': 'a', 'x-api-key': 'b' },
    })
    expect([response.status, response.error.reason]).toEqual([401, 'TOKEN_MISSING'])
    expect(response.error.message).toContain('takes no credentials of an application. Send an ID token')
  })

  test('a bad token: TOKEN_INVALID', async () => {
    for (const token of ['x', `${await sign()} x`, await sign({ aud: 'other' })]) {
      const response = await call(`Bearer ${token}`)
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toStartWith(
        'Bearer realm="otpd", error="invalid_token"',
      )
      expect(await response.json()).toMatchObject({ error: { reason: 'TOKEN_INVALID' } })
    }
  })

  test('an expired token: TOKEN_EXPIRED', async () => {
    const response = await call(`Bearer ${await sign({ exp: service.clock.now() / 1000 - 60 })}`)
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toContain('has expired')
    expect(await response.json()).toMatchObject({ error: { reason: 'TOKEN_EXPIRED' } })
  })

  test('precedes 400: an unauthenticated caller learns nothing about the body', async () => {
    const init = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"plan":"pro"}' }
    expect((await call(undefined, init)).status).toBe(401)
    expect((await call(`Bearer ${await sign()}`, init)).status).toBe(400)
  })
})

test('the scheme is case-insensitive', async () => {
  expect((await call(`bearer ${await sign()}`)).status).toBe(200)
})

test('an outage of the provider is 503 with Retry-After, not 401', async () => {
  const openSignupServer = await startIdentityServer(service, { env: env('open') })
  provider.state.mode = 'error'
  try {
    const response = await openSignupServer.get('/v1/developer/me', await sign())
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30'])
    expect(await response.json()).toMatchObject({
      error: { code: 'UNAVAILABLE', reason: 'IDENTITY_PROVIDER_UNAVAILABLE' },
    })
  } finally {
    await openSignupServer.stop()
  }
})

test('with an external provider the routes of the built-in one are 404, and the login settings name it', async () => {
  for (const path of ['/v1/auth/.well-known/openid-configuration', '/v1/auth/jwks.json']) {
    expect((await server.get(path)).status).toBe(404)
  }
  for (const path of ['/v1/auth/token', '/v1/auth/revoke']) {
    const response = await server.postForm(path, { grant_type: 'password', token: 'x' })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { reason: 'ROUTE_NOT_FOUND' } })
  }
  expect(await (await server.get('/v1/auth/config')).json()).toEqual({
    data: {
      kind: 'oidc',
      issuer: provider.issuer,
      clientId: 'client-1',
      tokenEndpoint: null,
      revocationEndpoint: null,
      setupTokenAwaited: false,
    },
  })
})

test('with sign-up closed, only developers that the operator created log in, by a verified e-mail address', async () => {
  const closed = await startIdentityServer(service, { env: env('closed') })
  try {
    const claims = { sub: 'awaited', email: 'Awaited@example.com', email_verified: true }
    const refused = await closed.get('/v1/developer/me', await sign(claims))
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({ error: { reason: 'ACCOUNT_NOT_ALLOWED' } })
    const awaited = {
      id: 'dev_awaited',
      issuer: null,
      subject: null,
      email: 'awaited@example.com',
      name: null,
    }
    await service.store.write((tx) =>
      insertDeveloper(tx, { ...awaited, now: service.clock.now() }, (bytes) => crypto.getRandomValues(bytes)),
    )
    const unverified = await closed.get('/v1/developer/me', await sign({ ...claims, email_verified: false }))
    expect(unverified.status).toBe(403)
    const admitted = await closed.get('/v1/developer/me', await sign(claims))
    expect(await admitted.json()).toMatchObject({ data: { id: 'dev_awaited', uid: 'awaited' } })
  } finally {
    await closed.stop()
  }
})

test('after the system clock was set, tokens of the provider are checked against the new time', async () => {
  const wall = testClock(service.clock.now() + 86_400_000)
  const moved = await startIdentityServer(service, { env: env('open'), wallClock: wall })
  try {
    const fetchStatus = async (token: string) => (await moved.get('/v1/developer/me', token)).status
    expect(await fetchStatus(await provider.sign(wall.now()))).toBe(200)
    expect(await fetchStatus(await provider.sign(service.clock.now()))).toBe(401)
  } finally {
    await moved.stop()
  }
})

test('a developer logs in with a certified OpenID provider', async () => {
  const oidcProvider = await startOidcProvider()
  const console = await startIdentityServer(service, {
    env: {
      OTPD_OIDC_ISSUER: oidcProvider.issuer,
      OTPD_OIDC_AUDIENCE: oidcProvider.clientId,
      OTPD_SIGNUP: 'open',
    },
    clock: { now: () => Date.now() },
  })
  try {
    const person = { subject: 'alice', email: 'alice@example.com', emailVerified: true, name: 'Alice' }
    const response = await console.get('/v1/developer/me', await oidcProvider.idTokenFor(person))
    expect(await response.json()).toMatchObject({
      data: { uid: 'alice', email: 'alice@example.com', name: 'Alice', plan: 'free' },
    })
  } finally {
    await console.stop()
    oidcProvider.stop()
  }
})
