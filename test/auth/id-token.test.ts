import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { exportSPKI } from 'jose'
import { createRemoteKeys } from '../../src/auth/discovery.ts'
import { createIdTokenVerifier } from '../../src/auth/id-token.ts'
import { createKeySource } from '../../src/auth/jwks.ts'
import { makeSigningKey, startFakeOidcProvider, startOidcProvider, type SigningKey } from '../helpers/oidc.ts'

const nowMs = Date.UTC(2026, 10, 20, 12)
const nowSeconds = nowMs / 1000
const clock = { now: () => nowMs }
const exceeded: number[] = []
const lifetime = { maxHours: 24, onExceeded: (hours: number) => void exceeded.push(hours) }

let forger: Awaited<ReturnType<typeof startFakeOidcProvider>>
let stranger: SigningKey
let verify: (token: string | undefined) => Promise<unknown>

beforeAll(async () => {
  forger = await startFakeOidcProvider()
  stranger = await makeSigningKey('RS256', 'k1')
  const keys = createKeySource({ load: createRemoteKeys({ issuer: forger.issuer }), clock })
  const audiences = [forger.audience, 'client-2']
  verify = createIdTokenVerifier({ issuer: forger.issuer, audiences, keys, clock, lifetime }).verify
})
afterAll(() => forger.stop())

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const expectInvalid = (token: string) =>
  expect(verify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED', reason: 'TOKEN_INVALID' })

describe('accepts', () => {
  test('a valid token, and returns its claims', async () => {
    const claims = { email: 'ada@example.com', email_verified: true, name: 'Ada' }
    expect(await verify(await forger.sign(nowMs, claims))).toEqual({
      issuer: forger.issuer,
      subject: 'user-1',
      email: 'ada@example.com',
      emailVerified: true,
      name: 'Ada',
      issuedAtMs: nowMs,
      expiresAtMs: nowMs + 3_600_000,
    })
  })

  test.each(['PS256', 'ES256', 'EdDSA'])('a token signed with %s', async (alg) => {
    const key = await makeSigningKey(alg)
    const keys = createKeySource({ load: async () => ({ keys: [key.publicJwk] }), clock })
    const verifier = createIdTokenVerifier({
      issuer: forger.issuer,
      audiences: ['client-1'],
      keys,
      clock,
      lifetime,
    })
    expect(await verifier.verify(await forger.sign(nowMs, {}, {}, key))).toMatchObject({ subject: 'user-1' })
  })

  test('any accepted audience, and several of them when the authorized party is ours', async () => {
    expect(await verify(await forger.sign(nowMs, { aud: 'client-2' }))).toBeDefined()
    expect(
      await verify(await forger.sign(nowMs, { aud: ['project', 'client-1'], azp: 'client-1' })),
    ).toBeDefined()
  })

  test('no typ, typ JWT in any case, and no kid while there is one key', async () => {
    expect(await verify(await forger.sign(nowMs, {}, { typ: 'jwt' }))).toBeDefined()
    expect(await verify(await forger.sign(nowMs, {}, { kid: undefined }))).toBeDefined()
  })

  test('30 seconds of clock skew', async () => {
    expect(await verify(await forger.sign(nowMs, { exp: nowSeconds - 29 }))).toBeDefined()
    expect(
      await verify(await forger.sign(nowMs, { iat: nowSeconds + 30, nbf: nowSeconds + 30 })),
    ).toBeDefined()
  })

  test('an unverified e-mail address, marked as such', async () => {
    const unverified = await verify(await forger.sign(nowMs, { email: 'a@b.example', email_verified: 'no' }))
    expect(unverified).toMatchObject({ email: 'a@b.example', emailVerified: false })
  })
})

describe('refuses', () => {
  test('a missing token, with its own reason', async () => {
    for (const token of [undefined, '']) {
      await expect(verify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED', reason: 'TOKEN_MISSING' })
    }
  })

  test('an expired token, with its own reason', async () => {
    for (const exp of [nowSeconds - 30, nowSeconds - 3600]) {
      const token = await forger.sign(nowMs, { exp })
      await expect(verify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED', reason: 'TOKEN_EXPIRED' })
    }
  })

  test.each<[string, Record<string, unknown>]>([
    ['a foreign issuer', { iss: 'https://elsewhere.example' }],
    ['the issuer with a slash more', { iss: 'slash' }],
    ['a foreign audience', { aud: 'client-9' }],
    ['no audience', { aud: undefined }],
    ['several audiences without an authorized party', { aud: ['client-1', 'client-9'] }],
    ['a foreign authorized party', { azp: 'client-9' }],
    ['a foreign authorized party with several audiences', { aud: ['client-1', 'x'], azp: 'x' }],
    ['an authorized party that is not a string', { azp: ['client-1'] }],
    ['an empty subject', { sub: '' }],
    ['a subject that is a number', { sub: 5 }],
    ['no subject', { sub: undefined }],
    ['a subject of 256 characters', { sub: 'x'.repeat(256) }],
    ['no expiry', { exp: undefined }],
    ['an expiry that is text', { exp: String(nowSeconds + 99) }],
    ['no time of issue', { iat: undefined }],
    ['a time of issue that is text', { iat: String(nowSeconds) }],
    ['a time of issue in the future', { iat: nowSeconds + 31 }],
    ['a start in the future', { nbf: nowSeconds + 31 }],
    [
      'a logout token without a type',
      { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } },
    ],
  ])('%s', async (_name, claims) => {
    const changed = claims['iss'] === 'slash' ? { iss: `${forger.issuer}/` } : claims
    await expectInvalid(await signAnything(changed))
  })

  test.each([
    ['an access token', { typ: 'at+jwt' }],
    ['an access token in other words', { typ: 'application/AT+JWT' }],
    ['a logout token', { typ: 'logout+jwt' }],
    ['a kid that is a path', { kid: "../../dev/null' OR 1=1" }],
  ])('%s', async (_name, header) => {
    await expectInvalid(await forger.sign(nowMs, {}, header))
  })

  test('a lifetime of more than the allowed hours, and reports it once a minute', async () => {
    const day = 24 * 3600
    expect(await verify(await forger.sign(nowMs, { exp: nowSeconds + day }))).toBeDefined()
    for (const exp of [nowSeconds + day + 1, nowSeconds + 3650 * day])
      await expectInvalid(await forger.sign(nowMs, { exp }))
    expect(exceeded).toEqual([24 + 1 / 3600])
  })

  test('any other form of the same token', async () => {
    const token = await forger.sign(nowMs)
    const [header = '', payload = '', signature = ''] = token.split('.')
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    /** The same bytes, with another bit after the last. */
    const withTrailingBit = (part: string) =>
      part.slice(0, -1) + (alphabet[alphabet.indexOf(part.slice(-1)) ^ 1] ?? '')
    expect(Buffer.from(withTrailingBit(signature), 'base64url')).toEqual(Buffer.from(signature, 'base64url'))
    const forms = [
      `${header}.${payload}.${withTrailingBit(signature)}`,
      `${token}==`,
      `${header}.${payload}.${signature.slice(0, 9)}\n${signature.slice(9)}`,
      `${header}.${payload}.${signature.slice(0, 9)} ${signature.slice(9)}`,
      `${header}.${payload}.${signature}!`,
      `${header}=.${payload}.${signature}`,
      `${header}.${payload}=.${signature}`,
      `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}=`,
      `${token}.`,
      `.${token}`,
    ]
    for (const form of forms) {
      // With and without the original in the cache.
      await expectInvalid(form)
      expect(await verify(token)).toBeDefined()
      await expectInvalid(form)
    }
  })

  test('another key under the same kid, embedded or not', async () => {
    await expectInvalid(await forger.sign(nowMs, {}, {}, stranger))
    await expectInvalid(await forger.sign(nowMs, {}, { jwk: stranger.publicJwk, kid: undefined }, stranger))
    await expectInvalid(await forger.sign(nowMs, {}, { jku: `${forger.issuer}/elsewhere` }, stranger))
  })

  test('no algorithm, and HMAC with the public key', async () => {
    const [, payload, signature] = (await forger.sign(nowMs)).split('.')
    for (const alg of ['none', 'nOnE']) {
      await expectInvalid(`${base64url({ alg, kid: 'k1' })}.${payload}.`)
      await expectInvalid(`${base64url({ alg, kid: 'k1' })}.${payload}.${signature}`)
    }
    const signed = `${base64url({ alg: 'HS256', kid: 'k1' })}.${payload}`
    const hmac = createHmac('sha256', await exportSPKI(forger.key.publicKey))
      .update(signed)
      .digest('base64url')
    await expectInvalid(`${signed}.${hmac}`)
  })

  test('an algorithm of the provider that is not on the allow-list', async () => {
    const key = await makeSigningKey('RS512', 'k512')
    const keys = createKeySource({ load: async () => ({ keys: [key.publicJwk] }), clock })
    const verifier = createIdTokenVerifier({
      issuer: forger.issuer,
      audiences: ['client-1'],
      keys,
      clock,
      lifetime,
    })
    await expect(verifier.verify(await forger.sign(nowMs, {}, {}, key))).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
    })
  })

  test('an unknown critical header, a modified token and a text that is no token', async () => {
    const validToken = await forger.sign(nowMs)
    const [header, payload, signature] = validToken.split('.')
    await expectInvalid(
      `${base64url({ alg: 'RS256', kid: 'k1', crit: ['x'], x: 1 })}.${payload}.${signature}`,
    )
    const forged = base64url({
      iss: forger.issuer,
      aud: 'client-1',
      sub: 'root',
      iat: nowSeconds,
      exp: nowSeconds + 60,
    })
    await expectInvalid(`${header}.${forged}.${signature}`)
    await expectInvalid(`${validToken.slice(0, -4)}AAAA`)
    await expectInvalid(`${validToken}.x`)
    for (const text of ['x', 'a.b.c', '..', '\u0000', 'é.é.é']) await expectInvalid(text)
  })

  test('a token over 8 KiB without parsing it', async () => {
    await expectInvalid(await forger.sign(nowMs, { padding: 'x'.repeat(8192) }))
    expect(await verify(await forger.sign(nowMs, { padding: 'x'.repeat(4096) }))).toBeDefined()
  })

  test('the error contains no part of the token', async () => {
    const token = await forger.sign(nowMs, { sub: '', email: 'secret@example.com' })
    const error = await verify(token).catch((error: unknown) => error)
    expect(error).toMatchObject({ reason: 'TOKEN_INVALID' })
    expect(Bun.inspect(error)).not.toContain(token.split('.')[1] ?? token)
    expect(String(error)).not.toContain('secret')
  })
})

