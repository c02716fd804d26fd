import { and, count, eq, gte, sql, type SQL } from 'drizzle-orm'
import type { AnalyticsStore } from '../domain/log/analytics.ts'
import { boundInteger, boundText } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'

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
  const total = (value: SQL) => sql<number>`coalesce(sum(${value}), 0)`.mapWith(Number)
  const isActive = sql`${days.day} >= ${boundInteger('activeSinceDay')}`
  const totals = database.prepare(() =>
    on
      .select({
        requests: total(sql`${days.requests}`),
        verified: total(sql`${days.verified}`),
        active: total(sql`case when ${isActive} then ${days.active} else 0 end`),
      })
      .from(days)
      .where(eq(days.developerId, boundText('developerId'))),
  )
  const listDays = database.prepare(() =>
    on
      .select({ day: days.day, sent: days.sent, verified: days.verified, failed: days.failed })
      .from(days)
      .where(and(eq(days.developerId, boundText('developerId')), gte(days.day, boundInteger('firstDay')))),
  )
  const countApplications = database.prepare(() =>
    on
      .select({ count: count() })
      .from(applications)
      .where(eq(applications.developerId, boundText('developerId'))),
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
