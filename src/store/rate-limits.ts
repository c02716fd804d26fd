import { and, eq, gt, inArray, lte, max, sql, type SQL } from 'drizzle-orm'
import { unused } from '../domain/model/rate-limit.ts'
import type { Admission, NewAdmission, RateLimit, StoredPolicy, Usage } from '../domain/model/rate-limit.ts'
import type { RateLimitStore } from '../domain/store/rate-limits.ts'
import { loadedAt } from './transaction-time.ts'
import type { Connection } from './engine/connection.ts'
import type { AdmissionTable } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable } from './engine/on-table.ts'
import { columnsOf, insertInto, readFields, rowsOf } from './engine/row-writes.ts'

/** Number of admissions between two deletions of expired ones. */
const pruneEvery = 32

/** Stores the admissions of the sliding-window log: in memory on SQLite, rows on PostgreSQL. */
export function createRateLimitStore(connection: Connection): RateLimitStore {
  const { database, executor } = connection
  if (database.postgres) return createRateLimitRows(connection, database.postgres.admissionTable)
  const { admissions, refresh } = database.sqlite
  return {
    ...admissions,
    async usage(limit, now) {
      if (executor === database.read) refresh()
      return admissions.usage(limit, now)
    },
  }
}

/** Stores the admissions of the sliding-window log in rows, for databases that several nodes write. */
function createRateLimitRows(connection: Connection, admissions: AdmissionTable): RateLimitStore {
  const { database, executor } = connection
  const { applications } = database.tables
  const rows = onTable(executor, admissions)
  // The condition of the partial index on `at`.
  const isInTimeIndex = sql`${admissions.policy} not in ('otp-send', 'otp-verify')`
  // The rows outside that index: one or two key ranges per application.
  const isApplicationAdmission = () =>
    and(
      inArray(admissions.subject, executor.select({ id: applications.id }).from(applications)),
      sql`${admissions.policy} in ('otp-send', 'otp-verify')`,
    )
  const readUsages = createUsageQuery(connection, admissions)
  const columns = columnsOf<typeof admissions, NewAdmission>(admissions, {})
  const insert = database.writeRows(executor, insertInto(columns))
  /** Deletes the admissions of limiters after the time of another one, or up to it. */
  const prepareDelete = (operator: '>' | '<=') =>
    database.writeRows(executor, {
      ...readFields(columns, ['subject', 'policy', 'at']),
      sqlite: undefined,
      postgres: `delete from rate_admissions as old using ${rowsOf('rate_admissions')}
        where old.subject = given.subject and old.policy = given.policy and old.at ${operator} given.at`,
    })
  const deleteAfter = prepareDelete('>')
  const deleteUntil = prepareDelete('<=')

  /** The latest admission of an application, found by primary key. */
  const latestAdmission = (policy: string) => sql<number | null>`max((
    select ${admissions.at} from ${admissions}
    where ${admissions}.subject = ${applications}.id and ${admissions.policy} = ${policy}
    order by ${admissions.at} desc limit 1))`

  return {
    async usage(limit, now) {
      const [usage] = await readUsages([limit], now)
      return usage ?? unused
    },

    insert(list) {
      deleteAfter(list.filter(({ replacesLater }) => replacesLater))
      insert(list)
      // Once for each limiter.
      const due = list.filter(({ seq }) => seq % pruneEvery === 0)
      const limiters = new Map(
        due.map((admission) => [`${admission.policy} ${admission.subject}`, admission]),
      )
      deleteUntil([...limiters.values()].map((admission) => ({ ...admission, at: admission.expiredUntil })))
    },

    forget: async (subject) => (await rows.take(eq(admissions.subject, subject))).length,

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
      for (const condition of [isInTimeIndex, isApplicationAdmission()])
        await rows.update({ at: now }, and(condition, gt(admissions.at, now)))
    },

    async deleteOldest(until, batchSize) {
      if (await deleteOldestByTime(executor, admissions.at, { until, batchSize }, isInTimeIndex)) return true
      // Only idle applications have such rows: the others prune their own.
      await rows.delete(and(isApplicationAdmission(), lte(admissions.at, until)))
      return false
    },
  }
}

