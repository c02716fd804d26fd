import { sql, type SQL } from 'drizzle-orm'
import { idTime, lowestId } from '../../domain/model/ids.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'
import type { MonthlyTable, PartitionedTable, Partitions, QueryExecutor } from '../engine/database.ts'

/** Tables in partitions of a month: the column that they are divided by, and the prefix of its ids, which tell the month. */
const monthlyTables = {
  otp_requests: { key: 'id', prefix: 'otp' },
  otp_deliveries: { key: 'request_id', prefix: 'otp' },
  webhook_deliveries: { key: 'id', prefix: 'dlv' },
  webhook_attempts: { key: 'delivery_id', prefix: 'dlv' },
} as const satisfies Record<MonthlyTable, { key: string; prefix: string }>

/** Lists the tables in partitions of a month, with the column that they are divided by. */
export const listMonthlyTables = () =>
  // Its keys are those of the type.
  (Object.keys(monthlyTables) as MonthlyTable[]).map((table) => ({ table, key: monthlyTables[table].key }))

/** Tables whose partition is dropped with that of the table that their rows belong to. */
const dependents: Partial<Record<PartitionedTable, PartitionedTable>> = {
  otp_requests: 'otp_deliveries',
  webhook_deliveries: 'webhook_attempts',
}

/** Months that have partitions before they begin. */
const monthsAhead = 2
/** A partition of the log has about as many entries as a month, but not fewer. */
const entriesMin = 1_000_000
const monthMs = 30 * dayMs
/** An id is made at almost the same time as its row; `at` of the log may fall back so far. */
const slackMs = minuteMs

/** The range of keys in a partition: `lower` is in it, `upper` is not. */
export type PartitionPlan = { suffix: string; lower: string; upper: string }

/** The month of a time, as the range of the ids that were made in it. */
export function planMonth(table: MonthlyTable, time: number): PartitionPlan {
  const date = new Date(time)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const { prefix } = monthlyTables[table]
  return {
    suffix: `${year}${String(month + 1).padStart(2, '0')}`,
    lower: lowestId(prefix, Date.UTC(year, month)),
    upper: lowestId(prefix, Date.UTC(year, month + 1)),
  }
}

/** The months from a time on until those ahead of now. */
export function planMonths(table: MonthlyTable, from: number, now: number): PartitionPlan[] {
  const start = new Date(Math.min(from, now))
  const end = new Date(now)
  const months = (date: Date) => date.getUTCFullYear() * 12 + date.getUTCMonth()
  const count = months(end) - months(start) + monthsAhead + 1
  return Array.from({ length: count }, (_, n) =>
    planMonth(table, Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + n)),
  )
}

/**
 * The next range of the log: as many entries as a month brings, at the rate since an earlier entry.
 *
 * @param from the first number of the range
 * @param last the number of the last entry
 */
export function planEntries(
  from: number,
  last: number,
  earlier: { seq: number; at: number } | undefined,
  now: number,
): PartitionPlan {
  const perMs = earlier ? (last - earlier.seq) / Math.max(dayMs, now - earlier.at) : 0
  const entries = Math.max(entriesMin, Math.ceil(perMs * monthMs))
  return { suffix: String(from), lower: String(from), upper: String(from + entries) }
}

/** Calls the function of the database that makes a partition. */
const makePartition = (table: PartitionedTable, { suffix, lower, upper }: PartitionPlan) =>
  sql`otpd_make_partition(${table}::text, ${suffix}::text, ${lower}::text, ${upper}::text)`

const run = async (executor: QueryExecutor, call: SQL): Promise<boolean> => {
  const rows = await executor.select({ isDone: sql<boolean>`is_done` }).from(sql`${call} as is_done`)
  return rows[0]?.isDone === true
}

