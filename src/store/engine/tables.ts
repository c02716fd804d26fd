import type { Purpose } from '../../domain/model/keys.ts'
import type { ColumnKit } from './tables/columns.ts'
import { defineAccountsTables } from './tables/accounts.ts'
import { defineAlertsTables } from './tables/alerts.ts'
import { defineAppsTables } from './tables/apps.ts'
import { defineDeliveryTables } from './tables/deliveries.ts'
import { defineOtpTables } from './tables/otp.ts'
import { definePagesTables } from './tables/pages.ts'
import { defineLogTables } from './tables/log.ts'
import { defineLimitsTables } from './tables/limits.ts'

/**
 * Defines every table once, for both databases, with the columns that queries name. Constraints and indexes are only in
 * migrations/.
 */
export const defineTables = (c: ColumnKit) => ({
  meta: c.table('meta', { name: c.text('name').primaryKey(), value: c.text('value').notNull() }),

  dataKeys: c.table('data_keys', {
    masterKey: c.text('master_key').notNull(),
    purpose: c.text('purpose').notNull().$type<Purpose>(),
    version: c.integer('version').notNull(),
    wrapped: c.text('wrapped').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
  }),

  backfills: c.table('key_walks', {
    backfill: c.text('walk').primaryKey(),
    version: c.integer('version').notNull(),
    position: c.text('position'),
  }),

  leases: c.table('leases', {
    name: c.text('name').primaryKey(),
    owner: c.text('owner').notNull(),
    until: c.timestampMs('until').notNull(),
    epoch: c.integer('epoch').notNull(),
  }),

  counters: c.table('counters', {
    name: c.text('name').primaryKey(),
    value: c.timestampMs('value').notNull(),
  }),

  retentionCheckpoints: c.table('retention_marks', {
    scan: c.text('walk').primaryKey(),
    checkpoint: c.text('position').notNull(),
  }),

  ...defineAccountsTables(c),
  ...defineAlertsTables(c),
  ...defineAppsTables(c),
  ...definePagesTables(c),
  ...defineDeliveryTables(c),
  ...defineOtpTables(c),
  ...defineLogTables(c),
  ...defineLimitsTables(c),
})

export type Tables = ReturnType<typeof defineTables>
