import {
  and,
  count,
  eq,
  getTableColumns,
  sql,
  type InferInsertModel,
  type InferSelectModel,
  type SQL,
} from 'drizzle-orm'
import type { SelectResultFields } from 'drizzle-orm/query-builders/select.types'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { andThen, type Awaitable } from '../../domain/model/awaitable.ts'
import type { Connection } from './connection.ts'
import type { QueryExecutor } from './database.ts'

type Conflict<T extends SQLiteTable> = {
  target: SQLiteColumn | SQLiteColumn[]
  set: { [Name in keyof InferInsertModel<T>]?: InferInsertModel<T>[Name] | SQL | undefined }
  /** Condition on the row that is there; without it, that one is always changed. */
  setWhere?: SQL | undefined
}

/**
 * Creates the statements that most stores need, on one table. Without a condition they concern all of its rows.
 *
 * drizzle's types cannot follow a table that is a parameter; those of the results and arguments here can.
 */
export function onTable<T extends SQLiteTable>(executor: QueryExecutor, table: T) {
  type Row = InferSelectModel<T>
  type NewRow = InferInsertModel<T>
  type Changes = Conflict<T>['set']
  const untyped: SQLiteTable = table
  const select = (where?: SQL) => executor.select().from(untyped).where(where)
  const updateRows = (set: Changes, where?: SQL) =>
    executor
      .update(untyped)
      .set(set as never)
      .where(where)
  const remove = (where?: SQL) => executor.delete(untyped).where(where)
  const isOne = (rows: readonly unknown[]) => rows.length === 1

  return {
    async list(where?: SQL, ...order: Array<SQL | SQLiteColumn>): Promise<Row[]> {
      return (await select(where).orderBy(...order)) as Row[]
    },

    /** Finds the first row in an order. */
    async find(where?: SQL, ...order: Array<SQL | SQLiteColumn>): Promise<Row | undefined> {
      const [row] = await select(where)
        .orderBy(...order)
        .limit(1)
      return row as Row | undefined
    },

    async count(where?: SQL): Promise<number> {
      const [row] = await executor.select({ count: count() }).from(untyped).where(where)
      return row?.count ?? 0
    },

    async insert(rows: NewRow | NewRow[]): Promise<void> {
      await executor.insert(untyped).values(rows as never)
    },

    /** Inserts a row. @returns false if there is one with a key of it, which stays as it is */
    async insertMissing(row: NewRow): Promise<boolean> {
      return isOne(
        await executor
          .insert(untyped)
          .values(row as never)
          .onConflictDoNothing()
          .returning(),
      )
    },

    /** Inserts a row, or changes the one with its key. @returns false if `setWhere` kept that one as it is */
    async put(row: NewRow, conflict: Conflict<T>): Promise<boolean> {
      const { setWhere, ...target } = conflict
      return isOne(
        await executor
          .insert(untyped)
          .values(row as never)
          .onConflictDoUpdate({ ...target, ...(setWhere && { setWhere }) } as never)
          .returning(),
      )
    },

    async update(set: Changes, where?: SQL): Promise<void> {
      await updateRows(set, where)
    },

    /** Changes a row. @returns false if there is none; then another call may have been first */
    async updateOne(set: Changes, where: SQL | undefined): Promise<boolean> {
      return isOne(await updateRows(set, where).returning())
    },

    /** Changes rows. @returns them as they are then */
    async change(set: Changes, where: SQL | undefined): Promise<Row[]> {
      return (await updateRows(set, where).returning()) as Row[]
    },

    async delete(where?: SQL): Promise<void> {
      await remove(where)
    },

    /** Deletes rows. @returns them as they were */
    async take(where: SQL | undefined): Promise<Row[]> {
      return (await remove(where).returning()) as Row[]
    },
  }
}

/**
 * Prepares the look-up of a row by the values of some columns: to write the statement again takes longer than to run it.
 * SQLite has the row at once.
 */
export const prepareFind = <T extends SQLiteTable, Name extends keyof InferSelectModel<T> & string>(
  connection: Connection,
  table: T,
  ...keys: readonly Name[]
) =>
  prepareFindColumns(connection, table, getTableColumns(table), ...keys) as (
    key: Pick<InferSelectModel<T>, Name>,
  ) => Awaitable<InferSelectModel<T> | undefined>

/** As `prepareFind`; reads some columns, or expressions. */
export function prepareFindColumns<
  T extends SQLiteTable,
  Columns extends Record<string, SQLiteColumn | SQL>,
  Name extends keyof InferSelectModel<T> & string,
>(
  { database, executor }: Connection,
  table: T,
  columns: Columns,
  ...keys: readonly Name[]
): (key: Pick<InferSelectModel<T>, Name>) => Awaitable<SelectResultFields<Columns> | undefined> {
  // drizzle's types cannot follow a table and columns that are parameters.
  const untyped: SQLiteTable = table
  const untypedColumns: Record<string, SQLiteColumn | SQL> = columns
  const all = getTableColumns(table)
  const select = database.prepare(() =>
    executor
      .select(untypedColumns)
      .from(untyped)
      .where(and(...keys.map((name) => eq(all[name] as SQLiteColumn, sql.placeholder(name))))),
  )
  return (key) => andThen(select(key), ([row]) => row as SelectResultFields<Columns> | undefined)
}