/**
 * Creates the query that measures many limits at one time, on PostgreSQL: for each, the newest admission; if that is from a
 * clock that ran far ahead, the newest until now; the oldest in the window; and the one that frees a place, if the limit
 * was lowered.
 *
 * @param now null: the time of the database that this transaction has just read
 * @returns the usages in the order of the limits
 */
export function createUsageQuery({ database, executor }: Connection, admissions: AdmissionTable) {
  const { subject, policy, at, seq } = admissions
  const p = sql.placeholder
  const now = sql`coalesce(${p('now')}::bigint, ${loadedAt})`
  /** The first admission of a limiter in an order. */
  const first = (condition: SQL, order: SQL, skip = sql``) => sql`lateral (
    select ${at} as at, ${seq} as seq from ${admissions}
    where ${subject} = limits.subject and ${policy} = limits.policy${condition}
    order by ${at} ${order}, ${seq} ${order} limit 1${skip})`
  const start = sql`${now} - limits.window_ms`
  const used = sql`coalesce(reached.seq, newest.seq) - oldest.seq + 1`
  const names = ['newest', 'reached', 'oldest', 'expiring'] as const
  const columns = Object.fromEntries(
    names.map((name) => [
      name,
      sql<string[] | null>`case when ${sql.raw(name)}.seq is not null
        then array[${sql.raw(name)}.at, ${sql.raw(name)}.seq] end`.as(name),
    ]),
  ) as Record<(typeof names)[number], SQL.Aliased<string[] | null>>
  const query = database.prepare(() =>
    executor.select({ ...columns, now: sql<string>`${now}`.as('now') }).from(sql`unnest(
      ${p('subjects')}::text[], ${p('policies')}::text[], ${p('maxima')}::bigint[], ${p('windows')}::bigint[])
      with ordinality as limits(subject, policy, maximum, window_ms, place)
      left join ${first(sql``, sql`desc`)} newest on true
      left join ${first(sql` and newest.at > ${now} + limits.window_ms and ${at} <= ${now}`, sql`desc`)} reached on true
      left join ${first(sql` and ${at} > ${start}`, sql`asc`)} oldest on true
      left join ${first(
        sql` and ${at} > ${start} and ${used} > limits.maximum`,
        sql`asc`,
        sql` offset greatest(0, ${used} - limits.maximum)`,
      )} expiring on true
      order by limits.place`),
  )

  return async (limits: ReadonlyArray<RateLimit<StoredPolicy>>, now: number | null): Promise<Usage[]> => {
    const rows = await query({
      now,
      subjects: limits.map((limit) => limit.subject),
      policies: limits.map((limit) => limit.policy),
      maxima: limits.map(({ limit }) => limit),
      windows: limits.map(({ windowMs }) => windowMs),
    })
    return limits.map((limit, index) => measure(rows[index], limit, now ?? Number(rows[index]?.now)))
  }
}

/** Admissions of a limiter by which it is measured. */
type MeasuredRow = Record<'newest' | 'reached' | 'oldest' | 'expiring', readonly string[] | null>

function measure(row: MeasuredRow | undefined, { limit, windowMs }: RateLimit, now: number): Usage {
  const latest = toAdmission(row?.newest)
  if (limit === 0 || !latest) return unused
  // An admission from a clock that ran far ahead must not block the subject until that time.
  const hasLater = latest.at > now + windowMs
  const newest = hasLater ? toAdmission(row?.reached) : latest
  if (!newest || newest.at <= now - windowMs) return { ...unused, newest, hasLater }
  const oldest = toAdmission(row?.oldest) ?? newest
  const used = newest.seq - oldest.seq + 1
  // If the limit was lowered, more than one admission must leave the window first.
  const expiring = used > limit ? (toAdmission(row?.expiring) ?? newest) : oldest
  return { used, newest, expiringAt: expiring.at, hasLater }
}

/** The driver returns 64-bit integers as text. */
const toAdmission = (values: readonly string[] | null | undefined): Admission | undefined =>
  values ? { at: Number(values[0]), seq: Number(values[1]) } : undefined
