import { and, count, eq, gte, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { AnalyticsStore } from '../domain/store/analytics.ts'
import { integerParam, textParam } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores daily counters. */
export function createAnalyticsStore(database: Database, executor: QueryExecutor): AnalyticsStore {
  const { dailyCounts: days, breakdownCounts: breakdown, applications } = database.tables
  const breakdownKey = [
    breakdown.day,
    breakdown.developerId,
    breakdown.appId,
    breakdown.country,
    breakdown.channel,
    breakdown.provider,
  ]
  const p = sql.placeholder
  const addExcluded = (column: SQLiteColumn) => sql`${column} + excluded.${sql.identifier(column.name)}`

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
  const addBreakdown = database.prepare(() => {
    const { requests, sent, delivered, undelivered, verified, failed } = breakdown
    const counts = { requests, sent, delivered, undelivered, verified, failed }
    return executor
      .insert(breakdown)
      .values({
        day: p('day'),
        developerId: p('developerId'),
        appId: p('appId'),
        country: p('country'),
        channel: p('channel'),
        provider: p('provider'),
        requests: p('requests'),
        sent: p('sent'),
        delivered: p('delivered'),
        undelivered: p('undelivered'),
        verified: p('verified'),
        failed: p('failed'),
      })
      .onConflictDoUpdate({
        target: breakdownKey,
        set: Object.fromEntries(Object.entries(counts).map(([name, column]) => [name, addExcluded(column)])),
      })
  })
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

    async addBreakdown({ developerId, appId, day, country, channel, provider }, changes) {
      const { requests = 0, sent = 0, delivered = 0, undelivered = 0, verified = 0, failed = 0 } = changes
      await addBreakdown({
        day,
        developerId,
        appId,
        country: country ?? '',
        channel: channel ?? '',
        provider: provider ?? '',
        requests,
        sent,
        delivered,
        undelivered,
        verified,
        failed,
      })
    },

    async deleteBreakdown(beforeDay, batchSize) {
      const names = sql.join(
        breakdownKey.map(({ name }) => sql.identifier(name)),
        sql`, `,
      )
      const oldest = sql`select ${names} from breakdown_counts where day < ${beforeDay} order by ${names} limit ${batchSize}`
      const deleted = await executor
        .delete(breakdown)
        .where(sql`(${names}) in (${oldest})`)
        .returning({ day: breakdown.day })
      return deleted.length > 0
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
