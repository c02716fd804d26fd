import { createHash } from 'node:crypto'
import { recordAudit } from './audit.ts'
import type { AuditAction, Client } from '../model/audit.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import type { NewId } from '../model/ids.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { minuteMs } from '../../shared/durations.ts'
import type { LoginAttempt } from '../store/login-attempts.ts'

export const loginAttemptsMax = 5
export const loginWindowMs = 15 * minuteMs

export type LoginAttempts = ReturnType<typeof createLoginAttempts>

/**
 * Creates the limiter of password guessing (sliding-window log): 5 failed logins in 15 minutes per account and client
 * network. It includes the network, so that an attacker elsewhere cannot lock a developer out.
 */
export function createLoginAttempts(needs: {
  store: Store<'accounts' | 'audit' | 'developers' | 'loginAttempts'>
  clock: Clock
  newId: NewId
}) {
  const { store, clock, newId } = needs

  return {
    /**
     * Counts an attempt as failed before its password is verified; `markSucceeded` removes it again. Concurrent
     * attempts cannot exceed the limit of an existing account. Its audit trail shows the failure until then; for
     * unknown addresses no audit entry is written, or attackers could fill the disk.
     *
     * @param email normalized address; need not have an account
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS) with the seconds until the oldest failure leaves the window
     */
    async begin(
      email: string,
      { network, origin }: Client,
      failureAction: AuditAction,
    ): Promise<{ markSucceeded(): Promise<void> }> {
      const subject = createHash('sha256').update(`${email}\n${network}`).digest('base64url')
      type StartedAttempt = { attempt: LoginAttempt; entryId: string | undefined }
      const result = await store.write(async (tx): Promise<StartedAttempt | Rejected> => {
        const now = clock.now()
        const account = await tx.accounts.findByEmail(email)
        if (account) await tx.developers.lock(account.developerId)
        await tx.loginAttempts.deleteBefore(now - loginWindowMs)
        const failures = await tx.loginAttempts.list(subject, now - loginWindowMs)
        const [oldest] = failures
        if (oldest && failures.length >= loginAttemptsMax)
          return reject(tooManyAttempts(oldest.at + loginWindowMs - now))
        const attempt = { at: now, seq: (failures.at(-1)?.seq ?? 0) + 1 }
        await tx.loginAttempts.insert(subject, attempt)
        if (!account) return { attempt, entryId: undefined }
        const { developerId } = account
        const unknownActor = { developerId, actorId: null, origin }
        const details = { action: failureAction, targetId: developerId }
        return { attempt, entryId: await recordAudit(tx, newId, unknownActor, details, now) }
      })
      const { attempt, entryId } = unwrap(result)
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
  new ServiceError('RATE_LIMITED', 'Too many failed logins. Wait, then retry.', {
    reason: 'LOGIN_ATTEMPTS',
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
