import { and, eq, gt, gte, lt, max, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { guardDayMs, guardHourMs, guardLifetimes, type GuardStore } from '../domain/guard/counts.ts'
import type { GuardRule } from '../domain/guard/rules.ts'
import type { Builders, Database } from './engine/database.ts'
import { createGuardWindows } from './guard-windows.ts'

export function createGuardStore(database: Database, on: Builders): GuardStore {
  const { guardWindows: windows, guardAddressCountries, guardDays, guardDecisions } = database.tables
  const addresses = guardAddressCountries
  const days = guardDays
  const decisions = guardDecisions
  const p = sql.placeholder
  const ofAddress = eq(addresses.subject, p('subject'))

  const listCountries = database.prepare(() =>
    on
      .select({ country: addresses.country, verifiedAt: addresses.verifiedAt })
      .from(addresses)
      .where(and(ofAddress, gt(addresses.sentAt, p('after')))),
  )
  const addCountry = database.prepare(() =>
    on
      .insert(addresses)
      .values({ subject: p('subject'), country: p('country'), sentAt: p('at') })
      .onConflictDoUpdate({
        target: [addresses.subject, addresses.country],
        set: { sentAt: sql`excluded.sent_at` },
      }),
  )
  const verifyCountry = database.prepare(() =>
    on
      .update(addresses)
      .set({ verifiedAt: sql`${p('at')}` })
      .where(and(ofAddress, eq(addresses.country, p('country')))),
  )
  const bestDay = database.prepare(() =>
    on
      .select({ best: max(days.verified) })
      .from(days)
      .where(and(eq(days.subject, p('subject')), gte(days.day, p('fromDay')))),
  )
  const addVerified = database.prepare(() =>
    on
      .insert(days)
      .values({ subject: p('subject'), day: p('day'), verified: 1 })
      .onConflictDoUpdate({ target: [days.subject, days.day], set: { verified: sql`${days.verified} + 1` } }),
  )
  const sentOn = database.prepare(() =>
    on
      .select({ sent: days.sent })
      .from(days)
      .where(and(eq(days.subject, p('subject')), eq(days.day, p('day')))),
  )
  const addSent = database.prepare(() =>
    on
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
    on
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
   * Deletes so many of the rows up to a time. By their keys: many rows have the same time.
   *
   * @returns whether there were any
   */
  async function deleteOld(
    table: SQLiteTable,
    time: SQLiteColumn,
    otherKeys: SQLiteColumn[],
    until: number,
    chunk: number,
  ): Promise<boolean> {
    const key = sql.join([time, ...otherKeys], sql`, `)
    const old = sql`select ${key} from ${table} where ${time} <= ${until} limit ${chunk}`
    const deleted = await on
      .delete(table)
      .where(sql`(${key}) in (${old})`)
      .returning({ at: time })
    return deleted.length > 0
  }

  return {
    ...createGuardWindows(database, on),

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

    async bestDay(subject, fromDay) {
      const [row] = await bestDay({ subject, fromDay })
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
      const total = (column: typeof decisions.flagged) => sql<number>`sum(${column})`.mapWith(Number)
      const rows = await on
        .select({
          rule: decisions.rule,
          country: decisions.country,
          flagged: total(decisions.flagged),
          blocked: total(decisions.blocked),
        })
        .from(decisions)
        .where(gte(decisions.hour, fromHour))
        .groupBy(decisions.rule, decisions.country)
      // `addDecision` wrote no other words.
      return rows.map((row) => ({ ...row, rule: row.rule as GuardRule }))
    },

    async deleteOldest(now, chunk) {
      const { windowsMs, addressCountriesMs, days: daysKept, decisionsMs } = guardLifetimes
      const today = Math.floor(now / guardDayMs)
      const hour = Math.floor((now - decisionsMs) / guardHourMs)
      const deleted = [
        await deleteOld(windows, windows.startsAt, [windows.subject], now - windowsMs, chunk),
        await deleteOld(
          addresses,
          addresses.sentAt,
          [addresses.subject, addresses.country],
          now - addressCountriesMs,
          chunk,
        ),
        await deleteOld(days, days.day, [days.subject], today - daysKept, chunk),
        await deleteOld(decisions, decisions.hour, [decisions.rule, decisions.country], hour, chunk),
      ]
      return deleted.includes(true)
    },
  }
}
