import { and, gt, isNotNull, max, or, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { DeadlineStore } from '../domain/upkeep/deadlines.ts'
import type { Builders, Database } from './engine/database.ts'
import { isTimed } from './rate-limits.ts'

/** Of every table with times to come. Finding out is done at every start; what moves them reads whole tables. */
export function createDeadlineStore(database: Database, on: Builders): DeadlineStore {
  const {
    otpRequests,
    otpDeliveries,
    webhookDeliveries,
    webhookEndpoints,
    phoneCheckBudgets,
    rateAdmissions,
    refreshTokens,
    setupTokens,
    applications,
  } = database.tables
  // Spelled out: SQLite uses the index of pending requests only where it sees the word itself.
  const livesAfter = (now: number) =>
    and(sql`${otpRequests.status} = 'pending'`, gt(otpRequests.expiresAt, now))

  /** The newest admission of an application, which its key finds. */
  const newestOf = (policy: string) => sql<number | null>`max((
    select ${rateAdmissions.at} from ${rateAdmissions}
    where ${rateAdmissions}.subject = ${applications}.id and ${rateAdmissions.policy} = ${policy}
    order by ${rateAdmissions.at} desc limit 1))`

  return {
    async newestSetAt(now) {
      const newest = [
        ...(await on
          .select({ at: max(otpRequests.sentAt) })
          .from(otpRequests)
          .where(livesAfter(now))),
        ...(await on
          .select({ at: max(rateAdmissions.at) })
          .from(rateAdmissions)
          .where(isTimed(rateAdmissions))),
        ...(await on.select({ at: newestOf('otp-send') }).from(applications)),
        ...(await on.select({ at: newestOf('otp-verify') }).from(applications)),
      ].flatMap(({ at }) => (at === null ? [] : [Number(at)]))
      return newest.length === 0 ? undefined : Math.max(...newest)
    },

    async moveBack(byMs, now) {
      const earlier = (column: SQLiteColumn) => sql`${column} - ${byMs}`
      const nowAtMost = (column: SQLiteColumn) =>
        sql`case when ${column} > ${now} then ${now} else ${column} end`

      await on
        .update(otpRequests)
        .set({ sentAt: earlier(otpRequests.sentAt), expiresAt: earlier(otpRequests.expiresAt) })
        .where(livesAfter(now))
      await on
        .update(otpDeliveries)
        .set({ nextAttemptAt: earlier(otpDeliveries.nextAttemptAt) })
        .where(isNotNull(otpDeliveries.nextAttemptAt))
      await on
        .update(webhookDeliveries)
        .set({ nextAttemptAt: earlier(webhookDeliveries.nextAttemptAt) })
        .where(isNotNull(webhookDeliveries.nextAttemptAt))
      await on
        .update(webhookEndpoints)
        .set({ dueAt: earlier(webhookEndpoints.dueAt), failingSince: earlier(webhookEndpoints.failingSince) })
      await on
        .update(phoneCheckBudgets)
        .set({
          refilledAt: earlier(phoneCheckBudgets.refilledAt),
          lockedUntil: earlier(phoneCheckBudgets.lockedUntil),
        })
        .where(or(gt(phoneCheckBudgets.refilledAt, now), gt(phoneCheckBudgets.lockedUntil, now)))
      await on
        .update(refreshTokens)
        .set({
          createdAt: nowAtMost(refreshTokens.createdAt),
          expiresAt: earlier(refreshTokens.expiresAt),
          usedAt: nowAtMost(refreshTokens.usedAt),
        })
        .where(gt(refreshTokens.createdAt, now))
      await on
        .update(setupTokens)
        .set({ createdAt: nowAtMost(setupTokens.createdAt), expiresAt: earlier(setupTokens.expiresAt) })
        .where(gt(setupTokens.createdAt, now))
    },
  }
}
