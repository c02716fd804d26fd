import {
  customType,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'
import type { ShortIds } from './short-ids.ts'

/**
 * The kinds of column that both databases represent alike: each has the same JavaScript value in SQLite and
 * PostgreSQL (string, number or null). No booleans, dates or JSON: this is what makes the one type assertion in
 * columns.postgres.ts true.
 */
export const sqliteColumns = (ids: ShortIds) => ({
  table: sqliteTable,
  index,
  uniqueIndex,
  primaryKey,
  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => integer(name),
  /** The id of a developer, project or application, a number in SQLite. */
  shortId: customType<{ data: string; driverData: number }>({
    dataType: () => 'integer',
    toDriver: ids.toNumber,
    fromDriver: ids.toId,
  }),
})

export type ColumnKit = ReturnType<typeof sqliteColumns>
