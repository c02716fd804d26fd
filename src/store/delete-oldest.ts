import { asc, lte, max } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Builders } from './database.ts'

/**
 * Deletes about `chunk` of a table's oldest rows, and what shares a time with the last of them, so that no purge holds
 * up other writes for long. One statement.
 *
 * @param at the table's time, indexed
 * @returns whether anything was deleted: there may be more
 */
export async function deleteOldest(
  on: Builders,
  table: SQLiteTable,
  at: SQLiteColumn,
  until: number,
  chunk: number,
): Promise<boolean> {
  const old = on.select({ at }).from(table).where(lte(at, until)).orderBy(asc(at)).limit(chunk).as('old')
  const deleted = await on
    .delete(table)
    .where(lte(at, on.select({ at: max(old.at) }).from(old)))
    .returning({ at })
  return deleted.length > 0
}
