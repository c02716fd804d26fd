import { gt, gte, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { guardLifetimes, type GuardRule } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { createGuardKeys } from './guard-keys.ts'
import { createGuardRows } from './guard-rows.ts'
import { dayMs, hourMs } from '../shared/durations.ts'

/** Stores the guard's counters and decisions. */
export function createGuardStore(database: Database, executor: QueryExecutor): GuardStore {
  const { guardCountries: countries, guardCounts, guardContexts, guardDecisions: decisions } = database.tables

  /**
   * Deletes a batch of the rows up to a time, selected by primary key because many rows have the same time.
   *
   * @returns true if rows were deleted, so there may be more
   */
  async function deleteBatchUntil(
    table: SQLiteTable,
    timeColumn: SQLiteColumn,
    otherKeys: SQLiteColumn[],
    until: number | string,
    batchSize: number,
  ): Promise<boolean> {
    const key = sql.join([timeColumn, ...otherKeys], sql`, `)
    const oldKeys = sql`select ${key} from ${table} where ${timeColumn} <= ${until} limit ${batchSize}`
    const deleted = await executor
      .delete(table)
      .where(sql`(${key}) in (${oldKeys})`)
      .returning({ at: timeColumn })
    return deleted.length > 0
  }

  return {
    ...createGuardRows(database, executor),
    ...createGuardKeys(database, executor),

    alerts: async (after) =>
      executor
        .select({ subject: countries.subject, alertUntil: countries.alertUntil })
        .from(countries)
        .where(gt(countries.alertUntil, after)),

    async decisions(fromHour) {
      const sumColumn = (column: typeof decisions.flagged) => sql<number>`sum(${column})`.mapWith(Number)
      const rows = await executor
        .select({
          rule: decisions.rule,
          country: decisions.country,
          flagged: sumColumn(decisions.flagged),
          blocked: sumColumn(decisions.blocked),
        })
        .from(decisions)
        .where(gte(decisions.hour, fromHour))
        .groupBy(decisions.rule, decisions.country)
      // `apply` is the only writer.
      return rows.map((row) => ({ ...row, rule: row.rule as GuardRule }))
    },

    async deleteOldest(now, batchSize) {
      const { countDays, countryDays, contextDays, decisionsMs } = guardLifetimes
      const today = Math.floor(now / dayMs)
      const hour = Math.floor((now - decisionsMs) / hourMs)
      const { subject: country } = countries
      const deleted = [
        // Subjects start with their day.
        await deleteBatchUntil(
          guardCounts,
          guardCounts.subject,
          [],
          String(today - countDays + 1),
          batchSize,
        ),
        await deleteBatchUntil(countries, countries.day, [country], today - countryDays, batchSize),
        await deleteBatchUntil(
          guardContexts,
          guardContexts.day,
          [guardContexts.context],
          today - contextDays - 1,
          batchSize,
        ),
        await deleteBatchUntil(
          decisions,
          decisions.hour,
          [decisions.rule, decisions.country],
          hour,
          batchSize,
        ),
      ]
      return deleted.includes(true)
    },
  }
}