/** Lists the partitions of a table, oldest first, without the one for the rest. */
async function listPartitions(executor: QueryExecutor, table: PartitionedTable): Promise<PartitionPlan[]> {
  const rows = await executor.select({ name: sql<string>`name`, bound: sql<string>`bound` }).from(
    sql`(select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = to_regclass(${table}::text)) as p`,
  )
  const partitions = rows.flatMap(({ name, bound }) => {
    const [, lower, upper] = /^FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)$/.exec(bound) ?? []
    return lower === undefined || upper === undefined
      ? []
      : [{ suffix: name.slice(table.length + 1), lower, upper }]
  })
  const isBelow = (a: string, b: string) => (table === 'events' ? Number(a) < Number(b) : a < b)
  return partitions.toSorted((a, b) => (isBelow(a.lower, b.lower) ? -1 : 1))
}

/** Finds the partition to make next. */
async function findMissing(
  executor: QueryExecutor,
  now: number,
): Promise<{ table: PartitionedTable; plan: PartitionPlan } | undefined> {
  for (const { table, key: column } of listMonthlyTables()) {
    const existing = new Set((await listPartitions(executor, table)).map(({ suffix }) => suffix))
    const missing = planMonths(table, now, now).find(({ suffix }) => !existing.has(suffix))
    if (missing) return { table, plan: missing }
    const key = sql.identifier(column)
    const [first] = await executor
      .select({ key: sql<string | null>`key` })
      .from(sql`(select min(${key}) as key from ${sql.identifier(`${table}_rest`)}) as first`)
    if (!first?.key) continue
    const plan = planMonth(table, idTime(first.key))
    // An id that is none stays in the rest.
    if (plan.lower <= first.key && first.key < plan.upper && !existing.has(plan.suffix))
      return { table, plan }
  }
  return findMissingEntries(executor, now)
}

async function findMissingEntries(executor: QueryExecutor, now: number) {
  const existing = await listPartitions(executor, 'events')
  const findEntry = async (from: number) => {
    const [entry] = await executor
      .select({ seq: sql<string>`seq`, at: sql<string>`at` })
      .from(sql`(select seq, at from events where seq >= ${from}::bigint order by seq limit 1) as first`)
    return entry && { seq: Number(entry.seq), at: Number(entry.at) }
  }
  const [counter] = await executor
    .select({ last: sql<string>`value` })
    .from(sql`(select value from counters where name = 'event_seq') as counter`)
  const last = Number(counter?.last ?? 0)
  const newest = existing.at(-1)
  const earlier = await findEntry(Number(existing.at(-2)?.lower ?? newest?.lower ?? 0))
  const from = newest ? Number(newest.upper) : Math.min(earlier?.seq ?? last + 1, last + 1)
  const plan = planEntries(from, last, earlier, now)
  // A whole partition is always ahead.
  const isMissing = from - last <= Number(plan.upper) - from
  return isMissing ? { table: 'events' as const, plan } : undefined
}

/** Tells whether all rows of a partition are from before a time. */
async function isOld(
  executor: QueryExecutor,
  table: PartitionedTable,
  { lower, upper }: PartitionPlan,
  until: number,
): Promise<boolean> {
  if (table !== 'events') return upper <= lowestId(monthlyTables[table].prefix, Math.max(0, until - slackMs))
  // The log is in the order of time.
  const [entry] = await executor.select({ at: sql<string | null>`at`, isFull: sql<boolean>`is_full` }).from(
    sql`(select
      (select at from events where seq >= ${lower}::bigint and seq < ${upper}::bigint order by seq desc limit 1) as at,
      (select value >= ${upper}::bigint from counters where name = 'event_seq') as is_full) as newest`,
  )
  return entry?.isFull === true && (entry.at === null || Number(entry.at) <= until - slackMs)
}

export const partitions: Partitions = {
  async prepareNext(executor, now) {
    const missing = await findMissing(executor, now)
    return missing !== undefined && run(executor, makePartition(missing.table, missing.plan))
  },

  async dropOldest(executor, table, until) {
    const [oldest] = await listPartitions(executor, table)
    if (!oldest || !(await isOld(executor, table, oldest, until))) return false
    const drop = (name: string) =>
      run(executor, sql`otpd_drop_partition(${name}::text, ${oldest.suffix}::text)`)
    const dependent = dependents[table]
    if (dependent) {
      const belongs = (await listPartitions(executor, dependent)).some(
        ({ suffix }) => suffix === oldest.suffix,
      )
      if (belongs && !(await drop(dependent))) return false
    }
    return drop(table)
  },
}
