import { and, eq, gt, inArray, sql } from 'drizzle-orm'
import type { GuardStore } from '../domain/guard/counts.ts'
import type { Builders, Database } from './engine/database.ts'

type GuardWindows = Pick<GuardStore, 'usage' | 'addUnverified' | 'settle'>

/** What a send asks of the windows, each a single statement for all subjects. */
export function createGuardWindows(database: Database, on: Builders): GuardWindows {
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
    async usage(of, after) {
      const rows = await sums({ ...named(of), ...after })
      return new Map(rows.map(({ subject, ...usage }) => [subject, usage]))
    },

    async addUnverified(of, startsAt) {
      await inserts[of.length - 1]?.({ ...named(of), startsAt })
    },

    async settle(of, startsAt, change) {
      const changed = await settle({ ...named(of), startsAt, ...change })
      return changed.length > 0
    },
  }
}
