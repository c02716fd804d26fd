import { and, asc, desc, eq, gt, inArray, lte, max, sql, type SQL } from 'drizzle-orm'
import type { RateLimitStore } from '../domain/store/rate-limits.ts'
import { integerParam, textParam, orderByLimit1 } from './engine/query-params.ts'
import type { AdmissionTable, QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { columnNames } from './engine/row-writes.ts'

/** Number of admissions between two deletions of expired ones. */
const pruneEvery = 32

/** Stores the admissions of the sliding-window log in rows, for databases that several nodes write. */
export function createRateLimitRows(
  database: Database,
  executor: QueryExecutor,
  admissions: AdmissionTable,
): RateLimitStore {
  const { applications } = database.tables
  // The condition of the partial index on `at`.
  const isInTimeIndex = sql`${admissions.policy} not in ('otp-send', 'otp-verify')`
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
      .where(and(matchesLimiter, lte(admissions.at, integerParam('until'))))
      .orderBy(desc(admissions.at), orderByLimit1(desc(admissions.seq))),
  )
  const oldest = database.prepare(() =>
    executor
      .select(columns)
      .from(admissions)
      .where(and(matchesLimiter, gt(admissions.at, integerParam('after'))))
      .orderBy(asc(admissions.at), orderByLimit1(asc(admissions.seq))),
  )
  const insert = database.writeRows(executor, {
    kind: 'insert',
    table: admissions,
    columns: columnNames(admissions),
  })

  const isOfLimiter = (value: (name: string) => SQL) =>
    sql`${admissions.subject} = ${value('subject')} and ${admissions.policy} = ${value('policy')}`
  const limiterColumns = ['subject', 'policy', 'at'] as const
  const deleteAfter = database.writeRows(executor, {
    kind: 'delete',
    table: admissions,
    columns: limiterColumns,
    where: (value) => sql`${isOfLimiter(value)} and ${admissions.at} > ${value('at')}`,
  })
  const deleteUntil = database.writeRows(executor, {
    kind: 'delete',
    table: admissions,
    columns: limiterColumns,
    where: (value) => sql`${isOfLimiter(value)} and ${admissions.at} <= ${value('at')}`,
  })

  /** The latest admission of an application, found by primary key. */
  const latestAdmission = (policy: string) => sql<number | null>`max((
    select ${admissions.at} from ${admissions}
    where ${admissions}.subject = ${applications}.id and ${admissions.policy} = ${policy}
    order by ${admissions.at} desc limit 1))`

  return {
    async newest(subject, policy, until) {
      const [admission] = await newest({ subject, policy, until })
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

    async insert(list) {
      for (const { replacesLater, ...admission } of list) if (replacesLater) await deleteAfter(admission)
      for (const admission of list) await insert(admission)
      // Once for each limiter.
      const due = list.filter(({ seq }) => seq % pruneEvery === 0)
      const limiters = new Map(
        due.map((admission) => [`${admission.policy} ${admission.subject}`, admission]),
      )
      for (const { expiredUntil, ...limiter } of limiters.values())
        await deleteUntil({ ...limiter, at: expiredUntil })
    },

    async forget(subject) {
      return (
        await executor
          .delete(admissions)
          .where(eq(admissions.subject, subject))
          .returning({ at: admissions.at })
      ).length
    },

    async latestTimestamp() {
      const timestamps = [
        ...(await executor
          .select({ at: max(admissions.at) })
          .from(admissions)
          .where(isInTimeIndex)),
        ...(await executor.select({ at: latestAdmission('otp-send') }).from(applications)),
        ...(await executor.select({ at: latestAdmission('otp-verify') }).from(applications)),
      ].flatMap(({ at }) => (at === null ? [] : [Number(at)]))
      return timestamps.length === 0 ? undefined : Math.max(...timestamps)
    },

    async clampToNow(now) {
      for (const condition of [isInTimeIndex, isApplicationAdmission()]) {
        await executor
          .update(admissions)
          .set({ at: now })
          .where(and(condition, gt(admissions.at, now)))
      }
    },

    async deleteOldest(until, batchSize) {
      if (await deleteOldestByTime(executor, admissions, admissions.at, until, batchSize, isInTimeIndex))
        return true
      // Only idle applications have such rows: the others prune their own.
      await executor.delete(admissions).where(and(isApplicationAdmission(), lte(admissions.at, until)))
      return false
    },
  }
}
