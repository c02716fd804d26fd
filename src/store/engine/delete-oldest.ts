import { and, asc, inArray, lte, max, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { QueryExecutor } from './database.ts'

/** The rows to delete: none that are later than `until`, and about `batchSize` at once. */
type Oldest = { until: number; batchSize: number }

/**
 * Deletes a batch of a table's oldest rows in one statement, small enough not to delay other writes: about `batchSize`
 * rows, plus those with the same time as the last of them.
 *
 * @param timeColumn an indexed time in milliseconds
 * @param indexCondition the condition of the index, if it is partial
 * @returns true if rows were deleted, so there may be more
 */
export async function deleteOldestByTime(
  executor: QueryExecutor,
  timeColumn: SQLiteColumn,
  { until, batchSize }: Oldest,
  indexCondition?: SQL,
): Promise<boolean> {
  const { table } = timeColumn
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
 * Deletes the oldest rows of a table whose keys are in time order, which needs no index on the time: looks at the first
 * `batchSize` keys.
 *
 * @param columns the table's key and its time in milliseconds
 * @returns the columns `returned` of the deleted rows; none if there are no more to delete
 */
export async function deleteOldestByKey<C extends Record<string, SQLiteColumn | SQL>>(
  executor: QueryExecutor,
  { key, at }: { key: SQLiteColumn; at: SQLiteColumn },
  { until, batchSize }: Oldest,
  returned: C,
) {
  const { table } = key
  const oldest = executor.select({ key }).from(table).orderBy(asc(key)).limit(batchSize).as('oldest')
  const isOldest = inArray(key, executor.select({ key: oldest.key }).from(oldest))
  return executor
    .delete(table)
    .where(and(isOldest, lte(at, until)))
    .returning(returned)
}
