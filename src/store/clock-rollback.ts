import { and, gt, isNotNull, max, or, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { LaneUsage } from '../domain/model/phone-record.ts'
import type { DeadlineStore } from '../domain/store/clock-rollback.ts'
import { totpStep } from '../domain/model/totp.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import type { Sealing } from './engine/sealing.ts'
import { createPhoneStore } from './phones.ts'

/**
 * Covers every table with deadlines. `latestTimestamp` runs at every start and must be fast; `shiftDeadlines` scans
 * tables.
 */
export function createDeadlineStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): DeadlineStore {
  const {
    otpRequests,
    otpDeliveries,
    webhookDeliveries,
    webhookEndpoints,
    phoneCheckBudgets,
    phones,
    refreshTokens,
    setupTokens,
    loginFailures,
    totpSecrets,
    apiTokens,
    developers,
  } = database.tables
  // A literal: SQLite uses the partial index of pending requests only if it sees the same text.
  const isPendingAt = (now: number) =>
    and(sql`${otpRequests.status} = 'pending'`, gt(otpRequests.expiresAt, now))

  /** Scans the table. Times of sends are clamped as admissions are; budgets end earlier. */
  async function shiftPhones(rollbackMs: number, now: number): Promise<void> {
    const store = createPhoneStore(database, executor, sealing)
    const ahead = await executor
      .select({ hash: phones.phoneHash })
      .from(phones)
      .where(
        or(
          gt(phones.lastSentAt, now),
          ...[phones.deviceRefilledAt, phones.deviceLockedUntil].map((column) => gt(column, now)),
          ...[phones.knownRefilledAt, phones.knownLockedUntil].map((column) => gt(column, now)),
          ...[phones.strangerRefilledAt, phones.strangerLockedUntil].map((column) => gt(column, now)),
        ),
      )
    for (const { hash } of ahead) {
      const record = await store.find(hash)
      if (!record) continue
      const { device, network, stranger } = record.lanes
      const lanes = {
        device: rollBack(device, rollbackMs, now),
        network: rollBack(network, rollbackMs, now),
        stranger: rollBack(stranger, rollbackMs, now),
      }
      const slot = await store.load(hash, record)
      await store.save(slot, { ...record, lanes, lastSentAt: Math.min(record.lastSentAt, now) })
    }
  }

  return {
    async latestTimestamp(now) {
      const timestamps = [
        ...(await executor
          .select({ at: max(otpRequests.sentAt) })
          .from(otpRequests)
          .where(isPendingAt(now))),
        // Up to a second ahead of the change that set it.
        ...(await executor
          .select({ at: sql<number | null>`max(${developers.tokensValidFrom}) - 1000` })
          .from(developers)),
      ].flatMap(({ at }) => (at === null ? [] : [Number(at)]))
      return timestamps.length === 0 ? undefined : Math.max(...timestamps)
    },

    async shiftDeadlines(rollbackMs, now) {
      const shiftedBack = (column: SQLiteColumn) => sql`${column} - ${rollbackMs}`
      const clampedToNow = (column: SQLiteColumn) =>
        sql`case when ${column} > ${now} then ${now} else ${column} end`

      await executor
        .update(otpRequests)
        .set({ sentAt: shiftedBack(otpRequests.sentAt), expiresAt: shiftedBack(otpRequests.expiresAt) })
        .where(isPendingAt(now))
      await executor
        .update(otpDeliveries)
        .set({ nextAttemptAt: shiftedBack(otpDeliveries.nextAttemptAt) })
        .where(isNotNull(otpDeliveries.nextAttemptAt))
      await executor
        .update(otpDeliveries)
        .set({ reportDueAt: shiftedBack(otpDeliveries.reportDueAt) })
        .where(isNotNull(otpDeliveries.reportDueAt))
      await executor
        .update(webhookDeliveries)
        .set({ nextAttemptAt: shiftedBack(webhookDeliveries.nextAttemptAt) })
        .where(isNotNull(webhookDeliveries.nextAttemptAt))
      await executor.update(webhookEndpoints).set({
        dueAt: shiftedBack(webhookEndpoints.dueAt),
        failingSince: shiftedBack(webhookEndpoints.failingSince),
      })
      await executor
        .update(phoneCheckBudgets)
        .set({
          refilledAt: shiftedBack(phoneCheckBudgets.refilledAt),
          lockedUntil: shiftedBack(phoneCheckBudgets.lockedUntil),
        })
        .where(or(gt(phoneCheckBudgets.refilledAt, now), gt(phoneCheckBudgets.lockedUntil, now)))
      await shiftPhones(rollbackMs, now)
      await executor
        .update(refreshTokens)
        .set({
          createdAt: clampedToNow(refreshTokens.createdAt),
          expiresAt: shiftedBack(refreshTokens.expiresAt),
          usedAt: clampedToNow(refreshTokens.usedAt),
          sessionEndsAt: shiftedBack(refreshTokens.sessionEndsAt),
        })
        .where(gt(refreshTokens.createdAt, now))
      await executor
        .update(apiTokens)
        .set({ createdAt: clampedToNow(apiTokens.createdAt), expiresAt: shiftedBack(apiTokens.expiresAt) })
        .where(gt(apiTokens.createdAt, now))
      await executor
        .update(apiTokens)
        .set({ lastUsedAt: clampedToNow(apiTokens.lastUsedAt) })
        .where(gt(apiTokens.lastUsedAt, now))
      // Rounded up to a whole second.
      const validFrom = Math.ceil(now / 1000) * 1000
      await executor
        .update(developers)
        .set({ tokensValidFrom: validFrom })
        .where(gt(developers.tokensValidFrom, validFrom))
      database.sqlite?.configuration.move()
      await executor
        .update(setupTokens)
        .set({
          createdAt: clampedToNow(setupTokens.createdAt),
          expiresAt: shiftedBack(setupTokens.expiresAt),
        })
        .where(gt(setupTokens.createdAt, now))
      await executor.update(loginFailures).set({ at: now }).where(gt(loginFailures.at, now))
      // Otherwise every code would count as used until the clock is back where it was.
      const step = totpStep(now)
      await executor.update(totpSecrets).set({ lastStep: step }).where(gt(totpSecrets.lastStep, step))
    },
  }
}

const rollBack = ({ sends, checks }: LaneUsage, rollbackMs: number, now: number): LaneUsage => ({
  sends: sends.map((at) => Math.min(at, now)),
  checks: checks && {
    ...checks,
    refilledAt: checks.refilledAt - rollbackMs,
    lockedUntil: checks.lockedUntil && checks.lockedUntil - rollbackMs,
  },
})
