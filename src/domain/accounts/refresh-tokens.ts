import { selfActor, recordAudit, type Actor, type Origin } from './audit.ts'
import type { Developer } from './developers.ts'
import type { NewId } from '../model/ids.ts'
import { hmac } from '../model/keys.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'
import { hashToken, newToken } from '../model/tokens.ts'

export type RefreshToken = {
  hash: string
  /** All tokens that descend from one login. */
  family: string
  developerId: string
  createdAt: number
  expiresAt: number
  /** When it was exchanged for its successor. */
  usedAt: number | null
}

export type RefreshTokenStore = {
  find(hash: string): Promise<RefreshToken | undefined>
  /** One statement; a token that stands already is left as it is. */
  insert(token: RefreshToken): Promise<void>
  /** Marks an unused token used. Of several callers at once exactly one hears true. */
  use(hash: string, now: number): Promise<boolean>
  deleteFamily(family: string): Promise<void>
  deleteByDeveloper(developerId: string): Promise<void>
  /** About `chunk` of those that have expired. False when none was left. */
  deleteExpired(now: number, batchSize: number): Promise<boolean>
}

/** A login that is not used for so long ends. */
const lifetimeMs = 30 * 24 * 3_600_000
/** Two processes of one user, or an answer that was lost: within this time the successor is given again. */
const graceMs = 60_000
const prefix = 'rt_'

export type RefreshTokens = ReturnType<typeof createRefreshTokens>

/**
 * Rotating refresh tokens (RFC 9700 §4.14.2): each is good for one successor, and a token that turns up after its
 * successor was taken is a copy in the wrong hands, which ends the whole family. Only hashes are stored; a successor
 * is derived from its predecessor, so that it can be given again without being stored.
 *
 * @param needs.key derives successors; a stolen token is worth nothing without it once it is used
 */
export function createRefreshTokens(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  key: Uint8Array
}) {
  const { store, clock, newId, random, key } = needs
  const deriveSuccessor = (token: string) => prefix + hmac(key).update(token).digest('base64url')

  const insert = (tx: Stores, token: string, family: string, developerId: string, now: number) =>
    tx.refreshTokens.insert({
      hash: hashToken(token),
      family,
      developerId,
      createdAt: now,
      expiresAt: now + lifetimeMs,
      usedAt: null,
    })

  return {
    /** Begins a family: somebody has logged in. @param method by what */
    async issue(developer: Actor, method: string): Promise<string> {
      const token = newToken(prefix, 32, random)
      await store.write(async (tx) => {
        const now = clock.now()
        // Ends of a reset password's sessions and of this insert must not cross.
        await tx.developers.lock(developer.id)
        await insert(tx, token, newToken('', 16, random), developer.id, now)
        const details = { action: 'login.succeeded', targetId: developer.id, detail: method } as const
        await recordAudit(tx, newId, selfActor(developer), details, now)
      })
      return token
    },

    /**
     * Exchanges a token for its successor. Atomic: calls at once get the same one.
     *
     * @returns undefined when the token is unknown, expired, revoked, or used more than 60 s ago, which ends its
     *   family, and when its developer is disabled
     */
    rotate: (
      token: string,
      origin: Origin,
    ): Promise<{ developer: Developer; refreshToken: string } | undefined> =>
      store.write(async (tx) => {
        const now = clock.now()
        const hash = hashToken(token)
        const presentedToken = await tx.refreshTokens.find(hash)
        if (!presentedToken) return undefined
        // Everything that touches a family holds its developer, so that no successor slips in behind its end.
        await tx.developers.lock(presentedToken.developerId)
        const developer = await tx.developers.find(presentedToken.developerId)
        const refreshToken = deriveSuccessor(token)
        if (await tx.refreshTokens.use(hash, now)) {
          if (presentedToken.expiresAt <= now || developer?.status !== 'active') return undefined
          await insert(tx, refreshToken, presentedToken.family, developer.id, now)
          return { developer, refreshToken }
        }
        const usedToken = await tx.refreshTokens.find(hash)
        if (!usedToken || developer?.status !== 'active') return undefined
        if (now - (usedToken.usedAt ?? 0) <= graceMs) return { developer, refreshToken }
        await tx.refreshTokens.deleteFamily(usedToken.family)
        const { developerId } = usedToken
        const unknownActor = { developerId, actorId: null, origin }
        await recordAudit(
          tx,
          newId,
          unknownActor,
          { action: 'login.token_reused', targetId: developerId },
          now,
        )
        return undefined
      }),

    /** Ends the token's family, if it has one (RFC 7009 §2: an unknown token is no error). */
    revoke: (token: string, origin: Origin): Promise<void> =>
      store.write(async (tx) => {
        const presentedToken = await tx.refreshTokens.find(hashToken(token))
        if (!presentedToken) return
        const { developerId } = presentedToken
        await tx.developers.lock(developerId)
        await tx.refreshTokens.deleteFamily(presentedToken.family)
        const auditActor = { developerId, actorId: developerId, origin }
        await recordAudit(
          tx,
          newId,
          auditActor,
          { action: 'login.ended', targetId: developerId },
          clock.now(),
        )
      }),
  }
}
