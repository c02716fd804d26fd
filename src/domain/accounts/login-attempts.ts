import { createHash } from 'node:crypto'
import { recordAudit, type AuditAction, type Client } from './audit.ts'
import { ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** One attempt that counts as failed while it stands; seq tells those of one millisecond apart. */
export type LoginAttempt = { at: number; seq: number }

export type LoginAttemptStore = {
  /** The attempts of a subject since a time, oldest first. */
  list(subject: string, since: number): Promise<LoginAttempt[]>
  insert(subject: string, attempt: LoginAttempt): Promise<void>
  delete(subject: string, attempt: LoginAttempt): Promise<void>
  /** Of every subject. */
  deleteBefore(time: number): Promise<void>
}

export const loginAttemptsMax = 5
export const loginWindowMs = 15 * 60_000

export type LoginAttempts = ReturnType<typeof createLoginAttempts>

/**
 * Limits guessing of passwords: 5 failed logins in any 15 minutes for one account from one client address. Bound to
 * the address, so that a stranger elsewhere cannot lock somebody out.
 */
export function createLoginAttempts(needs: { store: Store; clock: Clock; newId: NewId }) {
  const { store, clock, newId } = needs

  return {
    /**
     * Counts an attempt as failed before its password is looked at; `succeeded` takes it back. Attempts at once
     * cannot pass the limit for an account that exists. The failure of such an account stands in its audit trail until
     * then; of an address that is nobody's nothing is kept, or strangers could fill the disk.
     *
     * @param email as accounts keep it; need not belong to anybody
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS) with the seconds until the oldest failure is forgotten
     */
    async begin(
      email: string,
      { network, origin }: Client,
      failureAction: AuditAction,
    ): Promise<{ markSucceeded(): Promise<void> }> {
      const subject = createHash('sha256').update(`${email}\n${network}`).digest('base64url')
      type StartedAttempt = { attempt: LoginAttempt; entryId: string | undefined }
      const result = await store.write(async (tx): Promise<StartedAttempt | ServiceError> => {
        const now = clock.now()
        const account = await tx.accounts.findByEmail(email)
        if (account) await tx.developers.lock(account.developerId)
        await tx.loginAttempts.deleteBefore(now - loginWindowMs)
        const failures = await tx.loginAttempts.list(subject, now - loginWindowMs)
        const [oldest] = failures
        if (oldest && failures.length >= loginAttemptsMax)
          return tooManyAttempts(oldest.at + loginWindowMs - now)
        const attempt = { at: now, seq: (failures.at(-1)?.seq ?? 0) + 1 }
        await tx.loginAttempts.insert(subject, attempt)
        if (!account) return { attempt, entryId: undefined }
        const { developerId } = account
        const unknownActor = { developerId, actorId: null, origin }
        const details = { action: failureAction, targetId: developerId }
        return { attempt, entryId: await recordAudit(tx, newId, unknownActor, details, now) }
      })
      if (result instanceof ServiceError) throw result
      const { attempt, entryId } = result
      return {
        markSucceeded: () =>
          store.write(async (tx) => {
            await tx.loginAttempts.delete(subject, attempt)
            if (entryId !== undefined) await tx.audit.delete(entryId)
          }),
      }
    },
  }
}

const tooManyAttempts = (waitMs: number) =>
  new ServiceError('RATE_LIMITED', 'Too many failed logins. Try again later.', {
    reason: 'LOGIN_ATTEMPTS',
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
