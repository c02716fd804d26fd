import type { SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'

/** A write of one whole row, as the databases run it: one row at a time, or many rows in one statement. */
export type RowWrite<T extends SQLiteTable = SQLiteTable> = RowInsert<T> | RowUpdate<T> | RowDelete<T>

export type RowInsert<T extends SQLiteTable = SQLiteTable> = {
  kind: 'insert'
  table: T
  /** Columns that a row has a value for. */
  columns: ReadonlyArray<keyof T['_']['columns'] & string>
  /** On PostgreSQL: values that the server computes, from those of the row if need be. */
  computed?: Computed
  /** On PostgreSQL: only rows for which this holds. @param value the value of a column */
  onlyIf?: (value: (name: string) => SQL) => SQL
  /** Tells how a row whose key exists is changed; without it, that is an error. */
  onConflict?: {
    target: SQLiteColumn[]
    /** By the names of columns; without any, the row stays as it is. */
    set: Readonly<Record<string, SQL>>
    setWhere?: SQL
  }
  /** On PostgreSQL: converts an error of the database. */
  toError?: (error: unknown) => unknown
}

export type RowUpdate<T extends SQLiteTable = SQLiteTable> = {
  kind: 'update'
  table: T
  key: ReadonlyArray<keyof T['_']['columns'] & string>
  set: ReadonlyArray<keyof T['_']['columns'] & string>
  /** On PostgreSQL: see `RowInsert`. */
  computed?: Computed
}

export type RowDelete<T extends SQLiteTable = SQLiteTable> = {
  kind: 'delete'
  table: T
  /** Columns that a row has a value for. */
  columns: ReadonlyArray<keyof T['_']['columns'] & string>
  /** Tells which rows of the table go. @param value the value of a column */
  where: (value: (name: string) => SQL) => SQL
}

/** By the names of columns. @param valueOf the value that the row has for another column */
type Computed = Readonly<Record<string, (value: SQL, valueOf: (name: string) => SQL) => SQL>>

/** Values by the names of columns. */
export type Row = Readonly<Record<string, unknown>>
