import { and, asc, inArray, lte, max, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Builders } from './database.ts'

/**
 * Deletes about `chunk` of a table's oldest rows, and what shares a time with the last of them, so that no purge holds
 * up other writes for long. One statement.
 *
 * @param at the table's time, indexed
 * @param only the rows that its index has, where it has not all
 * @returns whether anything was deleted: there may be more
 */
export async function deleteOldest(
  on: Builders,
  table: SQLiteTable,
  at: SQLiteColumn,
  until: number,
  chunk: number,
  only?: SQL,
): Promise<boolean> {
  const old = on
    .select({ at })
    .from(table)
    .where(and(only, lte(at, until)))
    .orderBy(asc(at))
    .limit(chunk)
    .as('old')
  const deleted = await on
    .delete(table)
    .where(and(only, lte(at, on.select({ at: max(old.at) }).from(old))))
    .returning({ at })
  return deleted.length > 0
}

/**
 * The same for a table whose keys are in the order of time: no index of times has to be kept for it. Looks at the first
 * `chunk` keys.
 */
export async function deleteOldestInOrder(
  on: Builders,
  table: SQLiteTable,
  key: SQLiteColumn,
  at: SQLiteColumn,
  until: number,
  chunk: number,
): Promise<boolean> {
  const oldest = on.select({ key }).from(table).orderBy(asc(key)).limit(chunk).as('oldest')
  const deleted = await on
    .delete(table)
    .where(and(inArray(key, on.select({ key: oldest.key }).from(oldest)), lte(at, until)))
    .returning({ key })
  return deleted.length > 0
}
