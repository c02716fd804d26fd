import { and, asc, gt, type SQL } from 'drizzle-orm'
import type { SelectResultFields } from 'drizzle-orm/query-builders/select.types'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { QueryExecutor } from './database.ts'

/**
 * Reads the next rows of a scan of a table, in the order of its key.
 *
 * @param columns columns to read, all of one table
 * @param after key of the last row that was read; rows up to it are left out
 * @param condition restricts the rows further
 */
export async function pageAfter<Columns extends Record<string, SQLiteColumn>>(
  executor: QueryExecutor,
  columns: Columns,
  key: SQLiteColumn,
  after: string | number,
  limit: number,
  condition?: SQL,
): Promise<Array<SelectResultFields<Columns>>> {
  // drizzle's types cannot follow columns that are a parameter.
  const untyped: Record<string, SQLiteColumn> = columns
  const table: SQLiteTable = key.table
  const rows = await executor
    .select(untyped)
    .from(table)
    .where(and(gt(key, after), condition))
    .orderBy(asc(key))
    .limit(limit)
  return rows as Array<SelectResultFields<Columns>>
}
