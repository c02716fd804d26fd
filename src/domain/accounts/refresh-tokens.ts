import { selfActor, recordAudit } from './audit.ts'
import type { Actor, Origin } from '../model/audit.ts'
import type { Developer } from '../model/developer.ts'
import type { NewId } from '../model/ids.ts'
import { hmac } from '../../shared/hmac.ts'
import type { Keys } from '../model/keys.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { RefreshToken } from '../store/refresh-tokens.ts'
import type { Store, Stores } from '../store/store.ts'
import { hashToken, newToken } from '../model/tokens.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/** A session ends after this time without use. */
const lifetimeMs = 30 * dayMs
/** A session ends this long after its login, however often it is used. */
const sessionMaxMs = 90 * dayMs
/** Grace period in which a used token returns its successor again: for concurrent processes and lost responses. */
const graceMs = minuteMs
const prefix = 'rt_'

/**
 * A refresh token, the time at which it expires, and with it the session if it is not used, and the id of its session: the
 * token's family, which is no secret.
 */
export type IssuedRefreshToken = { refreshToken: string; expiresAt: number; sessionId: string }

type StoreNames = 'audit' | 'developers' | 'refreshTokens'

/** The successor of a token, and whose it is. */
type RotatedToken = IssuedRefreshToken & { developer: Developer }

export type RefreshTokens = ReturnType<typeof createRefreshTokens>

/**
 * Creates the service for rotating refresh tokens (RFC 9700 §4.14.2): each token has one successor, and reuse of a
 * token after its rotation means that it was stolen, which revokes the whole family. Only hashes are stored; a
 * successor is derived from its predecessor, so that it can be returned again without being stored.
 *
 * @param needs.keys derive successors; without them, a stolen token that was already used is worthless
 */
export function createRefreshTokens(needs: {
  store: Store<StoreNames>
  clock: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'refreshToken'>
}) {
  const { store, clock, newId, random, keys } = needs
  const deriveSuccessor = (token: string) =>
    prefix + hmac(keys.refreshToken).update(token).digest('base64url')

  const expiryOf = (issuedAt: number, sessionEndsAt: number) => Math.min(issuedAt + lifetimeMs, sessionEndsAt)

  async function insert(
    tx: Pick<Stores, 'refreshTokens'>,
    token: string,
    session: { family: string; developerId: string; sessionEndsAt: number },
    now: number,
  ): Promise<IssuedRefreshToken> {
    const expiresAt = expiryOf(now, session.sessionEndsAt)
    const hash = hashToken(token)
    await tx.refreshTokens.insert({ ...session, hash, createdAt: now, expiresAt, usedAt: null })
    return { refreshToken: token, expiresAt, sessionId: session.family }
  }

  const rotating = new Map<string, Promise<RotatedToken | undefined>>()
  const revoking = new Map<string, Promise<void>>()

  /**
   * Changes the family of a token that is known, with its developer locked, as every change to a family does, so that no
   * successor is inserted after a revocation. Calls with the same token, which anyone may repeat at any rate, share one
   * transaction at a time; an unknown token has none.
   */
  async function changeFamily<T>(
    running: Map<string, Promise<T | undefined>>,
    token: string,
    change: (
      tx: Pick<Stores, StoreNames>,
      presentedToken: RefreshToken,
      now: number,
    ) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const hash = hashToken(token)
    if (!(await store.read.refreshTokens.find(hash))) return undefined
    const write = () =>
      store.write(async (tx) => {
        const now = clock.now()
        const presentedToken = await tx.refreshTokens.find(hash)
        if (!presentedToken) return undefined
        await tx.developers.lock(presentedToken.developerId)
        return change(tx, presentedToken, now)
      })
    const shared = running.get(hash) ?? write().finally(() => running.delete(hash))
    running.set(hash, shared)
    return shared
  }

  return {
    /**
     * Starts a new family after a login.
     *
     * @param developer as read before the password was compared
     * @param method login method, for the audit trail
     * @returns undefined if the password was changed or the developer disabled since
     */
    async issue(developer: Actor, method: string): Promise<IssuedRefreshToken | undefined> {
      const refreshToken = newToken(prefix, 32, random)
      const sessionId = newToken('', 16, random)
      return store.write(async (tx) => {
        const now = clock.now()
        // Lock, so that a concurrent password reset either ends this session too or comes first and is noticed.
        await tx.developers.lock(developer.id)
        const current = await tx.developers.find(developer.id)
        if (current?.status !== 'active' || current.tokensValidFrom !== developer.tokensValidFrom)
          return undefined
        const session = {
          family: sessionId,
          developerId: developer.id,
          sessionEndsAt: now + sessionMaxMs,
        }
        const issued = await insert(tx, refreshToken, session, now)
        const details = { action: 'login.succeeded', targetId: developer.id, detail: method } as const
        await recordAudit(tx, newId, selfActor(developer), details, now)
        return issued
      })
    },

    /**
     * Exchanges a token for its successor. Atomic: concurrent calls get the same one. Reuse more than 60 s after the
     * exchange revokes the family.
     *
     * @returns undefined if the token is unknown, expired, revoked or reused, or its developer is disabled
     */
    rotate: (token: string, origin: Origin): Promise<RotatedToken | undefined> =>
      changeFamily(rotating, token, async (tx, presentedToken, now) => {
        const { hash, family, developerId, sessionEndsAt, expiresAt } = presentedToken
        const developer = await tx.developers.find(developerId)
        const refreshToken = deriveSuccessor(token)
        if (await tx.refreshTokens.use(hash, now)) {
          if (expiresAt <= now || developer?.status !== 'active') return undefined
          const session = { family, developerId, sessionEndsAt }
          return { developer, ...(await insert(tx, refreshToken, session, now)) }
        }
        const usedToken = await tx.refreshTokens.find(hash)
        if (!usedToken || developer?.status !== 'active') return undefined
        const usedAt = usedToken.usedAt ?? 0
        if (now - usedAt <= graceMs) {
          if (expiresAt <= now) return undefined
          return { developer, refreshToken, expiresAt: expiryOf(usedAt, sessionEndsAt), sessionId: family }
        }
        await tx.refreshTokens.deleteFamily(developerId, family)
        const unknownActor = { developerId, actorId: null, origin }
        const action = { action: 'login.token_reused', targetId: developerId } as const
        await recordAudit(tx, newId, unknownActor, action, now)
        return undefined
      }),

    /** Revokes the token's family; an unknown token is not an error (RFC 7009 §2.2). */
    revoke: (token: string, origin: Origin): Promise<void> =>
      changeFamily(revoking, token, async (tx, { developerId, family }) => {
        await tx.refreshTokens.deleteFamily(developerId, family)
        const auditActor = { developerId, actorId: developerId, origin }
        const action = { action: 'login.ended', targetId: developerId } as const
        await recordAudit(tx, newId, auditActor, action, clock.now())
      }),
  }
}
