import { and, count, eq, gte, sql, type SQL } from 'drizzle-orm'
import type { AnalyticsStore } from '../domain/store/analytics.ts'
import { integerParam, textParam } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores daily counters, with one upsert per transaction that counts. */
export function createAnalyticsStore(database: Database, executor: QueryExecutor): AnalyticsStore {
  const { dailyCounts: days, applications } = database.tables
  const p = sql.placeholder
  const addExcluded = (column: typeof days.sent) => sql`${column} + excluded.${sql.identifier(column.name)}`

  const add = database.prepare(() =>
    executor
      .insert(days)
      .values({
        developerId: p('developerId'),
        day: p('day'),
        requests: p('requests'),
        sent: p('sent'),
        verified: p('verified'),
        failed: p('failed'),
        active: p('active'),
      })
      .onConflictDoUpdate({
        target: [days.developerId, days.day],
        set: {
          requests: addExcluded(days.requests),
          sent: addExcluded(days.sent),
          verified: addExcluded(days.verified),
          failed: addExcluded(days.failed),
          active: addExcluded(days.active),
        },
      }),
  )
  const sumOrZero = (value: SQL) => sql<number>`coalesce(sum(${value}), 0)`.mapWith(Number)
  const isActive = sql`${days.day} >= ${integerParam('activeSinceDay')}`
  const totals = database.prepare(() =>
    executor
      .select({
        requests: sumOrZero(sql`${days.requests}`),
        verified: sumOrZero(sql`${days.verified}`),
        active: sumOrZero(sql`case when ${isActive} then ${days.active} else 0 end`),
      })
      .from(days)
      .where(eq(days.developerId, textParam('developerId'))),
  )
  const listDays = database.prepare(() =>
    executor
      .select({ day: days.day, sent: days.sent, verified: days.verified, failed: days.failed })
      .from(days)
      .where(and(eq(days.developerId, textParam('developerId')), gte(days.day, integerParam('firstDay')))),
  )
  const countApplications = database.prepare(() =>
    executor
      .select({ count: count() })
      .from(applications)
      .where(eq(applications.developerId, textParam('developerId'))),
  )

  return {
    async add(developerId, day, changes) {
      const { requests = 0, sent = 0, verified = 0, failed = 0, active = 0 } = changes
      await add({ developerId, day, requests, sent, verified, failed, active })
    },

    async totals(developerId, activeSinceDay) {
      const [row] = await totals({ developerId, activeSinceDay })
      return row ?? { requests: 0, verified: 0, active: 0 }
    },

    days: (developerId, firstDay) => listDays({ developerId, firstDay }),

    async countApplications(developerId) {
      const [row] = await countApplications({ developerId })
      return row?.count ?? 0
    },
  }
}
