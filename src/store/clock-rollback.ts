import { and, gt, isNotNull, max, or, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { PhoneRecord, PhoneUsage } from '../domain/model/phone-record.ts'
import type { DeadlineStore } from '../domain/store/clock-rollback.ts'
import { totpStep } from '../domain/model/totp.ts'
import { mapProperties } from '../shared/fields.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { createPhoneStore } from './phones.ts'

/**
 * Covers every table with deadlines. `latestTimestamp` runs at every start and must be fast; `shiftDeadlines` scans
 * tables.
 */
export function createDeadlineStore(connection: Connection): DeadlineStore {
  const { database, executor } = connection
  const {
    otpRequests,
    messages,
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
    const store = createPhoneStore(connection)
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
      const usages: PhoneRecord['usages'] = mapProperties(record.usages, (usage) =>
        rollBack(usage, rollbackMs, now),
      )
      const handle = await store.load(hash, record)
      await store.save(handle, { ...record, usages, lastSentAt: Math.min(record.lastSentAt, now) })
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
      const back = (column: SQLiteColumn) => sql`${column} - ${rollbackMs}`
      const clamped = (column: SQLiteColumn) =>
        sql`case when ${column} > ${now} then ${now} else ${column} end`
      const update = <T extends SQLiteTable>(
        table: T,
        ...change: Parameters<ReturnType<typeof onTable<T>>['update']>
      ) => onTable(executor, table).update(...change)

      await update(
        otpRequests,
        { sentAt: back(otpRequests.sentAt), expiresAt: back(otpRequests.expiresAt) },
        isPendingAt(now),
      )
      for (const column of ['nextAttemptAt', 'reportDueAt'] as const)
        await update(messages, { [column]: back(messages[column]) }, isNotNull(messages[column]))
      const { nextAttemptAt } = webhookDeliveries
      await update(webhookDeliveries, { nextAttemptAt: back(nextAttemptAt) }, isNotNull(nextAttemptAt))
      const { dueAt, failingSince } = webhookEndpoints
      await update(webhookEndpoints, { dueAt: back(dueAt), failingSince: back(failingSince) })
      const { refilledAt, lockedUntil } = phoneCheckBudgets
      await update(
        phoneCheckBudgets,
        { refilledAt: back(refilledAt), lockedUntil: back(lockedUntil) },
        or(gt(refilledAt, now), gt(lockedUntil, now)),
      )
      await shiftPhones(rollbackMs, now)
      await update(
        refreshTokens,
        {
          createdAt: clamped(refreshTokens.createdAt),
          expiresAt: back(refreshTokens.expiresAt),
          usedAt: clamped(refreshTokens.usedAt),
          sessionEndsAt: back(refreshTokens.sessionEndsAt),
        },
        gt(refreshTokens.createdAt, now),
      )
      const { createdAt, expiresAt, lastUsedAt } = apiTokens
      const isFromFuture = gt(createdAt, now)
      await update(apiTokens, { createdAt: clamped(createdAt), expiresAt: back(expiresAt) }, isFromFuture)
      await update(apiTokens, { lastUsedAt: now }, gt(lastUsedAt, now))
      // Rounded up to a whole second.
      const validFrom = Math.ceil(now / 1000) * 1000
      await update(developers, { tokensValidFrom: validFrom }, gt(developers.tokensValidFrom, validFrom))
      database.sqlite?.configuration.increment()
      await update(
        setupTokens,
        { createdAt: clamped(setupTokens.createdAt), expiresAt: back(setupTokens.expiresAt) },
        gt(setupTokens.createdAt, now),
      )
      await update(loginFailures, { at: now }, gt(loginFailures.at, now))
      // Otherwise every code would count as used until the clock is back where it was.
      const step = totpStep(now)
      await update(totpSecrets, { lastStep: step }, gt(totpSecrets.lastStep, step))
    },
  }
}

const rollBack = ({ sends, checks }: PhoneUsage, rollbackMs: number, now: number): PhoneUsage => ({
  sends: sends.map((at) => Math.min(at, now)),
  checks: checks && {
    ...checks,
    refilledAt: checks.refilledAt - rollbackMs,
    lockedUntil: checks.lockedUntil && checks.lockedUntil - rollbackMs,
  },
})
