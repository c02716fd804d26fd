import type { SQL } from 'drizzle-orm'
import type { BaseSQLiteDatabase, SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Tables } from './tables.ts'

/** The query builders that both databases share. Await them; `.get()`, `.all()` and `.run()` are SQLite's only. */
export type QueryExecutor = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete'
>

export type Preparable<R> = { prepare(): { execute(values?: Record<string, unknown>): Promise<R> } }

/** A query that is built once for its connection; the values of its placeholders come with each run. */
export type PreparedQuery<R> = (values?: Record<string, unknown>) => Promise<R>

export type Database = {
  readonly tables: Tables

  /** Statements outside a transaction. On SQLite a connection that cannot write. */
  readonly read: QueryExecutor

  /**
   * Runs `body` in one transaction and resolves once it is on the disk. A throw undoes all that this body wrote
   * and nothing of its neighbours'.
   *
   * The body awaits nothing but its `tx`: bodies that wait together share one commit, and anything else would
   * hold up all of them. It may be run again, where a neighbour failed: what it does outside must bear that.
   *
   * @throws UNAVAILABLE the database is locked by another process, full, or too many writes wait
   */
  write<T>(body: (tx: QueryExecutor) => Promise<T>): Promise<T>

  /** Defers `build` to the first run and keeps the statement: building a query costs ten times its execution. */
  prepare<R>(build: () => Preparable<R>): PreparedQuery<R>

  /** An id of a developer, project or application as a column of short ids has it, for conditions that are spelled out. */
  shortId(id: string): string | number

  /** That a column of whole ids and one of short ids name the same. */
  matchesShortId(id: SQLiteColumn, shortId: SQLiteColumn): SQL

  /** Holds the row until the transaction ends. Does nothing on SQLite, whose only writer is alone already. */
  lock(tx: QueryExecutor, table: SQLiteTable, idColumn: SQLiteColumn, id: string): Promise<void>

  /**
   * The clause that lets queue claims pass each other: `for no key update skip locked` on PostgreSQL (rows that refer to
   * these may be added meanwhile), empty on SQLite.
   */
  readonly skipLocked: SQL

  /** Finishes the writes that wait, then closes. */
  close(): Promise<void>
}
