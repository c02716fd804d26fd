import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createRemoteKeys, type FetchKeys } from '../../src/auth/discovery.ts'
import { createIdTokenVerifier } from '../../src/auth/id-token.ts'
import { createKeySource } from '../../src/auth/jwks.ts'
import { makeSigningKey, startFakeOidcProvider } from '../helpers/oidc.ts'

let nowMs = 0
let provider: Awaited<ReturnType<typeof startFakeOidcProvider>>
let failures: unknown[]
let isTimedOut: boolean
const clock = { now: () => nowMs }
const seconds = (count: number) => count * 1000
const minutes = (count: number) => count * 60_000

beforeEach(async () => {
  nowMs = Date.UTC(2026, 10, 20, 12)
  failures = []
  isTimedOut = true
  provider = await startFakeOidcProvider()
})
afterEach(() => provider.stop())

/** Times out only while the provider hangs, however busy the machine is. */
const fetchKeys: FetchKeys = (url, init) =>
  fetch(url, provider.state.mode === 'hang' && isTimedOut ? init : { ...init, signal: null })

function verifier(options: { jwksUri?: string; issuer?: string } = {}) {
  const issuer = options.issuer ?? provider.issuer
  const load = createRemoteKeys({ timeoutMs: 200, fetch: fetchKeys, ...options, issuer })
  const keys = createKeySource({ load, clock, onLoadFailed: (cause) => failures.push(cause) })
  return createIdTokenVerifier({
    issuer,
    audiences: [provider.audience],
    keys,
    clock,
    lifetime: { maxHours: 240 },
  })
}

/** A token valid for ten days, so that only the keys' age matters. */
const longLived = (signer = provider.key) => provider.sign(nowMs, { exp: nowMs / 1000 + 864_000 }, {}, signer)
const unavailable = { code: 'UNAVAILABLE', reason: 'IDENTITY_PROVIDER_UNAVAILABLE' }
const invalid = { code: 'UNAUTHENTICATED', reason: 'TOKEN_INVALID' }

describe('loading', () => {
  test('one fetch serves all calls for ten minutes', async () => {
    const { verify } = verifier()
    const token = await longLived()
    await Promise.all(Array.from({ length: 20 }, () => verify(token)))
    nowMs += minutes(10) - 1
    await verify(token)
    expect(provider.state).toMatchObject({ jwksFetchCount: 1, discoveryFetchCount: 1 })
    nowMs += 1
    await Promise.all(Array.from({ length: 20 }, () => verify(token)))
    expect(provider.state).toMatchObject({ jwksFetchCount: 2, discoveryFetchCount: 1 })
  })

  test('a withdrawn key is refused after the refresh', async () => {
    const { verify } = verifier()
    const token = await longLived()
    await verify(token)
    provider.state.keys = [(await makeSigningKey('RS256', 'k2')).publicJwk]
    nowMs += minutes(10)
    await expect(verify(token)).rejects.toMatchObject(invalid)
  })

  test('a configured key URL skips discovery', async () => {
    const { verify } = verifier({ jwksUri: `${provider.issuer}/jwks` })
    await verify(await longLived())
    expect(provider.state).toMatchObject({ jwksFetchCount: 1, discoveryFetchCount: 0 })
  })

  test.each([
    ['names another issuer', { issuer: 'https://elsewhere.example' }],
    ['has no address of the keys', { jwks_uri: 5 }],
    ['sends to an address without TLS', { jwks_uri: 'http://192.0.2.1/jwks' }],
  ])('a discovery document that %s yields no keys', async (_name, document) => {
    provider.state.discovery = document
    await expect(verifier().verify(await longLived())).rejects.toMatchObject(unavailable)
    expect(provider.state.jwksFetchCount).toBe(0)
    expect(failures).toHaveLength(1)
  })

  test('the issuer of the discovery document is compared including its slash', async () => {
    const issuer = `${provider.issuer}/`
    const { verify } = verifier({ issuer })
    const token = await provider.sign(nowMs, { iss: issuer })
    await expect(verify(token)).rejects.toMatchObject(unavailable)
    provider.state.discovery = { issuer }
    nowMs += seconds(30)
    expect(await verify(token)).toMatchObject({ issuer })
  })

  test.each(['error', 'hang', 'endless', 'redirect', 'garbage', 'empty'] as const)(
    'a provider in mode "%s" yields no keys, and is asked again after 30 seconds',
    async (mode) => {
      const { verify } = verifier()
      const token = await longLived()
      provider.state.mode = mode
      await expect(verify(token)).rejects.toMatchObject({ ...unavailable, retryAfterSeconds: 30 })
      provider.state.mode = 'ok'
      nowMs += seconds(29)
      await expect(verify(token)).rejects.toMatchObject({ ...unavailable, retryAfterSeconds: 1 })
      nowMs += seconds(1)
      expect(await verify(token)).toMatchObject({ subject: 'user-1' })
    },
  )
})

