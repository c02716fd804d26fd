import { hash } from 'node:crypto'
import type { VerifiedIdToken } from './id-token.ts'
import type { KeySet, KeySource } from './jwks.ts'

type CacheEntry = { verified: VerifiedIdToken; keySet: KeySet; verifiedAtMs: number }

const entriesMax = 1000

/**
 * Remembers tokens that were verified, by their hash: checking a signature costs more than all else that a call of the
 * console does. An answer holds for the set of keys that it was found with, so that a key which the provider withdrew is
 * refused as soon as its set is.
 *
 * @param toleranceMs how long after its expiry a token is still taken
 */
export function createTokenCache(keys: Pick<KeySource, 'trustedKeySet'>, toleranceMs: number) {
  const entries = new Map<string, CacheEntry>()
  let lastKeySet: KeySet | undefined

  return {
    /**
     * Undefined where the token must be verified: also once it has expired, or where the clock was set back since.
     *
     * @throws UNAVAILABLE the token is known, and no key is trusted any more
     */
    async get(token: string, nowMs: number): Promise<VerifiedIdToken | undefined> {
      const entry = entries.get(tokenHash(token))
      if (!entry || entry.keySet !== (await keys.trustedKeySet())) return undefined
      const { verified, verifiedAtMs } = entry
      const isValid = verifiedAtMs <= nowMs && nowMs < verified.expiresAtMs + toleranceMs
      return isValid ? verified : undefined
    },

    /** @param keySet what the token was verified with */
    set(token: string, verified: VerifiedIdToken, keySet: KeySet, nowMs: number) {
      // Nothing of an older set is of use, and names and addresses are not to lie here longer than they are.
      if (keySet !== lastKeySet) entries.clear()
      lastKeySet = keySet
      const [oldest] = entries.size < entriesMax ? [] : entries.keys()
      if (oldest !== undefined) entries.delete(oldest)
      entries.set(tokenHash(token), { verified, keySet, verifiedAtMs: nowMs })
    },
  }
}

const tokenHash = (token: string) => hash('sha256', token, 'base64')
