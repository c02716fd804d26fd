import { hostOrigin } from '../model/audit.ts'
import { recordAudit } from './audit.ts'
import type { NewId } from '../model/ids.ts'
import { hashToken, newToken } from '../model/tokens.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { Store, Stores } from '../store/store.ts'
import { minuteMs } from '../../shared/durations.ts'

const setupTokenLifetimeMs = 30 * minuteMs

/** A plaintext token, shown once, and its expiry. */
type IssuedSetupToken = { token: string; expiresAt: number }

export type SetupTokens = ReturnType<typeof createSetupTokens>

/**
 * Creates the service for setup tokens: single-use invitations to create a built-in account. Only hashes are stored.
 */
export function createSetupTokens(needs: {
  store: Store<'accounts' | 'audit' | 'setupTokens'>
  clock: Clock
  newId: NewId
  random: Random
}) {
  const { store, clock, newId, random } = needs

  const insert = async (tx: Pick<Stores, 'setupTokens'>, first: 0 | 1): Promise<IssuedSetupToken> => {
    const now = clock.now()
    const token = newToken('st_', 16, random)
    const expiresAt = now + setupTokenLifetimeMs
    await tx.setupTokens.deleteExpired(now)
    await tx.setupTokens.insert({ hash: hashToken(token), first, createdAt: now, expiresAt })
    return { token, expiresAt }
  }

  return {
    /** Issues a token for the operator, at any time. */
    issue: (): Promise<IssuedSetupToken> =>
      store.write(async (tx) => {
        const operator = { developerId: null, actorId: null, origin: hostOrigin }
        await recordAudit(tx, newId, operator, { action: 'setup_token.created' }, clock.now())
        return insert(tx, 0)
      }),

    /** Replaces the token of the previous start; returns undefined once there is an account. */
    issueForFirstStart: (): Promise<IssuedSetupToken | undefined> =>
      store.write(async (tx) => {
        if (await tx.accounts.hasAny()) return undefined
        await tx.setupTokens.deleteFirstStartToken()
        return insert(tx, 1)
      }),

    /** Checks a token without using it up. */
    isValid: (token: string) => store.read.setupTokens.isValid(hashToken(token), clock.now()),

    /** Consumes the token in the caller's transaction. @returns false if it is not valid */
    use: (tx: Pick<Stores, 'setupTokens'>, token: string) =>
      tx.setupTokens.use(hashToken(token), clock.now()),
  }
}
