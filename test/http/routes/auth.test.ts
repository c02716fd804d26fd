import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { createRemoteKeys } from '../../../src/auth/discovery.ts'
import { createIdTokenVerifier } from '../../../src/auth/id-token.ts'
import type { BuiltInIdentity } from '../../../src/auth/identity.ts'
import { createKeySource } from '../../../src/auth/jwks.ts'
import { startIdentityServer } from '../../helpers/identity.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

type Tokens = { id_token: string; refresh_token: string; token_type: string; expires_in: number }

let service: TestService
let server: Awaited<ReturnType<typeof startIdentityServer>>
let builtIn: BuiltInIdentity
let person = 0

const password = 'correct horse battery'
const minutes = (count: number) => count * 60_000

beforeAll(async () => {
  service = await createTestService()
  server = await startIdentityServer(service)
  if (!server.services.builtIn) throw new Error('another provider is in charge')
  builtIn = server.services.builtIn
})
afterAll(async () => {
  await server.stop()
  await service.dispose()
})
beforeEach(() => service.clock.advance(minutes(60)))

async function newAccount() {
  person += 1
  const email = `person-${person}@example.com`
  const developer = await builtIn.accounts.create({ email, name: `Person ${person}`, password })
  return { email, developer }
}

const login = (username: string, secret = password, from?: string) =>
  server.postForm('/v1/auth/token', { grant_type: 'password', username, password: secret }, from)
const refresh = (token: string) =>
  server.postForm('/v1/auth/token', { grant_type: 'refresh_token', refresh_token: token })

async function readTokens(apiResponse: Promise<Response>): Promise<Tokens> {
  const response = await apiResponse
  expect(response.status).toBe(200)
  return JSON.parse(await response.text())
}

async function expectFailure(apiResponse: Promise<Response>, status: number, body: Record<string, unknown>) {
  const response = await apiResponse
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject(body)
  return response
}

const expectRevoked = (idToken: string) =>
  expectFailure(server.get('/v1/developer/me', idToken), 401, { error: { reason: 'TOKEN_REVOKED' } })

const expectProfile = async (idToken: string) => {
  const response = await server.get('/v1/developer/me', idToken)
  expect(response.status).toBe(200)
}

describe('before the first account exists', () => {
  test('the login settings ask for a setup token, which creates the first account', async () => {
    const settings = async () => (await server.get('/v1/auth/config')).json()
    expect(await settings()).toEqual({
      data: {
        kind: 'built_in',
        issuer: `${server.url}/v1/auth`,
        clientId: 'otpd',
        tokenEndpoint: `${server.url}/v1/auth/token`,
        revocationEndpoint: `${server.url}/v1/auth/revoke`,
        setupTokenAwaited: true,
      },
    })
    const first = await builtIn.setupTokens.issueForFirstStart()
    const form = {
      grant_type: 'urn:otpd:setup-token',
      setup_token: first?.token ?? '',
      email: 'first@example.com',
      password,
      name: 'First',
    }
    const tokens = await readTokens(server.postForm('/v1/auth/token', form))
    await expectProfile(tokens.id_token)
    expect(await settings()).toMatchObject({ data: { setupTokenAwaited: false } })
    await expectFailure(server.postForm('/v1/auth/token', form), 400, { error: 'invalid_grant' })
    await readTokens(login('first@example.com'))
  })
})

