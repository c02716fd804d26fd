import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { exportSPKI, SignJWT, type JWTPayload } from 'jose'
import { createRemoteKeys } from '../../src/auth/discovery.ts'
import { createFirebaseProofs, firebaseIssuer } from '../../src/auth/firebase-proofs.ts'
import { createKeySource } from '../../src/auth/jwks.ts'
import { createTestProofs } from '../../src/auth/test-proofs.ts'
import { isRejected } from '../../src/domain/model/rejected.ts'
import { makeSigningKey, startFakeOidcProvider, type SigningKey } from '../helpers/oidc.ts'

const startMs = Date.UTC(2026, 10, 20, 12)
let nowMs = startMs
const clock = { now: () => nowMs }
const project = '123456789012'
const issuer = firebaseIssuer(project)
const minutes = (count: number) => count * 60_000

let google: Awaited<ReturnType<typeof startFakeOidcProvider>>
let key: SigningKey
let check: ReturnType<typeof createFirebaseProofs>

/** Creates a check that loads the keys from the fake server as it does from Google's. */
function createCheck() {
  const load = createRemoteKeys({ issuer: google.issuer, jwksUri: `${google.issuer}/jwks`, timeoutMs: 2000 })
  return createFirebaseProofs([{ issuers: [issuer], keys: createKeySource({ load, clock }) }], clock)
}

beforeAll(async () => {
  google = await startFakeOidcProvider()
  key = await makeSigningKey('ES256', 'g1')
})
afterAll(() => google.stop())
beforeEach(() => {
  nowMs = startMs
  google.state.keys = [key.publicJwk]
  google.state.mode = 'ok'
  check = createCheck()
})

/** Undefined leaves a claim out. */
type Claims = { [K in keyof JWTPayload]: unknown }
type Changes = { claims?: Claims; header?: Record<string, unknown>; by?: SigningKey }

/** Signs a token as https://firebase.google.com/docs/phone-number-verification/verify-tokens describes it. */
function sign({ claims, header, by = key }: Changes = {}): Promise<string> {
  const seconds = Math.floor(nowMs / 1000)
  const payload = {
    iss: issuer,
    aud: [issuer, firebaseIssuer('shop-12345')],
    sub: '+14155550100',
    iat: seconds,
    exp: seconds + 3600,
    jti: crypto.randomUUID(),
    nonce: 'n1',
    ...(claims as JWTPayload),
  }
  return new SignJWT(payload)
    .setProtectedHeader({ alg: by.alg, typ: 'JWT', kid: key.kid, ...header })
    .sign(by.privateKey)
}

const prove = (token: string, nonce?: string) => check({ type: 'firebase-pnv', token, nonce })

async function reasonOf(token: string, nonce?: string): Promise<string | undefined> {
  const checked = await prove(token, nonce)
  return isRejected(checked) ? checked.rejected.reason : undefined
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())

/** Replaces claims or the header without signing again. */
function edit(token: string, { header, claims }: { header?: object; claims?: object }): string {
  const [head, payload, signature] = token.split('.')
  return [encode({ ...decode(head), ...header }), encode({ ...decode(payload), ...claims }), signature].join(
    '.',
  )
}

test('a valid token proves its phone, and its hash is the same for each form of the signature', async () => {
  const token = await sign()
  const proved = await prove(token, 'n1')
  expect(proved).toMatchObject({ phone: '+14155550100', tokenHash: expect.stringMatching(/^[\w-]{43}$/) })
  // With ECDSA, (r, n - s) signs what (r, s) signs.
  const [head, payload, signature = ''] = token.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')])
  expect(await prove([head, payload, other.toString('base64url')].join('.'))).toEqual(proved)
})

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Sets bits after the last byte, which lenient decoders ignore. */
const unusedBits = (digit: string) => digits.charAt(digits.indexOf(digit) + 1)

/** Bad tokens by class, each with its reason. */
const classes: Array<
  [name: string, reason: string, make: (stranger: SigningKey) => Promise<string> | string]
