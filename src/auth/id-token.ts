import { hash } from 'node:crypto'
import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose'
import type { TokenLogin } from '../domain/accounts/developers.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { KeySet, KeySource } from './jwks.ts'
import { isStrictJws } from './strict-jws.ts'
import { hourMs, minuteMs } from '../shared/durations.ts'

type IdTokenVerifierOptions = {
  /** Compared exactly, including a trailing slash. A function if it is known only once the server listens. */
  issuer: string | (() => string)
  /** Issuer of the accounts, if it is not that of the tokens. */
  accountIssuer?: string
  /** Accepted audiences (client ids); at least one. */
  audiences: readonly string[]
  keys: KeySource
  clock: Clock
  lifetime: TokenLifetime
}

/** Limit for the lifetime of tokens, from `iat` to `exp`. */
export type TokenLifetime = {
  maxHours: number
  /** Called at most once a minute when a token exceeds it, for the log. */
  onExceeded?: ((hours: number) => void) | undefined
}

/**
 * Verifies an ID token of one provider.
 *
 * @throws UNAUTHENTICATED (TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED); UNAVAILABLE
 */
export type VerifyLogin = (token: string | undefined) => Promise<TokenLogin>

const tokenBytesMax = 8 * 1024
const toleranceSeconds = 30
/** OpenID Connect Core 1.0 §2: at most 255 ASCII characters. */
const subjectLengthMax = 255
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']

/**
 * Verifies ID tokens of one issuer: signature, issuer, audience, expiry, and the checks that jose leaves to
 * its callers. Valid tokens are cached until they expire or the key set changes; invalid ones are verified
 * again each time.
 */
export function createIdTokenVerifier(options: IdTokenVerifierOptions) {
  const { audiences, keys, clock, lifetime, accountIssuer } = options
  const issuerOption = options.issuer
  const cache = createTokenCache(keys, toleranceSeconds * 1000)
  let reportedAtMs = -Infinity

  function requireShortLifetime({ issuedAtMs, expiresAtMs }: TokenLogin, nowMs: number) {
    const hours = (expiresAtMs - issuedAtMs) / hourMs
    if (hours <= lifetime.maxHours) return
    if (nowMs - reportedAtMs >= minuteMs) {
      reportedAtMs = nowMs
      lifetime.onExceeded?.(hours)
    }
    throw invalidToken()
  }

  return {
    /**
     * @throws UNAUTHENTICATED with reason TOKEN_MISSING, TOKEN_EXPIRED or TOKEN_INVALID
     * @throws UNAVAILABLE with reason IDENTITY_PROVIDER_UNAVAILABLE when the provider's keys cannot be loaded
     */
    async verify(token: string | undefined): Promise<TokenLogin> {
      if (!token)
        throw unauthenticated('TOKEN_MISSING', 'An ID token or an API token is required, as a bearer token.')
      if (token.length > tokenBytesMax) throw invalidToken()
      const nowMs = clock.now()
      const cached = await cache.get(token, nowMs)
      if (cached) return cached
      if (!isStrictJws(token)) throw invalidToken()
      try {
        let keySet: KeySet | undefined
        const findKey: JWTVerifyGetKey = async (...keyArguments) => {
          const { key, set } = await keys.find(...keyArguments)
          keySet = set
          return key
        }
        const issuer = typeof issuerOption === 'string' ? issuerOption : issuerOption()
        const { payload, protectedHeader } = await jwtVerify(token, findKey, {
          issuer,
          audience: [...audiences],
          algorithms,
          clockTolerance: toleranceSeconds,
          requiredClaims: ['sub', 'exp', 'iat'],
          currentDate: new Date(nowMs),
        })
        if (!isIdTokenType(protectedHeader.typ, payload)) throw invalidToken()
        if (!isAcceptedAudience(payload, audiences)) throw invalidToken()
        const verified = readClaims(payload, accountIssuer ?? issuer, nowMs)
        requireShortLifetime(verified, nowMs)
        if (keySet) cache.set(token, verified, keySet, nowMs)
        return verified
      } catch (error) {
        if (error instanceof ServiceError) throw error
        if (error instanceof errors.JWTExpired)
          throw unauthenticated('TOKEN_EXPIRED', 'The ID token has expired. Log in again, or refresh it.')
        // All other errors of jose concern this token or the key that it names, including TypeErrors for keys
        // that are too short.
        throw invalidToken(error)
      }
    },
  }
}

