import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * The kinds of column that both databases represent alike: each has the same JavaScript value in SQLite and
 * PostgreSQL (string, number or null). No booleans, dates or JSON: this is what makes the one type assertion in
 * columns.postgres.ts true.
 */
export const sqliteColumns = {
  table: sqliteTable,
  index,
  uniqueIndex,
  primaryKey,
  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => integer(name),
}

export type ColumnKit = typeof sqliteColumns
