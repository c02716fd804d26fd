import { createHash } from 'node:crypto'
import { decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../domain/model/clock.ts'
import { ServiceError } from '../domain/model/errors.ts'
import {
  proofLifetimeMaxHours,
  rejectProof,
  type CheckProof,
  type ProofReason,
} from '../domain/model/proof.ts'
import { isRejected, type Rejected } from '../domain/model/rejected.ts'
import { hourMs } from '../shared/durations.ts'
import type { KeySource } from './jwks.ts'
import { isStrictJws } from './strict-jws.ts'

/** Keys of all projects (https://firebase.google.com/docs/phone-number-verification/verify-tokens). */
export const firebaseKeysUrl = 'https://fpnv.googleapis.com/v1beta/jwks'

/** Issuer of the tokens of a project, and the audience that names it. */
export const firebaseIssuer = (project: string) => `https://fpnv.googleapis.com/projects/${project}`

/** Issuers whose tokens have keys in common. */
export type ProofIssuers = { issuers: readonly string[]; keys: Pick<KeySource, 'find'> }

const tokenBytesMax = 8 * 1024
const toleranceSeconds = 30

/**
 * Checks tokens of Firebase Phone Number Verification: type, signature (ES256), issuer, audience, times and nonce. The
 * subject is the phone number.
 *
 * @param trusted issuers by their keys; none refuses all tokens
 * @param clock wall clock, comparable with the issuer's
 */
export function createFirebaseProofs(trusted: readonly ProofIssuers[], clock: Clock): CheckProof {
  return async ({ token, nonce }) => {
    const [first] = trusted
    if (first === undefined) return rejectProof('PROOF_NOT_CONFIGURED')
    if (token.length > tokenBytesMax || !isStrictJws(token)) return rejectProof('PROOF_MALFORMED')
    const claimed = readIssuer(token)
    const { issuers, keys } = trusted.find((one) => one.issuers.includes(claimed ?? '')) ?? first
    // A token of another project is refused only after its signature: a forged one is not called foreign.
    const issuer = issuers.includes(claimed ?? '') ? [claimed ?? ''] : [...issuers]
    const payload = await verify(token, keys, issuer, clock)
    if (isRejected(payload)) return payload
    const { sub: phone } = payload
    // jose checks that the claim is there, not that it is a text.
    if (typeof phone !== 'string') return rejectProof('PROOF_MALFORMED')
    if (nonce !== undefined && payload['nonce'] !== nonce) return rejectProof('PROOF_NONCE')
    const signed = token.slice(0, token.lastIndexOf('.'))
    const tokenHash = createHash('sha256').update(signed).digest('base64url')
    return { phone, tokenHash }
  }
}

/** Reads the issuer that a token claims to have; undefined if it has none. */
function readIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** @throws UNAVAILABLE (PROOF_KEYS_UNAVAILABLE) */
async function verify(
  token: string,
  keys: ProofIssuers['keys'],
  issuer: string[],
  clock: Clock,
): Promise<JWTPayload | Rejected> {
  const nowMs = clock.now()
  const findKey: JWTVerifyGetKey = async (...header) => (await keys.find(...header)).key
  try {
    const { payload } = await jwtVerify(token, findKey, {
      issuer,
      audience: issuer,
      typ: 'JWT',
      algorithms: ['ES256'],
      clockTolerance: toleranceSeconds,
      requiredClaims: ['sub', 'exp', 'iat'],
      currentDate: new Date(nowMs),
    })
    return refuseTimes(payload, nowMs) ?? payload
  } catch (error) {
    if (error instanceof ServiceError) throw keysUnavailable(error)
    if (error instanceof errors.JWTExpired)
      return rejectProof('PROOF_EXPIRED', { expiredAt: toTime(error.payload.exp) })
    return rejectProof(reasonOf(error))
  }
}

/** Refuses a token from the future, and one that lives so long that it could be used again after it was forgotten. */
function refuseTimes({ iat = 0, exp = 0 }: JWTPayload, nowMs: number): Rejected | undefined {
  if (iat * 1000 > nowMs + toleranceSeconds * 1000)
    return rejectProof('PROOF_FROM_FUTURE', { issuedAt: toTime(iat) })
  if ((exp - iat) * 1000 > proofLifetimeMaxHours * hourMs) return rejectProof('PROOF_MALFORMED')
  return undefined
}

const toTime = (seconds: number | undefined) => new Date((seconds ?? 0) * 1000).toISOString()

function reasonOf(error: unknown): ProofReason {
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim } = error
    return claim === 'iss' || claim === 'aud'
      ? 'PROOF_FOREIGN'
      : claim === 'nbf'
        ? 'PROOF_FROM_FUTURE'
        : 'PROOF_MALFORMED'
  }
  const isUnsigned =
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JOSEAlgNotAllowed
  // All other errors of jose concern the form of the token.
  return isUnsigned ? 'PROOF_SIGNATURE' : 'PROOF_MALFORMED'
}

const keysUnavailable = (cause: ServiceError) =>
  new ServiceError(
    'UNAVAILABLE',
    'The keys of Firebase cannot be loaded. Try again shortly, or send a code.',
    {
      reason: 'PROOF_KEYS_UNAVAILABLE',
      retryAfterSeconds: cause.retryAfterSeconds ?? 1,
      cause,
    },
  )
