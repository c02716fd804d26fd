import { hash } from 'node:crypto'
import type { KeySet, KeySource } from './jwks.ts'

/** Claims of a verified ID token. A person is identified by issuer and subject, never by e-mail address. */
export type VerifiedIdToken = {
  issuer: string
  subject: string
  email?: string
  emailVerified?: boolean
  name?: string
  /** Session at the issuer (OpenID Connect Back-Channel Logout 1.0 §2.1). */
  sid?: string
  issuedAtMs: number
  expiresAtMs: number
}

type CacheEntry = { verified: VerifiedIdToken; keySet: KeySet; verifiedAtMs: number }

const entriesMax = 1000

/**
 * Caches verified tokens by their hash, because verifying a signature costs more than the rest of a console
 * request. An entry is valid only for the key set that verified it, so that a withdrawn key is refused after
 * the next load.
 *
 * @param toleranceMs how long a token is accepted after its expiry
 */
export function createTokenCache(keys: Pick<KeySource, 'trustedKeySet'>, toleranceMs: number) {
  const entries = new Map<string, CacheEntry>()
  let lastKeySet: KeySet | undefined

  return {
    /**
     * Returns a cached result; undefined if the token must be verified, also after its expiry or a clock
     * rollback.
     *
     * @throws UNAVAILABLE when the token is cached but no keys are trusted
     */
    async get(token: string, nowMs: number): Promise<VerifiedIdToken | undefined> {
      const entry = entries.get(tokenHash(token))
      if (!entry || entry.keySet !== (await keys.trustedKeySet())) return undefined
      const { verified, verifiedAtMs } = entry
      const isValid = verifiedAtMs <= nowMs && nowMs < verified.expiresAtMs + toleranceMs
      return isValid ? verified : undefined
    },

    /** Caches a verified token. @param keySet the key set that verified it */
    set(token: string, verified: VerifiedIdToken, keySet: KeySet, nowMs: number) {
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