> = [
  ['signed by a stranger with the id of a real key', 'PROOF_SIGNATURE', (by) => sign({ by })],
  ['of a key that is not published', 'PROOF_SIGNATURE', (by) => sign({ by, header: { kid: 'g9' } })],
  [
    'with another phone than was signed',
    'PROOF_SIGNATURE',
    async () => edit(await sign(), { claims: { sub: '+14155550199' } }),
  ],
  [
    'with a longer life than was signed',
    'PROOF_SIGNATURE',
    async () => edit(await sign(), { claims: { exp: nowMs / 1000 + 7200 } }),
  ],
  [
    'with the signature of another token',
    'PROOF_SIGNATURE',
    async () => [...(await sign()).split('.').slice(0, 2), (await sign()).split('.')[2]].join('.'),
  ],
  [
    'without a signature (alg none)',
    'PROOF_SIGNATURE',
    async () =>
      `${edit(await sign(), { header: { alg: 'none' } })
        .split('.')
        .slice(0, 2)
        .join('.')}.`,
  ],
  [
    'signed with the public key as a secret (HS256)',
    'PROOF_SIGNATURE',
    async () => {
      const signed = edit(await sign(), { header: { alg: 'HS256' } })
        .split('.')
        .slice(0, 2)
        .join('.')
      return `${signed}.${createHmac('sha256', await exportSPKI(key.publicKey))
        .update(signed)
        .digest('base64url')}`
    },
  ],
  [
    'of another project',
    'PROOF_FOREIGN',
    () => sign({ claims: { iss: firebaseIssuer('999999999999'), aud: [firebaseIssuer('999999999999')] } }),
  ],
  [
    'of another project for ours',
    'PROOF_FOREIGN',
    () => sign({ claims: { iss: firebaseIssuer('999999999999') } }),
  ],
  [
    'of our project for another',
    'PROOF_FOREIGN',
    () => sign({ claims: { aud: [firebaseIssuer('999999999999')] } }),
  ],
  [
    'of Firebase Authentication',
    'PROOF_FOREIGN',
    () => sign({ claims: { iss: `https://securetoken.google.com/${project}`, aud: project } }),
  ],
  ['without an audience', 'PROOF_FOREIGN', () => sign({ claims: { aud: undefined } })],
  [
    'of the test issuer of a server in development mode',
    'PROOF_SIGNATURE',
    () => createTestProofs(clock, () => crypto.randomUUID()).issue({ phone: '+14155550100' }),
  ],
  [
    'that expired',
    'PROOF_EXPIRED',
    () => sign({ claims: { iat: nowMs / 1000 - 7200, exp: nowMs / 1000 - 31 } }),
  ],
  ['from the future', 'PROOF_FROM_FUTURE', () => sign({ claims: { iat: nowMs / 1000 + 31 } })],
  ['that is not valid yet', 'PROOF_FROM_FUTURE', () => sign({ claims: { nbf: nowMs / 1000 + 31 } })],
  [
    'that lives longer than it is remembered',
    'PROOF_MALFORMED',
    () => sign({ claims: { exp: nowMs / 1000 + 13 * 3600 } }),
  ],
  ['without a phone', 'PROOF_MALFORMED', () => sign({ claims: { sub: undefined } })],
  ['whose phone is no text', 'PROOF_MALFORMED', () => sign({ claims: { sub: 14155550100 } })],
  ['whose phone is a list', 'PROOF_MALFORMED', () => sign({ claims: { sub: ['+14155550100'] } })],
  ['without an expiry', 'PROOF_MALFORMED', () => sign({ claims: { exp: undefined } })],
  ['without a time of issue', 'PROOF_MALFORMED', () => sign({ claims: { iat: undefined } })],
  ['of another type', 'PROOF_MALFORMED', () => sign({ header: { typ: 'at+jwt' } })],
  ['without a type', 'PROOF_MALFORMED', () => sign({ header: { typ: undefined } })],
  [
    'that is cut off',
    'PROOF_MALFORMED',
    async () => (await sign()).slice(0, -(1 + Math.floor(Math.random() * 300))),
  ],
  ['with bits after the end', 'PROOF_MALFORMED', async () => (await sign()).replace(/.$/, unusedBits)],
  ['that is too long', 'PROOF_MALFORMED', () => sign({ claims: { pad: 'x'.repeat(9000) } })],
  [
    'of random bytes',
    'PROOF_MALFORMED',
    () => crypto.getRandomValues(new Uint8Array(200)).toBase64({ alphabet: 'base64url' }),
  ],
]

