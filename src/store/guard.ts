import { and, eq, gt, gte, inArray, lt, max, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { guardDayMs, guardHourMs, guardLifetimes, type GuardStore } from '../domain/guard-counts.ts'
import type { GuardRule } from '../domain/guard-rules.ts'
import type { Builders, Database } from './database.ts'

export function createGuardStore(database: Database, on: Builders): GuardStore {
  const { guardWindows: windows, guardAddressCountries, guardDays, guardDecisions } = database.tables
  const { usage, ...windowWriters } = windowStatements(database, on)
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
  const bestDay = database.prepare(() =>
    on
      .select({ best: max(days.verified) })
      .from(days)
      .where(and(eq(days.subject, p('subject')), gte(days.day, p('fromDay')))),
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
    ...windowWriters,
    usage,

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
      await on
        .update(addresses)
        .set({ verifiedAt: at })
        .where(and(eq(addresses.subject, subject), eq(addresses.country, country)))
    },

    async bestDay(subject, fromDay) {
      const [row] = await bestDay({ subject, fromDay })
      return row?.best ?? 0
    },

    async addVerified(subject, day) {
      await on
        .insert(days)
        .values({ subject, day, verified: 1 })
        .onConflictDoUpdate({
          target: [days.subject, days.day],
          set: { verified: sql`${days.verified} + 1` },
        })
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
      const flag = { flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 }
      await on
        .insert(decisions)
        .values({ hour, rule, country, ...flag })
        .onConflictDoUpdate({
          target: [decisions.hour, decisions.rule, decisions.country],
          set: {
            flagged: sql`${decisions.flagged} + ${flag.flagged}`,
            blocked: sql`${decisions.blocked} + ${flag.blocked}`,
          },
        })
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

/** What a send asks of the windows, each a single statement for all subjects. */
function windowStatements(database: Database, on: Builders) {
  const { guardWindows: windows } = database.tables
  const p = sql.placeholder
  const subjects = [p('subject0'), p('subject1'), p('subject2')]
  const inHour = (column: typeof windows.verified) =>
    sql<number>`sum(case when ${windows.startsAt} > ${p('hour')} then ${column} else 0 end)`.mapWith(Number)
  const inDay = (column: typeof windows.verified) => sql<number>`sum(${column})`.mapWith(Number)

  const sums = database.prepare(() =>
    on
      .select({
        subject: windows.subject,
        unverifiedHour: inHour(windows.unverified),
        unverifiedDay: inDay(windows.unverified),
        verifiedHour: inHour(windows.verified),
        verifiedDay: inDay(windows.verified),
      })
      .from(windows)
      .where(and(inArray(windows.subject, subjects), gt(windows.startsAt, p('day'))))
      .groupBy(windows.subject),
  )
  const insertOf = (count: number) =>
    database.prepare(() =>
      on
        .insert(windows)
        .values(
          subjects
            .slice(0, count)
            .map((subject) => ({ subject, startsAt: p('startsAt'), unverified: 1, verified: 0 })),
        )
        .onConflictDoUpdate({
          target: [windows.subject, windows.startsAt],
          set: { unverified: sql`${windows.unverified} + 1` },
        }),
    )
  const inserts = [insertOf(1), insertOf(2), insertOf(3)]
  const settle = database.prepare(() =>
    on
      .update(windows)
      .set({
        unverified: sql`case when ${windows.unverified} > ${p('messages')} then ${windows.unverified} - ${p('messages')} else 0 end`,
        verified: sql`${windows.verified} + ${p('verified')}`,
      })
      .where(and(inArray(windows.subject, subjects), eq(windows.startsAt, p('startsAt'))))
      .returning({ subject: windows.subject }),
  )
  /** A subject that is not there is written as none: every subject has a name. */
  const named = ([subject0 = '', subject1 = '', subject2 = '']: readonly string[]) => ({
    subject0,
    subject1,
    subject2,
  })

  return {
    async usage(of: readonly string[], after: { hour: number; day: number }) {
      const rows = await sums({ ...named(of), ...after })
      return new Map(rows.map(({ subject, ...usage }) => [subject, usage]))
    },

    async addUnverified(of: readonly string[], startsAt: number) {
      await inserts[of.length - 1]?.({ ...named(of), startsAt })
    },

    async settle(
      of: readonly string[],
      startsAt: number,
      change: { messages: number; verified: number },
    ): Promise<boolean> {
      const changed = await settle({ ...named(of), startsAt, ...change })
      return changed.length > 0
    },
  }
}
