import { bigint, index, integer, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core'
import type { ColumnKit } from './columns.ts'

/** The same kinds for PostgreSQL. The assertion is sound because every kind has the same JavaScript value. */
export const postgresColumns = {
  table: pgTable,
  index,
  uniqueIndex,
  primaryKey,

  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => bigint(name, { mode: 'number' }),
  shortId: (name: string) => text(name),
} as unknown as ColumnKit
