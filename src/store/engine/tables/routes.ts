import type { ColumnKit } from './columns.ts'

/** Statistics that the strategies of routes learn from. */
export function defineRouteTables(c: ColumnKit) {
  const routeStatistics = c.table('route_statistics', {
    cell: c.text('cell').primaryKey(),
    outcomes: c.integer('outcomes').notNull(),
    verified: c.integer('verified').notNull(),
    at: c.timestampMs('counted_at').notNull(),
    verifiedSentAt: c.timestampMs('verified_sent_at').notNull(),
    silentSince: c.timestampMs('silent_since').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  return { routeStatistics }
}
