import { and, eq, gt, gte, like, lt, lte, sql } from 'drizzle-orm'
import {
  decisionsMs,
  GuardFault,
  type GuardCounts,
  type GuardDecisions,
  type GuardRow,
} from '../domain/model/guard.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { GuardChanges, GuardStore } from '../domain/store/guard.ts'
import { dayMs, hourMs } from '../shared/durations.ts'
import type { Connection } from './engine/connection.ts'
import { toCallerError } from './engine/errors.ts'
import { inKeyOrder, valuesInKeyOrder } from './engine/key-order.ts'
import { onTable } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'

type StoredRow = Omit<GuardRow, 'windows'> & { subject: string; windows: string }

/** Windows of a row that was inserted for its lock alone. */
const unused = '[]'

function toRows(rows: readonly StoredRow[]): Map<string, GuardRow> {
  const found = new Map<string, GuardRow>()
  for (const { subject, windows, alertedAt, until } of rows)
    if (windows !== unused)
      found.set(subject, { windows: JSON.parse(windows) as GuardCounts, alertedAt, until })
  return found
}

/**
 * Converts an error of PostgreSQL. In an outage, such as a lock that takes too long under load, the call is refused: it must
 * not pass without the guard.
 */
const toError = (error: unknown) =>
  toCallerError(error) instanceof ServiceError ? error : new GuardFault(error)

/** Stores the guard's counters and decisions. */
export function createGuardStore(connection: Connection): GuardStore {
  const { database, executor } = connection
  const { guardUsage: usage, guardDecisions: decisions } = database.tables
  const cache = executor === database.read ? undefined : database.sqlite?.guardRows
  const usageColumns = columnsOf<typeof usage, GuardRow & { subject: string }>(usage, {
    windows: ({ windows }) => JSON.stringify(windows),
  })
  const putRows = database.writeRows(
    executor,
    insertInto(usageColumns, { onConflict: { key: ['subject'], others: 'replace' }, toError }),
  )
  const decisionColumns = columnsOf<typeof decisions, GuardDecisions & { hour: number }>(decisions, {})
  const addDecisions = database.writeRows(
    executor,
    insertInto(decisionColumns, {
      onConflict: { key: ['hour', 'rule', 'country'], others: 'add' },
      toError,
    }),
  )
  const lockRows = createLockQuery(connection)

  return {
    async rows(keys) {
      if (!cache) return lockRows(keys)
      const found = keys.map((key) => [key, cache.get(key)] as const)
      return new Map(found.filter((entry): entry is [string, GuardRow] => entry[1] !== undefined))
    },

    async apply(changes) {
      try {
        if (cache) cache.change(changes.rows)
        else putRows(inKeyOrder(changes.rows).map(([subject, row]) => ({ ...row, subject })))
        addDecisions(valuesInKeyOrder(changes.decisions))
      } catch (error) {
        throw new GuardFault(error)
      }
    },

    async named(prefix) {
      const { subject } = usage
      const isNamed = and(gte(subject, prefix), lt(subject, `${prefix}\u{7f}`), like(subject, '% %'))
      return toRows(await onTable(executor, usage).list(isNamed))
    },

    async listKeys(after, limit) {
      cache?.write()
      const { subject } = usage
      const rows = await pageAfter(executor, { subject }, subject, after, limit)
      return rows.map((row) => row.subject)
    },

    async delete(subject) {
      await executor.delete(usage).where(eq(usage.subject, subject))
      cache?.change(new Map([[subject, undefined]]))
    },

    async decisions(fromHour) {
      const sumColumn = (column: typeof decisions.flagged) => sql<number>`sum(${column})`.mapWith(Number)
      return executor
        .select({
          rule: decisions.rule,
          country: decisions.country,
          flagged: sumColumn(decisions.flagged),
          blocked: sumColumn(decisions.blocked),
        })
        .from(decisions)
        .where(gte(decisions.hour, fromHour))
        .groupBy(decisions.rule, decisions.country)
    },

    async deleteUnused(after, last, now) {
      const { subject, until } = usage
      const isUnused = and(gt(subject, after), lte(subject, last), lte(until, Math.floor(now / dayMs)))
      await executor.delete(usage).where(isUnused)
    },

    async deleteOldDecisions(now, batchSize) {
      const { hour, rule, country } = decisions
      // By primary key, because many have the same time.
      const key = sql`${hour}, ${rule}, ${country}`
      const last = Math.floor((now - decisionsMs) / hourMs)
      const deleted = await executor
        .delete(decisions)
        .where(sql`(${key}) in (select ${key} from ${decisions} where ${hour} <= ${last} limit ${batchSize})`)
        .returning({ hour })
      return deleted.length > 0
    },
  }
}

/**
 * Creates the query that reads and locks rows, of one call or of many at once, on PostgreSQL. It inserts those that are
 * missing, as otherwise two calls could count the first message of a subject.
 *
 * @throws see `toError`
 */
function createLockQuery({ database, executor }: Connection) {
  const { guardUsage: usage } = database.tables
  const keys = sql`${sql.placeholder('keys')}::text[]`
  const lockRows = database.prepare(() =>
    executor
      .insert(usage)
      .select(sql`select name, ${sql.raw(`'${unused}', 0, 0`)} from unnest(${keys}) as keys(name)`)
      // Locks a row that exists, and returns it as the last transaction left it.
      .onConflictDoUpdate({ target: usage.subject, set: { until: sql`${usage.until}` } })
      .returning(),
  )
  return async (subjects: readonly string[]): Promise<ReadonlyMap<string, GuardRow>> => {
    try {
      return toRows(await lockRows({ keys: subjects }))
    } catch (error) {
      throw toError(error)
    }
  }
}

/** Adds the changes of a later call to those of earlier ones. */
export function mergeGuardChanges(into: GuardChanges, changes: GuardChanges): void {
  for (const [subject, row] of changes.rows) into.rows.set(subject, row)
  for (const [key, decision] of changes.decisions) {
    const { flagged = 0, blocked = 0 } = into.decisions.get(key) ?? {}
    into.decisions.set(key, {
      ...decision,
      flagged: flagged + decision.flagged,
      blocked: blocked + decision.blocked,
    })
  }
}
