import { and, eq, gt, inArray, sql } from 'drizzle-orm'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

type GuardWindows = Pick<GuardStore, 'usage' | 'addUnverified' | 'adjustCounts'>

/** Creates the guard's queries on time windows. Each is one statement for up to three subjects. */
export function createGuardWindows(database: Database, executor: QueryExecutor): GuardWindows {
  const { guardWindows: windows } = database.tables
  const p = sql.placeholder
  const subjectPlaceholders = [p('subject0'), p('subject1'), p('subject2')]
  const sumInHour = (column: typeof windows.verified) =>
    sql<number>`sum(case when ${windows.startsAt} > ${p('hour')} then ${column} else 0 end)`.mapWith(Number)
  const sumInDay = (column: typeof windows.verified) => sql<number>`sum(${column})`.mapWith(Number)

  const selectUsage = database.prepare(() =>
    executor
      .select({
        subject: windows.subject,
        unverifiedHour: sumInHour(windows.unverified),
        unverifiedDay: sumInDay(windows.unverified),
        verifiedHour: sumInHour(windows.verified),
        verifiedDay: sumInDay(windows.verified),
      })
      .from(windows)
      .where(and(inArray(windows.subject, subjectPlaceholders), gt(windows.startsAt, p('day'))))
      .groupBy(windows.subject),
  )
  const prepareInsert = (count: number) =>
    database.prepare(() =>
      executor
        .insert(windows)
        .values(
          subjectPlaceholders
            .slice(0, count)
            .map((subject) => ({ subject, startsAt: p('startsAt'), unverified: 1, verified: 0 })),
        )
        .onConflictDoUpdate({
          target: [windows.subject, windows.startsAt],
          set: { unverified: sql`${windows.unverified} + 1` },
        }),
    )
  const insertBySubjectCount = [prepareInsert(1), prepareInsert(2), prepareInsert(3)]
  const updateCounts = database.prepare(() =>
    executor
      .update(windows)
      .set({
        unverified: sql`case when ${windows.unverified} > ${p('messages')} then ${windows.unverified} - ${p('messages')} else 0 end`,
        verified: sql`${windows.verified} + ${p('verified')}`,
      })
      .where(and(inArray(windows.subject, subjectPlaceholders), eq(windows.startsAt, p('startsAt'))))
      .returning({ subject: windows.subject }),
  )
  /** Missing subjects become empty strings, which match no row. */
  const subjectParams = ([subject0 = '', subject1 = '', subject2 = '']: readonly string[]) => ({
    subject0,
    subject1,
    subject2,
  })

  return {
    async usage(subjects, after) {
      const rows = await selectUsage({ ...subjectParams(subjects), ...after })
      return new Map(rows.map(({ subject, ...usage }) => [subject, usage]))
    },

    async addUnverified(subjects, startsAt) {
      await insertBySubjectCount[subjects.length - 1]?.({ ...subjectParams(subjects), startsAt })
    },

    async adjustCounts(subjects, startsAt, change) {
      const changed = await updateCounts({ ...subjectParams(subjects), startsAt, ...change })
      return changed.length > 0
    },
  }
}
