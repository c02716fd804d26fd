import { and, count, eq, gte, sql } from 'drizzle-orm'
import type { AnalyticsStore } from '../domain/analytics.ts'
import type { Builders, Database } from './database.ts'

export function createAnalyticsStore(database: Database, on: Builders): AnalyticsStore {
  const { dailyCounts: days, applications } = database.tables
  const p = sql.placeholder
  const plus = (column: typeof days.sent) => sql`${column} + excluded.${sql.identifier(column.name)}`

  const add = database.prepare(() =>
    on
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
          requests: plus(days.requests),
          sent: plus(days.sent),
          verified: plus(days.verified),
          failed: plus(days.failed),
          active: plus(days.active),
        },
      }),
  )
  const total = (column: typeof days.sent) => sql<number>`coalesce(sum(${column}), 0)`.mapWith(Number)

  return {
    async add(developerId, day, changes) {
      const { requests = 0, sent = 0, verified = 0, failed = 0, active = 0 } = changes
      await add({ developerId, day, requests, sent, verified, failed, active })
    },

    async totals(developerId, activeSinceDay) {
      const [row] = await on
        .select({
          requests: total(days.requests),
          verified: total(days.verified),
          active:
            sql<number>`coalesce(sum(case when ${days.day} >= ${activeSinceDay} then ${days.active} else 0 end), 0)`.mapWith(
              Number,
            ),
        })
        .from(days)
        .where(eq(days.developerId, developerId))
      return row ?? { requests: 0, verified: 0, active: 0 }
    },

    days: (developerId, firstDay) =>
      on
        .select({ day: days.day, sent: days.sent, verified: days.verified, failed: days.failed })
        .from(days)
        .where(and(eq(days.developerId, developerId), gte(days.day, firstDay))),

    async countApplications(developerId) {
      const [row] = await on
        .select({ count: count() })
        .from(applications)
        .where(eq(applications.developerId, developerId))
      return row?.count ?? 0
    },
  }
}
