import { eq, inArray, lt, sql, type SQL } from 'drizzle-orm'
import { pendingSlot } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

type GuardCountQueries = Pick<GuardStore, 'addUnverified' | 'counts' | 'adjust' | 'addSent'>

/** Creates the guard's queries on prefixes and networks. Each is one statement for one or two subjects. */
export function createGuardCounts(database: Database, executor: QueryExecutor): GuardCountQueries {
  const { guardCounts: counts } = database.tables
  const p = sql.placeholder
  const subjects = [p('first'), p('second')]
  const columns = {
    subject: counts.subject,
    unverified: counts.unverified,
    verified: counts.verified,
    slot: counts.slot,
    pending: counts.pending,
    pendingBefore: counts.pendingBefore,
    firstAt: counts.firstAt,
  }

  const select = database.prepare(() =>
    executor.select(columns).from(counts).where(inArray(counts.subject, subjects)),
  )
  const isSlot = sql`${counts.slot} = excluded.slot`
  const prepareAdd = (subjectCount: number) =>
    database.prepare(() =>
      executor
        .insert(counts)
        .values(
          subjects.slice(0, subjectCount).map((subject) => ({
            subject,
            unverified: 1,
            verified: 0,
            slot: p('slot'),
            pending: 1,
            pendingBefore: 0,
            firstAt: p('at'),
          })),
        )
        .onConflictDoUpdate({
          target: counts.subject,
          set: {
            unverified: sql`${counts.unverified} + 1`,
            slot: sql`excluded.slot`,
            pending: sql`case when ${isSlot} then ${counts.pending} + 1 else 1 end`,
            pendingBefore: sql`case when ${isSlot} then ${counts.pendingBefore}
              when ${counts.slot} = excluded.slot - 1 then ${counts.pending} else 0 end`,
          },
        })
        .returning(columns),
    )
  const addOne = prepareAdd(1)
  const addTwo = prepareAdd(2)

  /** Subtracts without becoming negative, which a request that was counted in part could cause. */
  const minus = (column: typeof counts.pending, condition?: SQL) => {
    const difference = sql`case when ${column} > ${p('messages')} then ${column} - ${p('messages')} else 0 end`
    return condition ? sql`case when ${condition} then ${difference} else ${column} end` : difference
  }
  const adjust = database.prepare(() =>
    executor
      .update(counts)
      .set({
        unverified: minus(counts.unverified),
        verified: sql`${counts.verified} + ${p('verified')}`,
        pending: minus(counts.pending, sql`${counts.slot} = ${p('slot')}`),
        pendingBefore: minus(counts.pendingBefore, sql`${counts.slot} = ${p('nextSlot')}`),
      })
      .where(eq(counts.subject, p('subject')))
      .returning({ unverified: counts.unverified }),
  )
  const addSent = database.prepare(() =>
    executor
      .insert(counts)
      .values({
        subject: p('subject'),
        unverified: 1,
        verified: 0,
        slot: 0,
        pending: 0,
        pendingBefore: 0,
        firstAt: 0,
      })
      .onConflictDoUpdate({
        target: counts.subject,
        set: { unverified: sql`${counts.unverified} + 1` },
        setWhere: lt(counts.unverified, p('max')),
      })
      .returning({ sent: counts.unverified }),
  )

  const toKey = (day: number, subject: string) => `${day} ${subject}`
  const toMap = <R extends { subject: string }>(rows: R[], day: number) =>
    new Map(rows.map((row) => [row.subject.slice(toKey(day, '').length), row]))

  return {
    async addUnverified(names, day, at) {
      // In order, which is the order of the locks.
      const [first = '', second] = names.map((name) => toKey(day, name)).toSorted()
      const slot = pendingSlot(at)
      const rows = await (second === undefined
        ? addOne({ first, slot, at })
        : addTwo({ first, second, slot, at }))
      return toMap(rows, day)
    },

    async counts(names, day) {
      const [first = '', second = ''] = names.map((name) => toKey(day, name))
      return toMap(await select({ first, second }), day)
    },

    async adjust(names, day, at, change) {
      const slot = pendingSlot(at)
      const remaining = new Map<string, number>()
      for (const name of names.toSorted()) {
        const params = { subject: toKey(day, name), slot, nextSlot: slot + 1, ...change }
        const [row] = await adjust(params)
        if (row) remaining.set(name, row.unverified)
      }
      return remaining
    },

    async addSent(day, max) {
      const [row] = await addSent({ subject: toKey(day, 'total'), max })
      return row?.sent
    },
  }
}
