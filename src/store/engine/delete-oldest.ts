import { and, asc, inArray, lte, max, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { QueryExecutor } from './database.ts'

/**
 * Deletes a batch of a table's oldest rows in one statement, small enough not to delay other writes: about `batchSize`
 * rows, plus those with the same time as the last of them.
 *
 * @param timeColumn an indexed time in milliseconds
 * @param until rows after this time stay
 * @param indexCondition the condition of the index, if it is partial
 * @returns true if rows were deleted, so there may be more
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
 * Condition of the oldest rows of a table whose keys are in time order, which needs no index on the time: looks at the
 * first `batchSize` keys.
 */
export function areOldestByKey(
  executor: QueryExecutor,
  table: SQLiteTable,
  key: SQLiteColumn,
  timeColumn: SQLiteColumn,
  until: number,
  batchSize: number,
): SQL | undefined {
  const oldest = executor.select({ key }).from(table).orderBy(asc(key)).limit(batchSize).as('oldest')
  return and(inArray(key, executor.select({ key: oldest.key }).from(oldest)), lte(timeColumn, until))
}
