import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey } from 'jose'
import { hostOrigin, recordAudit } from '../domain/accounts/audit.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { Clock, Random } from '../domain/model/clock.ts'
import type { PublicKey } from '../domain/accounts/identity-provider.ts'
import { seal, unseal } from '../domain/model/sealed.ts'
import type { SigningKey } from '../domain/accounts/signing-keys.ts'
import type { Store } from '../domain/store/store.ts'

/** One curve, known to every OpenID library. */
export const signingAlgorithm = 'ES256'
/** Far longer than an ID token lives, its tolerance included. */
const publishedAfterRetirementMs = 3_600_000

export type SigningKeys = ReturnType<typeof createSigningKeys>

/**
 * The keys of the built-in identity provider. Private halves are encrypted with AES-256-GCM under a sub-key of the
 * master key, bound to their key id, so that a copy of the database signs nothing.
 *
 * @param needs.key 32 bytes
 */
export function createSigningKeys(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  key: Uint8Array
}) {
  const { store, clock, newId, random, key } = needs
  let cachedKey: { kid: string; privateKey: CryptoKey } | undefined

  const generateSigningKey = async (): Promise<SigningKey> => {
    const pair = await generateKeyPair(signingAlgorithm, { extractable: true })
    const publicJwk = await exportJWK(pair.publicKey)
    const kid = await calculateJwkThumbprint(publicJwk)
    const secret = JSON.stringify(await exportJWK(pair.privateKey))
    return {
      kid,
      publicJwk: JSON.stringify({ ...publicJwk, kid, alg: signingAlgorithm, use: 'sig' }),
      privateKey: seal(key, kid, secret, random),
      createdAt: clock.now(),
      retiredAt: null,
    }
  }

  const ensureFirstKey = async (): Promise<SigningKey> => {
    const newKey = await generateSigningKey()
    return store.write(async (tx) => {
      const existing = await tx.signingKeys.current()
      if (existing) return existing
      await tx.signingKeys.insert(newKey)
      return newKey
    })
  }

  return {
    /** The key to sign with, made when there is none. Asked anew each time, as another process may have rotated it. */
    async current(): Promise<{ kid: string; privateKey: CryptoKey }> {
      const stored = (await store.read.signingKeys.current()) ?? (await ensureFirstKey())
      if (cachedKey?.kid === stored.kid) return cachedKey
      const jwk: unknown = JSON.parse(unseal(key, stored.kid, stored.privateKey))
      if (typeof jwk !== 'object' || jwk === null) throw new Error('a signing key is not a JSON Web Key')
      const privateKey = await importJWK(jwk, signingAlgorithm)
      if (privateKey instanceof Uint8Array) throw new Error('a signing key is not a private key')
      cachedKey = { kid: stored.kid, privateKey }
      return cachedKey
    },

    /** Public halves of the key that signs and of those whose tokens may still live. */
    async publicKeySet(): Promise<{ keys: PublicKey[] }> {
      const keys = await store.read.signingKeys.published(clock.now() - publishedAfterRetirementMs)
      return { keys: keys.map(({ publicJwk }) => JSON.parse(publicJwk)) }
    },

    /** The operator's: signs with a new key from now on. Tokens of the old one stay valid until they expire. @returns the key id */
    async rotate(): Promise<string> {
      const newKey = await generateSigningKey()
      await store.write(async (tx) => {
        const now = clock.now()
        await tx.signingKeys.deleteRetiredBefore(now - publishedAfterRetirementMs)
        await tx.signingKeys.retireAll(now)
        await tx.signingKeys.insert(newKey)
        const operator = { developerId: null, actorId: null, origin: hostOrigin }
        await recordAudit(tx, newId, operator, { action: 'signing_key.rotated', targetId: newKey.kid }, now)
      })
      return newKey.kid
    },
  }
}
