import type { ColumnKit } from './columns.ts'

/** Nodes that share the database; SQLite has one, and no table of them. */
export const defineNodeTable = (c: ColumnKit) =>
  c.table('nodes', {
    name: c.text('name').primaryKey(),
    process: c.text('process').notNull(),
    version: c.text('version').notNull(),
    configuration: c.text('configuration').notNull(),
    settings: c.text('settings').notNull(),
    startedAt: c.timestampMs('started_at').notNull(),
    seenAt: c.timestampMs('seen_at').notNull(),
  })
