import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey } from 'jose'
import { hostOrigin } from '../domain/model/audit.ts'
import { recordAudit } from '../domain/accounts/audit.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Random } from '../domain/model/random.ts'
import type { PublicKey } from '../domain/accounts/identity-provider.ts'
import { seal, unseal } from '../domain/model/sealed.ts'
import type { SigningKey } from '../domain/store/signing-keys.ts'
import type { Store } from '../domain/store/store.ts'
import { isRecord } from '../shared/json.ts'
import { hourMs } from '../shared/durations.ts'

/** ECDSA on P-256, which every OpenID library supports. */
export const signingAlgorithm = 'ES256'
/** Much longer than the lifetime of an ID token plus the clock tolerance. */
const publishedAfterRetirementMs = hourMs

export type SigningKeys = ReturnType<typeof createSigningKeys>

/**
 * Signing keys of the built-in identity provider. Private keys are encrypted with AES-256-GCM under a data
 * key, with the key id as associated data, so that a copy of the database alone cannot sign tokens.
 */
export function createSigningKeys(needs: {
  store: Store<'audit' | 'signingKeys'>
  clock: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'signingKey'>
}) {
  const { store, clock, newId, random, keys } = needs
  let cachedKey: { kid: string; privateKey: CryptoKey } | undefined

  /** Generates a key pair. @returns seals it; called in the transaction, as the data key may have been replaced just before it */
  const generateSigningKey = async (): Promise<() => SigningKey> => {
    const pair = await generateKeyPair(signingAlgorithm, { extractable: true })
    const publicJwk = await exportJWK(pair.publicKey)
    const kid = await calculateJwkThumbprint(publicJwk)
    const secret = JSON.stringify(await exportJWK(pair.privateKey))
    return () => ({
      kid,
      publicJwk: JSON.stringify({ ...publicJwk, kid, alg: signingAlgorithm, use: 'sig' }),
      privateKey: seal(keys.signingKey, kid, secret, random),
      createdAt: clock.now(),
      retiredAt: null,
    })
  }

  const ensureFirstKey = async (): Promise<SigningKey> => {
    const sealKey = await generateSigningKey()
    return store.write(async (tx) => {
      const existing = await tx.signingKeys.current()
      if (existing) return existing
      const newKey = sealKey()
      if (await tx.signingKeys.insert(newKey)) return newKey
      return (await tx.signingKeys.current()) ?? newKey
    })
  }

  return {
    /**
     * Current signing key, created if there is none. Read from the store each time: another process may
     * rotate it.
     */
    async current(): Promise<{ kid: string; privateKey: CryptoKey }> {
      const stored = (await store.read.signingKeys.current()) ?? (await ensureFirstKey())
      if (cachedKey?.kid === stored.kid) return cachedKey
      const jwk: unknown = JSON.parse(unseal(keys.signingKey, stored.kid, stored.privateKey))
      if (!isRecord(jwk)) throw new Error('a signing key is not a JSON Web Key')
      const privateKey = await importJWK(jwk, signingAlgorithm)
      if (privateKey instanceof Uint8Array) throw new Error('a signing key is not a private key')
      cachedKey = { kid: stored.kid, privateKey }
      return cachedKey
    },

    /** Value that changes when all signing keys end, because their private keys could be read. */
    version: (): unknown => keys.signingKey,

    /** Public keys (JWKS) of the current key and of retired keys whose tokens may still be valid. */
    async publicKeySet(): Promise<{ keys: PublicKey[] }> {
      const published = await store.read.signingKeys.published(clock.now() - publishedAfterRetirementMs)
      return { keys: published.map(({ publicJwk }) => JSON.parse(publicJwk)) }
    },

    /**
     * Rotates the signing key, for the operator. Tokens signed with the old key stay valid until they expire.
     *
     * @returns id of the new key
     * @throws CONFLICT another process rotates it at the same time
     */
    async rotate(): Promise<string> {
      const sealKey = await generateSigningKey()
      return store.write(async (tx) => {
        const now = clock.now()
        await tx.signingKeys.deleteRetiredBefore(now - publishedAfterRetirementMs)
        await tx.signingKeys.retireAll(now)
        const newKey = sealKey()
        if (!(await tx.signingKeys.insert(newKey))) throw rotatedMeanwhile()
        const operator = { developerId: null, actorId: null, origin: hostOrigin }
        await recordAudit(tx, newId, operator, { action: 'signing_key.rotated', targetId: newKey.kid }, now)
        return newKey.kid
      })
    },
  }
}

const rotatedMeanwhile = () =>
  new ServiceError('CONFLICT', 'Another process rotated the signing key at the same time. Its key is in use.')