describe('an unknown key id', () => {
  test('200 concurrent calls, again and again, cause at most five fetches in 30 seconds', async () => {
    const { verify } = verifier()
    await verify(await longLived())
    const strangers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => provider.sign(nowMs, {}, { kid: `unknown-${i}` })),
    )
    const refused = async () => {
      const results = await Promise.allSettled(strangers.map((token) => verify(token)))
      expect(results.every(({ status }) => status === 'rejected')).toBe(true)
    }
    for (let round = 0; round < 10; round += 1) await refused()
    expect(provider.state.jwksFetchCount).toBe(5)
    nowMs += seconds(30)
    for (let round = 0; round < 10; round += 1) await refused()
    expect(provider.state.jwksFetchCount).toBe(10)
  })

  test('a rotated key is found at once, and within 30 seconds of a flood of unknown ones', async () => {
    const { verify } = verifier()
    const old = await longLived()
    await verify(old)
    const rotated = await makeSigningKey('ES256', 'k2')
    provider.state.keys = [provider.key.publicJwk, rotated.publicJwk]
    const freshToken = await longLived(rotated)
    await Promise.all([verify(freshToken), verify(freshToken), verify(old)])
    expect(provider.state.jwksFetchCount).toBe(2)
    for (let i = 0; i < 5; i += 1)
      await expect(verify(await provider.sign(nowMs, {}, { kid: `unknown-${i}` }))).rejects.toMatchObject(
        invalid,
      )
    const next = await makeSigningKey('ES256', 'k3')
    provider.state.keys = [next.publicJwk]
    const nextToken = await longLived(next)
    nowMs += seconds(29)
    await expect(verify(nextToken)).rejects.toMatchObject(invalid)
    nowMs += seconds(1)
    await verify(nextToken)
  })
})

describe('an outage of the provider', () => {
  test('leaves known keys valid for 24 hours and no longer', async () => {
    const { verify } = verifier()
    const token = await longLived()
    await verify(token)
    provider.state.mode = 'error'
    for (const hours of [1, 22]) {
      nowMs += minutes(60) * hours
      await verify(token)
    }
    nowMs += minutes(60) - 1
    await verify(token)
    nowMs += 1
    await expect(verify(token)).rejects.toMatchObject(unavailable)
  })

  test('causes at most one request to the provider in 30 seconds, even with unknown keys', async () => {
    const { verify } = verifier()
    const knownToken = await longLived()
    const unknown = await provider.sign(nowMs, { exp: nowMs / 1000 + 864_000 }, { kid: 'k9' })
    await verify(knownToken)
    provider.state.mode = 'error'
    nowMs += minutes(11)
    for (let i = 0; i < 5; i += 1) {
      await verify(knownToken)
      await expect(verify(unknown)).rejects.toMatchObject(unavailable)
    }
    expect(provider.state.jwksFetchCount).toBe(2)
    nowMs += seconds(30)
    await expect(verify(unknown)).rejects.toMatchObject(unavailable)
    await verify(knownToken)
    expect(provider.state.jwksFetchCount).toBe(3)
  })

  test('delays only the first calls; later retries run in the background', async () => {
    const { verify } = verifier()
    const token = await longLived()
    await verify(token)
    provider.state.mode = 'hang'
    nowMs += minutes(10)
    await verify(token)
    expect(failures).toHaveLength(1)
    isTimedOut = false
    nowMs += seconds(30)
    // A call that waited for the second attempt would hang.
    await verify(token)
    expect(failures).toHaveLength(1)
  })

  test('ends with the first successful fetch, which brings new keys', async () => {
    const { verify } = verifier()
    await verify(await longLived())
    provider.state.mode = 'error'
    nowMs += minutes(11)
    const rotated = await makeSigningKey('RS256', 'k2')
    const freshToken = await longLived(rotated)
    await expect(verify(freshToken)).rejects.toMatchObject(unavailable)
    provider.state.mode = 'ok'
    provider.state.keys = [rotated.publicJwk]
    nowMs += seconds(30)
    expect(await verify(freshToken)).toMatchObject({ subject: 'user-1' })
  })
})
