import { beforeEach, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, SignJWT } from 'jose'
import { createIdTokenVerifier } from '../../src/auth/id-token.ts'
import type { KeySet, KeySource } from '../../src/auth/jwks.ts'
import { makeSigningKey } from '../helpers/oidc.ts'

const key = await makeSigningKey('ES256', 'k1')
const issuer = 'https://idp.example'
const startMs = Date.UTC(2026, 10, 20, 12)
let nowMs: number
let lookupCount: number
let trusted: KeySet
let keys: KeySource
let verify: (token: string) => Promise<unknown>

const loadKeys = (): KeySet => ({
  find: createLocalJWKSet({ keys: [key.publicJwk] }),
  loadedAtMs: nowMs,
})

beforeEach(() => {
  nowMs = startMs
  lookupCount = 0
  trusted = loadKeys()
  keys = {
    trustedKeySet: async () => trusted,
    async find(...token) {
      lookupCount += 1
      const set = trusted
      return { key: await set.find(...token), set }
    },
  }
  verify = createIdTokenVerifier({
    issuer,
    audiences: ['client'],
    keys,
    clock: { now: () => nowMs },
    lifetime: { maxHours: 24 },
  }).verify
})

const sign = (claims: Record<string, unknown> = {}) =>
  new SignJWT({ iss: issuer, aud: 'client', sub: 'ada', iat: startMs / 1000, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
    .setExpirationTime(startMs / 1000 + 600)
    .sign(key.privateKey)

describe('a token that was verified', () => {
  test('is not verified again, and gives the same result', async () => {
    const token = await sign({ name: 'Ada' })
    const first = await verify(token)
    nowMs += 60_000
    expect(await verify(token)).toEqual(first)
    expect(lookupCount).toBe(1)
  })

  test('is accepted until its expiry plus the tolerance', async () => {
    const token = await sign()
    await verify(token)
    nowMs = startMs + 630_000 - 1
    await verify(token)
    expect(lookupCount).toBe(1)
    nowMs += 1
    await expect(verify(token)).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' })
  })

  test('is verified again after a clock rollback', async () => {
    const token = await sign({ nbf: startMs / 1000 })
    await verify(token)
    nowMs -= 31_000
    await expect(verify(token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  test('is verified again with each new key set', async () => {
    const token = await sign()
    await verify(token)
    trusted = loadKeys()
    await verify(token)
    await verify(token)
    expect(lookupCount).toBe(2)
  })

  test('is verified again if the keys were replaced during its verification', async () => {
    const token = await sign()
    const { find } = keys
    keys.find = async (...named) => {
      const found = await find(...named)
      trusted = loadKeys()
      return found
    }
    await verify(token)
    keys.find = find
    await verify(token)
    expect(lookupCount).toBe(2)
  })

  test('does not cover another signature or other claims', async () => {
    const [header, payload, signature] = (await sign()).split('.')
    await verify([header, payload, signature].join('.'))
    const [, otherPayload, otherSignature] = (await sign({ sub: 'grace' })).split('.')
    for (const forged of [
      [header, payload, otherSignature],
      [header, otherPayload, signature],
    ]) {
      await expect(verify(forged.join('.'))).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
    }
  })
})

test('a refused token is verified again each time', async () => {
  const token = await sign({ nbf: startMs / 1000 + 60 })
  await expect(verify(token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  nowMs += 60_000
  expect(await verify(token)).toMatchObject({ subject: 'ada' })
})

test('the thousand newest tokens are cached', async () => {
  const tokens = await Promise.all(Array.from({ length: 1001 }, (_, i) => sign({ sub: `user-${i}` })))
  for (const token of tokens) await verify(token)
  await verify(tokens[1] ?? '')
  expect(lookupCount).toBe(1001)
  await verify(tokens[0] ?? '')
  expect(lookupCount).toBe(1002)
})
