import { and, eq, gt, gte, lt, max, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { guardLifetimes, type GuardRule } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { createGuardWindows } from './guard-usage.ts'
import { dayMs, hourMs } from '../shared/durations.ts'

/** Stores the guard's counters and decisions. */
export function createGuardStore(database: Database, executor: QueryExecutor): GuardStore {
  const { guardWindows: windows, guardAddressCountries, guardDays, guardDecisions } = database.tables
  const addresses = guardAddressCountries
  const days = guardDays
  const decisions = guardDecisions
  const p = sql.placeholder
  const matchesAddress = eq(addresses.subject, p('subject'))

  const listCountries = database.prepare(() =>
    executor
      .select({ country: addresses.country, verifiedAt: addresses.verifiedAt })
      .from(addresses)
      .where(and(matchesAddress, gt(addresses.sentAt, p('after')))),
  )
  const addCountry = database.prepare(() =>
    executor
      .insert(addresses)
      .values({ subject: p('subject'), country: p('country'), sentAt: p('at') })
      .onConflictDoUpdate({
        target: [addresses.subject, addresses.country],
        set: { sentAt: sql`excluded.sent_at` },
      }),
  )
  const verifyCountry = database.prepare(() =>
    executor
      .update(addresses)
      .set({ verifiedAt: sql`${p('at')}` })
      .where(and(matchesAddress, eq(addresses.country, p('country')))),
  )
  const selectMaxVerifiedInDay = database.prepare(() =>
    executor
      .select({ best: max(days.verified) })
      .from(days)
      .where(and(eq(days.subject, p('subject')), gte(days.day, p('fromDay')))),
  )
  const addVerified = database.prepare(() =>
    executor
      .insert(days)
      .values({ subject: p('subject'), day: p('day'), verified: 1 })
      .onConflictDoUpdate({ target: [days.subject, days.day], set: { verified: sql`${days.verified} + 1` } }),
  )
  const sentOn = database.prepare(() =>
    executor
      .select({ sent: days.sent })
      .from(days)
      .where(and(eq(days.subject, p('subject')), eq(days.day, p('day')))),
  )
  const addSent = database.prepare(() =>
    executor
      .insert(days)
      .values({ subject: p('subject'), day: p('day'), sent: 1 })
      .onConflictDoUpdate({
        target: [days.subject, days.day],
        set: { sent: sql`${days.sent} + 1` },
        setWhere: lt(days.sent, p('max')),
      })
      .returning({ sent: days.sent }),
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
    until: number,
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
    ...createGuardWindows(database, executor),

    async addressCountries(subject, after) {
      const rows = await listCountries({ subject, after })
      return rows.map(({ country, verifiedAt }) => ({
        country,
        verified: verifiedAt !== null && verifiedAt > after,
      }))
    },

    async addAddressCountry(subject, country, at) {
      await addCountry({ subject, country, at })
    },

    async verifyAddressCountry(subject, country, at) {
      await verifyCountry({ subject, country, at })
    },

    async maxVerifiedInDay(subject, fromDay) {
      const [row] = await selectMaxVerifiedInDay({ subject, fromDay })
      return row?.best ?? 0
    },

    async addVerified(subject, day) {
      await addVerified({ subject, day })
    },

    async sentOn(subject, day) {
      const [row] = await sentOn({ subject, day })
      return row?.sent ?? 0
    },

    async addSent(subject, day, max) {
      const [row] = await addSent({ subject, day, max })
      return row?.sent
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
      const { windowsMs, addressCountriesMs, days: daysKept, decisionsMs } = guardLifetimes
      const today = Math.floor(now / dayMs)
      const hour = Math.floor((now - decisionsMs) / hourMs)
      const deleted = [
        await deleteBatchUntil(windows, windows.startsAt, [windows.subject], now - windowsMs, batchSize),
        await deleteBatchUntil(
          addresses,
          addresses.sentAt,
          [addresses.subject, addresses.country],
          now - addressCountriesMs,
          batchSize,
        ),
        await deleteBatchUntil(days, days.day, [days.subject], today - daysKept, batchSize),
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
