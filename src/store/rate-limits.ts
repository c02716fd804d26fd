import { and, asc, desc, eq, gt, inArray, lte, sql, type SQL } from 'drizzle-orm'
import type { RateLimitStore } from '../domain/store/rate-limits.ts'
import { integerParam, textParam, orderByLimit1 } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import type { Tables } from './engine/tables.ts'

/** The condition of the partial index on `at`. SQLite uses the index only if the condition has the same text. */
export const isInTimeIndex = ({ policy }: Tables['rateAdmissions']): SQL =>
  sql`${policy} not in ('otp-send', 'otp-verify')`

/** Stores the admissions of the sliding-window log. */
export function createRateLimitStore(database: Database, executor: QueryExecutor): RateLimitStore {
  const { rateAdmissions: admissions, applications } = database.tables
  // The rows outside that index: one or two key ranges per application.
  const isApplicationAdmission = () =>
    and(
      inArray(admissions.subject, executor.select({ id: applications.id }).from(applications)),
      sql`${admissions.policy} in ('otp-send', 'otp-verify')`,
    )
  const columns = { at: admissions.at, seq: admissions.seq }
  const matchesLimiter = and(
    eq(admissions.subject, textParam('subject')),
    eq(admissions.policy, textParam('policy')),
  )
  const newest = database.prepare(() =>
    executor
      .select(columns)
      .from(admissions)
      .where(matchesLimiter)
      .orderBy(desc(admissions.at), orderByLimit1(desc(admissions.seq))),
  )
  const oldest = database.prepare(() =>
    executor
      .select(columns)
      .from(admissions)
      .where(and(matchesLimiter, gt(admissions.at, integerParam('after'))))
      .orderBy(asc(admissions.at), orderByLimit1(asc(admissions.seq))),
  )
  const insert = database.prepare(() =>
    executor.insert(admissions).values({
      subject: sql.placeholder('subject'),
      policy: sql.placeholder('policy'),
      at: sql.placeholder('at'),
      seq: sql.placeholder('seq'),
    }),
  )

  const deleteUntil = database.prepare(() =>
    executor.delete(admissions).where(and(matchesLimiter, lte(admissions.at, integerParam('time')))),
  )

  return {
    async newest(subject, policy) {
      const [admission] = await newest({ subject, policy })
      return admission
    },

    async oldestAfter(subject, policy, after, skip) {
      if (skip === 0) return (await oldest({ subject, policy, after }))[0]
      const [admission] = await executor
        .select(columns)
        .from(admissions)
        .where(and(eq(admissions.subject, subject), eq(admissions.policy, policy), gt(admissions.at, after)))
        .orderBy(asc(admissions.at), asc(admissions.seq))
        .limit(1)
        .offset(skip)
      return admission
    },

    async insert(subject, policy, admission) {
      await insert({ subject, policy, ...admission })
    },

    async deleteUntil(subject, policy, time) {
      await deleteUntil({ subject, policy, time })
    },

    async deleteAfter(subject, policy, time) {
      await executor
        .delete(admissions)
        .where(and(eq(admissions.subject, subject), eq(admissions.policy, policy), gt(admissions.at, time)))
    },

    async deleteSubject(subject) {
      return (
        await executor
          .delete(admissions)
          .where(eq(admissions.subject, subject))
          .returning({ at: admissions.at })
      ).length
    },

    async clampToNow(now) {
      for (const condition of [isInTimeIndex(admissions), isApplicationAdmission()]) {
        await executor
          .update(admissions)
          .set({ at: now })
          .where(and(condition, gt(admissions.at, now)))
      }
    },

    async deleteOldest(until, batchSize) {
      if (
        await deleteOldestByTime(
          executor,
          admissions,
          admissions.at,
          until,
          batchSize,
          isInTimeIndex(admissions),
        )
      )
        return true
      // Only idle applications have such rows: the others prune their own with every eighth call.
      await executor.delete(admissions).where(and(isApplicationAdmission(), lte(admissions.at, until)))
      return false
    },
  }
}