test('a token of a certified provider is accepted, but not for another client', async () => {
  const provider = await startOidcProvider()
  try {
    const person = { subject: 'alice', email: 'alice@example.com', emailVerified: true, name: 'Alice' }
    const token = await provider.idTokenFor(person)
    const wallClock = { now: () => Date.now() }
    const keys = createKeySource({ load: createRemoteKeys({ issuer: provider.issuer }), clock: wallClock })
    const verifierFor = (audience: string) =>
      createIdTokenVerifier({
        issuer: provider.issuer,
        audiences: [audience],
        keys,
        clock: wallClock,
        lifetime,
      })
    expect(await verifierFor(provider.clientId).verify(token)).toMatchObject({
      issuer: provider.issuer,
      ...person,
    })
    await expect(verifierFor('other').verify(token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  } finally {
    provider.stop()
  }
})

/** Signs claims that jose's builder may refuse, such as a textual expiry. */
async function signAnything(claims: Record<string, unknown>): Promise<string> {
  const validClaims = {
    iss: forger.issuer,
    aud: 'client-1',
    sub: 'user-1',
    iat: nowSeconds,
    exp: nowSeconds + 3600,
  }
  const signed = `${base64url({ alg: 'RS256', kid: 'k1' })}.${base64url({ ...validClaims, ...claims })}`
  const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', forger.key.privateKey, Buffer.from(signed))
  return `${signed}.${Buffer.from(signature).toString('base64url')}`
}
