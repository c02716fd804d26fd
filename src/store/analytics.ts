import { and, count, eq, gte, sql, type SQL } from 'drizzle-orm'
import type { AnalyticsStore } from '../domain/store/analytics.ts'
import { integerParam, textParam } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { addAll, columnNames } from './engine/row-writes.ts'

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
  const { requests, sent, delivered, undelivered, verified, failed } = breakdown
  const add = database.writeRows(executor, {
    kind: 'insert',
    table: days,
    columns: columnNames(days),
    onConflict: addAll([days.developerId, days.day], {
      requests: days.requests,
      sent: days.sent,
      verified: days.verified,
      failed: days.failed,
      active: days.active,
    }),
  })
  const addBreakdown = database.writeRows(executor, {
    kind: 'insert',
    table: breakdown,
    columns: columnNames(breakdown),
    onConflict: addAll(breakdownKey, { requests, sent, delivered, undelivered, verified, failed }),
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
