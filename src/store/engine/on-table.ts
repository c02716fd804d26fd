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
import type { Connection } from './connection.ts'
import type { Preparable, QueryExecutor, SqliteParts } from './database.ts'

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

    /** Inserts a row, or changes the one with its key. @returns it; undefined if `setWhere` kept that one as it is */
    async put(row: NewRow, { setWhere, ...conflict }: Conflict<T>): Promise<Row | undefined> {
      const [stored] = await executor
        .insert(untyped)
        .values(row as never)
        .onConflictDoUpdate({ ...conflict, ...(setWhere && { setWhere }) } as never)
        .returning()
      return stored as Row | undefined
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

/** Prepares the look-up of a row by the values of some columns: to write the statement again takes longer than to run it. */
export const prepareFind = <T extends SQLiteTable, Name extends Key<T>>(
  connection: Connection,
  table: T,
  ...keys: readonly Name[]
) =>
  prepareFindColumns(connection, table, getTableColumns(table), ...keys) as (
    key: Pick<InferSelectModel<T>, Name>,
  ) => Promise<InferSelectModel<T> | undefined>

/** As `prepareFind`; reads some columns, or expressions. */
export function prepareFindColumns<T extends SQLiteTable, Columns extends Selection, Name extends Key<T>>(
  { database, executor }: Connection,
  table: T,
  columns: Columns,
  ...keys: readonly Name[]
) {
  const select = database.prepare(() => selectBy(executor, table, columns, keys))
  return async (key: Pick<InferSelectModel<T>, Name>) => (await select(key))[0]
}

/** As `prepareFind`, on SQLite, without a promise. */
export function prepareFindSync<T extends SQLiteTable, Name extends Key<T>>(
  { executor }: Connection,
  sqlite: SqliteParts,
  table: T,
  ...keys: readonly Name[]
) {
  const select = sqlite.prepare(() => selectBy(executor, table, getTableColumns(table), keys))
  return (key: Pick<InferSelectModel<T>, Name>) => select(key)[0] as InferSelectModel<T> | undefined
}

type Selection = Record<string, SQLiteColumn | SQL>
type Key<T extends SQLiteTable> = keyof InferSelectModel<T> & string

/** Selects columns of the rows in which some columns have the values of the placeholders with their names. */
function selectBy<Columns extends Selection>(
  executor: QueryExecutor,
  table: SQLiteTable,
  columns: Columns,
  keys: readonly string[],
) {
  const all = getTableColumns(table)
  const isNamed = and(...keys.map((name) => eq(all[name] as SQLiteColumn, sql.placeholder(name))))
  // drizzle's types cannot follow columns that are a parameter.
  const query: unknown = executor.select<Selection>(columns).from(table).where(isNamed)
  return query as Preparable<Array<SelectResultFields<Columns>>>
}
