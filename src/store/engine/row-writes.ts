import { and, eq, getTableColumns, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Preparable, QueryExecutor } from './database.ts'
import type { Row, RowInsert, RowUpdate, RowWrite } from './row-write.ts'

export const columnNames = (table: SQLiteTable): string[] => Object.keys(getTableColumns(table))

/** Replaces every column but the key by that of the row that could not be inserted. */
export function replaceAll(
  table: SQLiteTable,
  target: SQLiteColumn[],
  { setWhere }: { setWhere?: SQL } = {},
) {
  const others = columnEntries(table).filter(([, column]) => !target.includes(column))
  const set = Object.fromEntries(others.map(([name, column]) => [name, excluded(column)]))
  return { target, set, ...(setWhere && { setWhere }) }
}

/** Adds the counts of the row that could not be inserted to those that are there. */
export const addAll = (target: SQLiteColumn[], counts: Readonly<Record<string, SQLiteColumn>>) => ({
  target,
  set: Object.fromEntries(
    Object.entries(counts).map(([name, column]) => [name, sql`${column} + ${excluded(column)}`]),
  ),
})

/** The value of the row that could not be inserted. */
const excluded = (column: SQLiteColumn) => sql`excluded.${sql.identifier(column.name)}`

/** Names of the columns that decide which row is written; undefined for an insert that fails if it exists. */
export function keyOf(write: RowWrite): readonly string[] | undefined {
  if (write.kind === 'delete') return undefined
  if (write.kind === 'update') return write.key
  const { table, onConflict } = write
  if (!onConflict) return undefined
  return columnEntries(table).flatMap(([name, column]) => (onConflict.target.includes(column) ? [name] : []))
}

/** Builds the statement that writes one row, with a placeholder for each of its values. */
export function buildOneRow(executor: QueryExecutor, write: RowWrite): Preparable<unknown> {
  const columns = getTableColumns(write.table)
  const p = sql.placeholder
  if (write.kind === 'insert') {
    const values = Object.fromEntries(write.columns.map((name) => [name, p(name)]))
    const insert = executor.insert(write.table).values(values as never)
    return withConflict(insert, write.onConflict)
  }
  if (write.kind === 'delete')
    return executor.delete(write.table).where(write.where((name) => sql`${p(name)}`))
  const set = Object.fromEntries(write.set.map((name) => [name, sql`${sql.param(p(name), columns[name])}`]))
  const matchesKey = write.key.map((name) => eq(columns[name] as SQLiteColumn, p(name)))
  return executor
    .update(write.table)
    .set(set as never)
    .where(and(...matchesKey))
}

/** A statement that writes many rows, with a placeholder for the values of each column: `c0`, `c1`, … */
export type ManyRows = { statement: Preparable<unknown>; toValues(rows: readonly Row[]): Row }

/** Builds the statement of PostgreSQL that writes any number of rows. */
export function buildManyRows(executor: QueryExecutor, write: RowWrite): ManyRows {
  const columns = getTableColumns(write.table)
  const given = write.kind === 'update' ? [...write.key, ...write.set] : write.columns
  const givenColumns = given.map((name) => columns[name] as SQLiteColumn)
  const arrays = givenColumns.map(
    (column, index) => sql`${sql.placeholder(`c${index}`)}::${sql.raw(column.getSQLType())}[]`,
  )
  const names = sql.join(
    given.map((_, index) => sql.raw(`c${index}`)),
    sql`, `,
  )
  const rows = sql`unnest(${sql.join(arrays, sql`, `)}) as row_values(${names})`
  const valueOf = (name: string) => sql.raw(`row_values.c${given.indexOf(name)}`)
  return {
    statement: buildStatement(),
    toValues: (list) =>
      Object.fromEntries(
        givenColumns.map((column, index) => [
          `c${index}`,
          list.map((row) => encode(column, row[given[index] ?? ''])),
        ]),
      ),
  }

  function buildStatement(): Preparable<unknown> {
    switch (write.kind) {
      case 'insert':
        return insertMany(write)
      case 'update':
        return updateMany(write)
      case 'delete':
        // drizzle has no `using`. Rows are found by their place, which the database sees as one lookup each.
        return executor
          .delete(write.table)
          .where(
            sql`ctid = any(array(select ${write.table}.ctid from ${rows}, ${write.table} where ${write.where(valueOf)}))`,
          )
    }
  }

  function insertMany({ table, computed = {}, onlyIf, onConflict }: RowInsert): Preparable<unknown> {
    const values = Object.keys(columns).map((name) => {
      const value = given.includes(name) ? valueOf(name) : sql`null`
      return computed[name]?.(value, valueOf) ?? value
    })
    // drizzle's SQLite builder has the methods of its PostgreSQL builder.
    const condition = onlyIf ? sql` where ${onlyIf(valueOf)}` : sql``
    const insert = executor
      .insert(table)
      .select(sql`select ${sql.join(values, sql`, `)} from ${rows}${condition}`)
    return withConflict(insert, onConflict)
  }

  function updateMany({ table, key, set, computed = {} }: RowUpdate): Preparable<unknown> {
    const changes = Object.fromEntries(
      set.map((name) => [name, computed[name]?.(valueOf(name), valueOf) ?? valueOf(name)]),
    )
    const matchesKey = key.map((name) => sql`${columns[name]} = ${valueOf(name)}`)
    return executor
      .update(table)
      .set(changes as never)
      .from(rows as never)
      .where(and(...matchesKey))
  }
}

/** The methods of drizzle's builders, on columns of any table, which the compiler cannot follow. */
type Insert = Preparable<unknown> & {
  onConflictDoNothing(config: { target: SQLiteColumn[] }): Preparable<unknown>
  onConflictDoUpdate(config: NonNullable<RowInsert['onConflict']>): Preparable<unknown>
}

function withConflict(insert: unknown, onConflict: RowInsert['onConflict']): Preparable<unknown> {
  const builder = insert as Insert
  if (!onConflict) return builder
  return Object.keys(onConflict.set).length > 0
    ? builder.onConflictDoUpdate(onConflict)
    : builder.onConflictDoNothing({ target: onConflict.target })
}

/** Encodes a value as the column stores it. A row must have each value, if only null. */
function encode(column: SQLiteColumn, value: unknown): unknown {
  if (value === undefined) throw new TypeError(`a row lacks a value for ${column.name}`)
  return value === null ? null : column.mapToDriverValue(value)
}

const columnEntries = (table: SQLiteTable) => Object.entries(getTableColumns(table))