describe('the password grant', () => {
  test('returns an ID token of 15 minutes with the claims of the account, and must not be cached', async () => {
    const { email, developer } = await newAccount()
    const response = await login(email)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const tokens = await readTokens(Promise.resolve(response))
    const seconds = { expires_in: 900, refresh_token_expires_in: 30 * 24 * 3600 }
    const texts = { id_token: expect.any(String), refresh_token: expect.any(String), token_type: 'Bearer' }
    expect<object>(tokens).toEqual({ ...texts, ...seconds })
    const nowSeconds = Math.floor(service.clock.now() / 1000)
    expect(decodeProtectedHeader(tokens.id_token)).toMatchObject({ alg: 'ES256', typ: 'JWT' })
    expect(decodeJwt(tokens.id_token)).toEqual({
      iss: `${server.url}/v1/auth`,
      sub: developer.id,
      aud: 'otpd',
      iat: nowSeconds,
      exp: nowSeconds + 900,
      email,
      email_verified: false,
      name: developer.name ?? '',
      sid: expect.stringMatching(/^[\w-]{22}$/),
    })
  })

  test('the ID token is accepted for its 15 minutes and 30 seconds of leeway', async () => {
    const { email } = await newAccount()
    const { id_token: idToken } = await readTokens(login(email))
    service.clock.advance(minutes(15) + 29_000)
    await expectProfile(idToken)
    service.clock.advance(1000)
    const refused = await server.get('/v1/developer/me', idToken)
    expect(refused.status).toBe(401)
    expect(await refused.json()).toMatchObject({ error: { reason: 'TOKEN_EXPIRED' } })
  })

  test('a wrong password and an unknown e-mail address get the same response', async () => {
    const { email } = await newAccount()
    const wrong = await login(email, 'wrong horse battery')
    const unknown = await login('nobody@example.com')
    expect([wrong.status, unknown.status]).toEqual([400, 400])
    const body = await wrong.text()
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_grant' })
    expect(await unknown.text()).toBe(body)
  })

  test('the sixth attempt from one IP address is 429 with Retry-After, but not from another', async () => {
    const { email } = await newAccount()
    for (let i = 0; i < 5; i += 1) await login(email, 'wrong horse battery')
    const refused = await expectFailure(login(email), 429, {
      error: 'rate_limited',
      reason: 'LOGIN_ATTEMPTS',
    })
    expect(refused.headers.get('retry-after')).toBe('900')
    await readTokens(login(email, password, '192.0.2.2'))
  })

  test('an IPv6 /64 counts as one address', async () => {
    const { email } = await newAccount()
    for (let i = 0; i < 5; i += 1) await login(email, 'wrong horse battery', `2001:db8:0:1::${i}`)
    await expectFailure(login(email, password, '2001:db8:0:1:ffff::9'), 429, { reason: 'LOGIN_ATTEMPTS' })
    await readTokens(login(email, password, '2001:db8:0:2::1'))
  })
})

describe('the refresh grant', () => {
  test('rotates the token, repeats a lost response, and ends the session on later reuse', async () => {
    const { email } = await newAccount()
    const first = await readTokens(login(email))
    const second = await readTokens(refresh(first.refresh_token))
    await expectProfile(second.id_token)
    expect((await readTokens(refresh(first.refresh_token))).refresh_token).toBe(second.refresh_token)
    service.clock.advance(60_001)
    await expectFailure(refresh(first.refresh_token), 400, { error: 'invalid_grant' })
    await expectFailure(refresh(second.refresh_token), 400, { error: 'invalid_grant' })
    for (const { id_token: idToken } of [first, second]) await expectRevoked(idToken)
  })

  test('revoking ends the session; an unknown token is no error', async () => {
    const { email } = await newAccount()
    const { refresh_token: token, id_token: idToken } = await readTokens(login(email))
    const other = await readTokens(login(email))
    await expectProfile(idToken)
    for (const revoked of [token, token, 'unknown']) {
      const response = await server.postForm('/v1/auth/revoke', { token: revoked })
      expect([response.status, await response.text()]).toEqual([200, '{}'])
    }
    await expectFailure(refresh(token), 400, { error: 'invalid_grant' })
    await expectFailure(server.postForm('/v1/auth/revoke', {}), 400, { error: 'invalid_request' })
    await expectRevoked(idToken)
    await expectProfile(other.id_token)
  })
})

test('revoking refuses a token that is no refresh token, which would end nothing', async () => {
  const { email } = await newAccount()
  const { id_token: idToken, refresh_token: refreshToken } = await readTokens(login(email))
  for (const token of [idToken, `otpd_pat_${'0'.repeat(48)}`]) {
    const failure = { error: 'unsupported_token_type' }
    await expectFailure(server.postForm('/v1/auth/revoke', { token }), 400, failure)
  }
  expect((await refresh(refreshToken)).status).toBe(200)
})

