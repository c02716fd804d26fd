import { customType, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { ShortIds } from './short-ids.ts'

/**
 * Column types with the same JavaScript value (string, number or null) in SQLite and PostgreSQL. Booleans, dates and
 * JSON are excluded: they differ, and the type assertion on `postgresColumns` relies on their absence.
 */
export const sqliteColumns = (ids: ShortIds) => ({
  table: sqliteTable,
  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => integer(name),
  /** Words, at least one, in one text. */
  words: customType<{ data: readonly string[]; driverData: string }>({
    dataType: () => 'text',
    toDriver: (list) => list.join(' '),
    fromDriver: (list) => list.split(' '),
  }),
  /** Id of a developer, project or application; stored as a number in SQLite. */
  shortId: customType<{ data: string; driverData: number }>({
    dataType: () => 'integer',
    toDriver: ids.toNumber,
    fromDriver: ids.toId,
  }),
  /** Ids as above, at least one, in one text. */
  shortIds: customType<{ data: readonly string[]; driverData: string }>({
    dataType: () => 'text',
    toDriver: (list) => list.map(ids.toNumber).join(' '),
    fromDriver: (list) => list.split(' ').map((number) => ids.toId(Number(number))),
  }),
})

export type ColumnKit = ReturnType<typeof sqliteColumns>
