import { and, asc, inArray, lte, max, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { QueryExecutor } from './database.ts'

/**
 * Deletes about `chunk` of a table's oldest rows, and what shares a time with the last of them, so that no purge holds
 * up other writes for long. One statement.
 *
 * @param timeColumn the table's time, indexed
 * @param indexCondition the rows that its index has, where it has not all
 * @returns whether anything was deleted: there may be more
 */
export async function deleteOldestByTime(
  executor: QueryExecutor,
  table: SQLiteTable,
  timeColumn: SQLiteColumn,
  until: number,
  batchSize: number,
  indexCondition?: SQL,
): Promise<boolean> {
  const oldest = executor
    .select({ at: timeColumn })
    .from(table)
    .where(and(indexCondition, lte(timeColumn, until)))
    .orderBy(asc(timeColumn))
    .limit(batchSize)
    .as('old')
  const deleted = await executor
    .delete(table)
    .where(and(indexCondition, lte(timeColumn, executor.select({ at: max(oldest.at) }).from(oldest))))
    .returning({ at: timeColumn })
  return deleted.length > 0
}

/**
 * The same for a table whose keys are in the order of time: no index of times has to be kept for it. Looks at the first
 * `chunk` keys.
 */
export async function deleteOldestByKey(
  executor: QueryExecutor,
  table: SQLiteTable,
  key: SQLiteColumn,
  timeColumn: SQLiteColumn,
  until: number,
  batchSize: number,
): Promise<boolean> {
  const oldest = executor.select({ key }).from(table).orderBy(asc(key)).limit(batchSize).as('oldest')
  const deleted = await executor
    .delete(table)
    .where(and(inArray(key, executor.select({ key: oldest.key }).from(oldest)), lte(timeColumn, until)))
    .returning({ key })
  return deleted.length > 0
}