describe('the token endpoint rejects', () => {
  const post = (body: string, type = 'application/x-www-form-urlencoded') =>
    fetch(`${server.url}/v1/auth/token`, { method: 'POST', headers: { 'content-type': type }, body })

  test.each([
    ['no grant', '', 'invalid_request'],
    ['an empty grant', 'grant_type=', 'invalid_request'],
    ['an unknown grant', 'grant_type=client_credentials', 'unsupported_grant_type'],
    ['a grant named like a property of Object.prototype', 'grant_type=constructor', 'unsupported_grant_type'],
    ['another client', 'grant_type=refresh_token&refresh_token=x&client_id=other', 'invalid_client'],
    ['a password grant without password', 'grant_type=password&username=a%40b.example', 'invalid_request'],
    ['a refresh grant without token', 'grant_type=refresh_token', 'invalid_request'],
    ['an unknown refresh token', 'grant_type=refresh_token&refresh_token=x', 'invalid_grant'],
    ['a setup token without account', 'grant_type=urn%3Aotpd%3Asetup-token&setup_token=x', 'invalid_request'],
    ['a repeated parameter', 'grant_type=password&grant_type=password', 'invalid_request'],
  ])('%s', async (_name, body, error) => {
    await expectFailure(post(body), 400, { error })
  })

  test('a short password of a new account, without using up the setup token', async () => {
    const { token } = await builtIn.setupTokens.issue()
    const form = { grant_type: 'urn:otpd:setup-token', setup_token: token, email: 'new@example.com' }
    const attempt = (secret: string) => server.postForm('/v1/auth/token', { ...form, password: secret })
    await expectFailure(attempt('short'), 400, {
      error: 'invalid_request',
      error_description: 'password: Expected at least 12 characters and at most 1,024 bytes.',
      details: [
        {
          in: 'body',
          path: 'password',
          code: 'INVALID',
          message: 'Expected at least 12 characters and at most 1,024 bytes.',
        },
      ],
    })
    await readTokens(attempt(password))
  })

  test('an e-mail address that is taken', async () => {
    const { email } = await newAccount()
    const { token } = await builtIn.setupTokens.issue()
    const form = { grant_type: 'urn:otpd:setup-token', setup_token: token, email, password }
    await expectFailure(server.postForm('/v1/auth/token', form), 400, {
      error: 'invalid_request',
      reason: 'EMAIL_TAKEN',
    })
  })

  test('a body that is no form, and one over 64 KiB', async () => {
    await expectFailure(post('{"grant_type":"password"}', 'application/json'), 415, {
      error: 'invalid_request',
    })
    const large = `grant_type=password&username=a&password=${'x'.repeat(64 * 1024)}`
    expect((await post(large)).status).toBe(413)
    const chunkedBody = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(large))
        controller.close()
      },
    })
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const chunked = fetch(`${server.url}/v1/auth/token`, { method: 'POST', headers, body: chunkedBody })
    await expectFailure(chunked, 413, { error: 'invalid_request' })
  })

  test('every method but POST', async () => {
    const response = await server.get('/v1/auth/token')
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('signing keys', () => {
  const publishedKeys = async (): Promise<Record<string, unknown>[]> =>
    JSON.parse(await (await server.get('/v1/auth/jwks.json')).text()).keys

  test('any OpenID client discovers them and verifies tokens with them', async () => {
    const { email, developer } = await newAccount()
    const { id_token: idToken } = await readTokens(login(email))
    const issuer = `${server.url}/v1/auth`
    const keys = createKeySource({ load: createRemoteKeys({ issuer }), clock: service.clock })
    const { verify } = createIdTokenVerifier({
      issuer,
      audiences: ['otpd'],
      keys,
      clock: service.clock,
      lifetime: { maxHours: 24 },
    })
    expect(await verify(idToken)).toMatchObject({ subject: developer.id, email })
  })

  test('rotation signs with a new key immediately and keeps older tokens valid', async () => {
    const { email } = await newAccount()
    const old = await readTokens(login(email))
    await expectProfile(old.id_token)
    const kid = await builtIn.signingKeys.rotate()
    const newTokens = await readTokens(login(email))
    expect(decodeProtectedHeader(newTokens.id_token).kid).toBe(kid)
    await expectProfile(newTokens.id_token)
    await expectProfile(old.id_token)
    service.clock.advance(minutes(60))
    const published = await publishedKeys()
    expect(published).toHaveLength(1)
    expect(published[0]).toMatchObject({ kid, alg: 'ES256', use: 'sig' })
  })

  test('no private key is published or stored in plain text', async () => {
    const published = await publishedKeys()
    for (const key of published) expect(key).not.toHaveProperty('d')
    const rows = await service.database.read.select().from(service.database.tables.signingKeys)
    expect(rows.length).toBeGreaterThan(0)
    for (const { privateKey } of rows) {
      expect(Buffer.from(privateKey, 'base64url').toString('latin1')).not.toContain('"d"')
    }
  })
})

test('a new public URL of the server keeps accounts and sessions', async () => {
  const { email, developer } = await newAccount()
  const before = await readTokens(login(email))
  const moved = await startIdentityServer(service, { publicUrl: 'https://otpd.example' })
  try {
    const form = { grant_type: 'refresh_token', refresh_token: before.refresh_token }
    const { id_token: idToken } = await readTokens(moved.postForm('/v1/auth/token', form))
    expect(decodeJwt(idToken).iss).toBe('https://otpd.example/v1/auth')
    const profile = await (await moved.get('/v1/developer/me', idToken)).json()
    expect(profile).toMatchObject({ data: { id: developer.id } })
    expect((await moved.get('/v1/developer/me', before.id_token)).status).toBe(401)
  } finally {
    await moved.stop()
  }
})

describe('a password change', () => {
  const change = (token: string | undefined, body: unknown) =>
    fetch(`${server.url}/v1/auth/password`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    })
  const newPassword = 'another password!'

  test('requires the current password and ends every session', async () => {
    const { email } = await newAccount()
    const tokens = await readTokens(login(email))
    const wrong = await change(tokens.id_token, { currentPassword: 'wrong horse', newPassword })
    expect(wrong.status).toBe(400)
    expect(await wrong.json()).toMatchObject({ error: { details: [{ path: 'currentPassword' }] } })
    const changed = await change(tokens.id_token, { currentPassword: password, newPassword })
    expect(await changed.json()).toEqual({ data: { changed: true } })
    await expectFailure(refresh(tokens.refresh_token), 400, { error: 'invalid_grant' })
    await expectRevoked(tokens.id_token)
    // In the same second.
    await expectProfile((await readTokens(login(email, newPassword))).id_token)
  })

  test('is not refused while a stolen session uses up the calls of a minute', async () => {
    const { email } = await newAccount()
    const stolen = await readTokens(login(email))
    for (const path of ['/v1/projects', '/v1/tokens']) {
      await Promise.all(Array.from({ length: 600 }, () => server.get(path, stolen.id_token)))
      const error = { reason: 'CONSOLE_RATE' }
      await expectFailure(server.get(path, stolen.id_token), 429, { error })
    }
    const own = await readTokens(login(email))
    expect((await change(own.id_token, { currentPassword: password, newPassword })).status).toBe(200)
    await expectRevoked(stolen.id_token)
  })

  test('is 401 without a token, 400 with a short password', async () => {
    expect((await change(undefined, {})).status).toBe(401)
    const { email } = await newAccount()
    const { id_token: idToken } = await readTokens(login(email))
    expect((await change(idToken, { currentPassword: password, newPassword: 'short' })).status).toBe(400)
  })
})

test('a disabled developer can neither log in, refresh nor use a token', async () => {
  const { email, developer } = await newAccount()
  const tokens = await readTokens(login(email))
  await service.store.write((tx) =>
    tx.developers.update(developer.id, { status: 'disabled' }, service.clock.now()),
  )
  await expectFailure(login(email), 400, { error: 'invalid_grant' })
  await expectFailure(refresh(tokens.refresh_token), 400, { error: 'invalid_grant' })
  const refused = await server.get('/v1/developer/me', tokens.id_token)
  expect(refused.status).toBe(403)
  expect(await refused.json()).toMatchObject({ error: { code: 'FORBIDDEN', reason: 'ACCOUNT_NOT_ALLOWED' } })
})