/**
 * Refuses other token types: access tokens (RFC 9068), logout tokens (OpenID Connect Back-Channel Logout 1.0)
 * and security events (RFC 8417) are signed with the same keys and may have the same audience. Some providers
 * omit `typ`, so it refuses explicit other types (RFC 8725 §3.11) instead of requiring `JWT`.
 */
function isIdTokenType(typ: string | undefined, payload: JWTPayload): boolean {
  return !typ?.toLowerCase().endsWith('+jwt') && payload['events'] === undefined
}

/**
 * Checks the authorized party (OpenID Connect Core 1.0 §3.1.3.7): `azp` must be one of our audiences, and is
 * required if the token has several audiences.
 */
function isAcceptedAudience(payload: JWTPayload, audiences: readonly string[]): boolean {
  const authorizedParty = payload['azp']
  if (authorizedParty === undefined) return !Array.isArray(payload.aud) || payload.aud.length === 1
  return typeof authorizedParty === 'string' && audiences.includes(authorizedParty)
}

function readClaims(payload: JWTPayload, issuer: string, nowMs: number): TokenLogin {
  const { sub, iat, exp, email, email_verified: emailVerified, name, sid } = payload
  if (typeof sub !== 'string' || sub === '' || sub.length > subjectLengthMax) throw invalidToken()
  if (typeof iat !== 'number' || iat > nowMs / 1000 + toleranceSeconds) throw invalidToken()
  if (typeof exp !== 'number') throw invalidToken()
  const verified: TokenLogin = {
    issuer,
    subject: sub,
    issuedAtMs: iat * 1000,
    expiresAtMs: exp * 1000,
  }
  if (typeof email === 'string' && email !== '') {
    verified.email = email
    // Some providers send the string 'true' instead of a boolean.
    verified.emailVerified = emailVerified === true || emailVerified === 'true'
  }
  if (typeof name === 'string' && name !== '') verified.name = name
  if (typeof sid === 'string' && sid !== '') verified.sessionId = sid
  return verified
}

type CacheEntry = { verified: TokenLogin; keySet: KeySet; verifiedAtMs: number }

const entriesMax = 1000

/**
 * Caches verified tokens by their hash, because verifying a signature costs more than the rest of a console
 * request. An entry is valid only for the key set that verified it, so that a withdrawn key is refused after
 * the next load.
 *
 * @param toleranceMs how long a token is accepted after its expiry
 */
function createTokenCache(keys: Pick<KeySource, 'trustedKeySet'>, toleranceMs: number) {
  const entries = new Map<string, CacheEntry>()
  let lastKeySet: KeySet | undefined

  return {
    /**
     * Returns a cached result; undefined if the token must be verified, also after its expiry or a clock
     * rollback.
     *
     * @throws UNAVAILABLE when the token is cached but no keys are trusted
     */
    async get(token: string, nowMs: number): Promise<TokenLogin | undefined> {
      const entry = entries.get(tokenHash(token))
      if (!entry || entry.keySet !== (await keys.trustedKeySet())) return undefined
      const { verified, verifiedAtMs } = entry
      const isValid = verifiedAtMs <= nowMs && nowMs < verified.expiresAtMs + toleranceMs
      return isValid ? verified : undefined
    },

    /** Caches a verified token. @param keySet the key set that verified it */
    set(token: string, verified: TokenLogin, keySet: KeySet, nowMs: number) {
      // Entries of older key sets are useless, and personal data in them should not stay in memory.
      if (keySet !== lastKeySet) entries.clear()
      lastKeySet = keySet
      const [oldest] = entries.size < entriesMax ? [] : entries.keys()
      if (oldest !== undefined) entries.delete(oldest)
      entries.set(tokenHash(token), { verified, keySet, verifiedAtMs: nowMs })
    },
  }
}

const tokenHash = (token: string) => hash('sha256', token, 'base64')

function invalidToken(cause?: unknown): ServiceError {
  return unauthenticated('TOKEN_INVALID', 'The ID token is invalid. Log in again.', cause)
}

function unauthenticated(reason: string, message: string, cause?: unknown): ServiceError {
  return new ServiceError('UNAUTHENTICATED', message, { reason, cause })
}
