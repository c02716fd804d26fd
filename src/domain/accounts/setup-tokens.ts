import { hostOrigin, recordAudit } from './audit.ts'
import type { NewId } from '../model/ids.ts'
import { hashToken, newToken } from '../model/tokens.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

export type SetupToken = {
  hash: string
  /** 1: made at the first start; void as soon as there is an account. */
  first: number
  createdAt: number
  expiresAt: number
}

export type SetupTokenStore = {
  isValid(hash: string, now: number): Promise<boolean>
  insert(token: SetupToken): Promise<void>
  /** Removes a token that is valid. Of several callers at once exactly one hears true. */
  use(hash: string, now: number): Promise<boolean>
  deleteFirstStartToken(): Promise<void>
  deleteExpired(now: number): Promise<void>
}

export const setupTokenLifetimeMs = 30 * 60_000

/** A token in clear, told once, and when it ends. */
export type IssuedSetupToken = { token: string; expiresAt: number }

export type SetupTokens = ReturnType<typeof createSetupTokens>

/** Single-use invitations to make an account of the built-in provider. Only their hashes are stored. */
export function createSetupTokens(needs: { store: Store; clock: Clock; newId: NewId; random: Random }) {
  const { store, clock, newId, random } = needs

  const insert = async (tx: Stores, first: 0 | 1): Promise<IssuedSetupToken> => {
    const now = clock.now()
    const token = newToken('st_', 16, random)
    const expiresAt = now + setupTokenLifetimeMs
    await tx.setupTokens.deleteExpired(now)
    await tx.setupTokens.insert({ hash: hashToken(token), first, createdAt: now, expiresAt })
    return { token, expiresAt }
  }

  return {
    /** For the operator, at any time. */
    issue: (): Promise<IssuedSetupToken> =>
      store.write(async (tx) => {
        const operator = { developerId: null, actorId: null, origin: hostOrigin }
        await recordAudit(tx, newId, operator, { action: 'setup_token.created' }, clock.now())
        return insert(tx, 0)
      }),

    /** For the server's start: a token in place of the last start's, or undefined once there is an account. */
    issueForFirstStart: (): Promise<IssuedSetupToken | undefined> =>
      store.write(async (tx) => {
        if (await tx.accounts.hasAny()) return undefined
        await tx.setupTokens.deleteFirstStartToken()
        return insert(tx, 1)
      }),

    isValid: (token: string) => store.read.setupTokens.isValid(hashToken(token), clock.now()),

    /** Uses the token up within the transaction of what it pays for. */
    use: (tx: Stores, token: string) => tx.setupTokens.use(hashToken(token), clock.now()),
  }
}