test('of 10,000 forged, foreign, old and malformed tokens none is accepted', async () => {
  const stranger = await makeSigningKey('ES256', 'g1')
  const perClass = Math.ceil(10_000 / classes.length)
  for (const [name, reason, make] of classes) {
    const found = new Map<string | undefined, number>()
    for (let n = 0; n < perClass; n++) {
      const seen = await reasonOf(await make(stranger))
      // A cut in the signature leaves three parts.
      const known = name === 'that is cut off' && seen === 'PROOF_SIGNATURE' ? reason : seen
      found.set(known, (found.get(known) ?? 0) + 1)
    }
    expect([name, [...found]]).toEqual([name, [[reason, perClass]]])
  }
}, 120_000)

test('a nonce must be that of the call', async () => {
  expect(await reasonOf(await sign(), 'n2')).toBe('PROOF_NONCE')
  expect(await reasonOf(await sign({ claims: { nonce: undefined } }), 'n1')).toBe('PROOF_NONCE')
  expect(await reasonOf(await sign({ claims: { nonce: ['n1'] } }), 'n1')).toBe('PROOF_NONCE')
  expect(await reasonOf(await sign())).toBeUndefined()
})

test('a server without projects accepts nothing', async () => {
  check = createFirebaseProofs([], clock)
  expect(await reasonOf(await sign())).toBe('PROOF_NOT_CONFIGURED')
})

test('the test issuer proves any phone, and only where it is trusted', async () => {
  const testProofs = createTestProofs(clock, () => crypto.randomUUID())
  check = createFirebaseProofs(
    [{ issuers: [issuer], keys: { find: () => Promise.reject(new Error()) } }, testProofs],
    clock,
  )
  const token = await testProofs.issue({ phone: '+4915112345678', nonce: 'n3' })
  expect(await prove(token, 'n3')).toMatchObject({ phone: '+4915112345678' })
  expect(await reasonOf(edit(token, { claims: { sub: '+4915112345679' } }))).toBe('PROOF_SIGNATURE')
})

describe('the key set', () => {
  test('is loaded once for many tokens, and again for a key that was rotated in', async () => {
    const before = google.state.jwksFetchCount
    await Promise.all(
      Array.from({ length: 20 }, async () => expect(await reasonOf(await sign())).toBeUndefined()),
    )
    expect(google.state.jwksFetchCount - before).toBe(1)
    const next = await makeSigningKey('ES256', 'g2')
    google.state.keys = [key.publicJwk, next.publicJwk]
    expect(await reasonOf(await sign({ by: next, header: { kid: 'g2' } }))).toBeUndefined()
    expect(google.state.jwksFetchCount - before).toBe(2)
  })

  test('forgets a key that was withdrawn after ten minutes', async () => {
    expect(await reasonOf(await sign())).toBeUndefined()
    google.state.keys = [(await makeSigningKey('ES256', 'g2')).publicJwk]
    nowMs += minutes(10)
    expect(await reasonOf(await sign())).toBe('PROOF_SIGNATURE')
  })

  test.each(['error', 'garbage', 'redirect', 'endless'] as const)(
    'that cannot be loaded (%s) is 503 with the time of the next try, and known keys outlast it',
    async (mode) => {
      google.state.mode = mode
      const unavailable = { code: 'UNAVAILABLE', reason: 'PROOF_KEYS_UNAVAILABLE', retryAfterSeconds: 30 }
      await expect(prove(await sign())).rejects.toMatchObject(unavailable)
      google.state.mode = 'ok'
      nowMs += 30_000
      expect(await reasonOf(await sign())).toBeUndefined()
      google.state.mode = mode
      nowMs += minutes(60)
      expect(await reasonOf(await sign())).toBeUndefined()
    },
  )
})

describe('a clock that is wrong', () => {
  test('by half a minute makes no difference', async () => {
    const token = await sign()
    nowMs -= 30_000
    expect(await reasonOf(token)).toBeUndefined()
    nowMs = startMs + 3_600_000 + 29_000
    expect(await reasonOf(token)).toBeUndefined()
  })

  test('by more is told with the time of the token', async () => {
    const token = await sign()
    nowMs -= 31_000
    const issuedAt = new Date(startMs).toISOString()
    expect(await prove(token)).toMatchObject({
      rejected: { reason: 'PROOF_FROM_FUTURE', metadata: { issuedAt } },
    })
    nowMs = startMs + 2 * 3_600_000
    const expiredAt = new Date(startMs + 3_600_000).toISOString()
    expect(await prove(token)).toMatchObject({
      rejected: { reason: 'PROOF_EXPIRED', metadata: { expiredAt } },
    })
  })
})
