import { and, eq, gt, gte, inArray, lt, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { guardLifetimes, type GuardRule } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { createGuardCounts } from './guard-counts.ts'
import { createGuardKeys } from './guard-keys.ts'
import { dayMs, hourMs } from '../shared/durations.ts'

/** Stores the guard's counters and decisions. */
export function createGuardStore(database: Database, executor: QueryExecutor): GuardStore {
  const { guardCountries: countries, guardCounts, guardContexts, guardDecisions: decisions } = database.tables
  const p = sql.placeholder

  // An update, which locks the row that it returns: between a lock and a select, another node could insert the row.
  const lockCountry = database.prepare(() =>
    executor
      .update(countries)
      .set({ alertUntil: sql`${countries.alertUntil}` })
      .where(eq(countries.subject, p('subject')))
      .returning({
        windows: countries.windows,
        alertUntil: countries.alertUntil,
        converts: countries.converts,
      }),
  )
  const insertCountry = database.prepare(() =>
    executor
      .insert(countries)
      .values({ subject: p('subject'), windows: '[]', alertUntil: 0, converts: 0, day: 0 })
      .onConflictDoNothing(),
  )
  const updateCountry = database.prepare(() =>
    executor
      .update(countries)
      .set({
        windows: sql`${p('windows')}`,
        alertUntil: sql`${p('alertUntil')}`,
        converts: sql`${p('converts')}`,
        day: sql`${p('day')}`,
      })
      .where(eq(countries.subject, p('subject'))),
  )
  const selectContext = database.prepare(() =>
    executor
      .select({ context: guardContexts.context })
      .from(guardContexts)
      .where(
        and(inArray(guardContexts.context, [p('first'), p('second')]), gte(guardContexts.day, p('sinceDay'))),
      ),
  )
  const addContext = database.prepare(() =>
    executor
      .insert(guardContexts)
      .values({ context: p('context'), day: p('day') })
      .onConflictDoUpdate({
        target: guardContexts.context,
        set: { day: sql`excluded.day` },
        // Once a day, so that most verifications write nothing here.
        setWhere: lt(guardContexts.day, sql`excluded.day`),
      }),
  )

  const addDecision = database.prepare(() =>
    executor
      .insert(decisions)
      .values({
        hour: p('hour'),
        rule: p('rule'),
        country: p('country'),
        flagged: p('flagged'),
        blocked: p('blocked'),
      })
      .onConflictDoUpdate({
        target: [decisions.hour, decisions.rule, decisions.country],
        set: {
          flagged: sql`${decisions.flagged} + excluded.flagged`,
          blocked: sql`${decisions.blocked} + excluded.blocked`,
        },
      }),
  )

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
    ...createGuardCounts(database, executor),
    ...createGuardKeys(database, executor),

    async lockCountry(subject) {
      let [row] = await lockCountry({ subject })
      if (!row) {
        await insertCountry({ subject })
        ;[row] = await lockCountry({ subject })
      }
      if (!row) throw new Error('the counts of a country are missing')
      // Written by `putCountry` alone.
      return { ...row, windows: JSON.parse(row.windows) as number[][], converts: row.converts === 1 }
    },

    async putCountry(subject, day, { windows, alertUntil, converts }) {
      const stored = { windows: JSON.stringify(windows), alertUntil, converts: converts ? 1 : 0 }
      await updateCountry({ subject, day, ...stored })
    },

    alerts: async (after) =>
      executor
        .select({ subject: countries.subject, alertUntil: countries.alertUntil })
        .from(countries)
        .where(gt(countries.alertUntil, after)),

    async hasVerified([first = '', second = ''], sinceDay) {
      return (await selectContext({ first, second, sinceDay })).length > 0
    },

    async addContexts(contexts, day) {
      for (const context of contexts.toSorted()) await addContext({ context, day })
    },

    async addDecision({ hour, rule, country, blocked }) {
      await addDecision({ hour, rule, country, flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 })
    },

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
      // `addDecision` is the only writer.
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
