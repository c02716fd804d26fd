import type { SQL } from 'drizzle-orm'
import type { World } from '../../world/world.ts'
import type { WriteOptions } from '../../domain/model/write-options.ts'
import type { RowChanges } from '../../domain/model/due-worker.ts'
import type { BaseSQLiteDatabase, SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { RowWrite } from './row-writes.ts'
import type { SqliteState } from './sqlite-state.ts'
import type { Tables } from './tables.ts'
import type { defineAdmissionTable } from './tables/limits.ts'

/** The query builders that both databases share. Await them: `.get()`, `.all()` and `.run()` exist on SQLite only. */
export type QueryExecutor = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete'
>

export type Preparable<R> = { prepare(): { execute(values?: Record<string, unknown>): Promise<R> } }

/** A query that is built once per connection and run with values for its placeholders. */
export type PreparedQuery<R> = (values?: Record<string, unknown>) => Promise<R>

/** Calls that are decided one after the other and written together, in the transaction that they share. */
export type CallGroup<C = unknown> = {
  /** Prepares a call that runs again, in a transaction of its own, because the one that it was in failed. */
  prepareAlone(failure: unknown): void
  /** Reads what the calls need, in few round trips. On PostgreSQL only. @returns those that can decide now */
  load(calls: readonly C[]): Promise<ReadonlySet<C>>
  /** Decides a call and keeps what it changes. Writes nothing; a throw fails this call alone. */
  decide(call: C): unknown
  /** Tells whether the calls since the last end changed anything. */
  hasChanges(): boolean
  /** Writes what the calls since the last end changed. */
  write(): Promise<void>
  /**
   * Ends the calls of a transaction: what they changed is in the database, or is to be forgotten.
   *
   * @returns a function that gives the notices of a committed transaction. Call it once that is on disk, because what others
   *   are told must not be lost
   */
  end(isCommitted: boolean): (() => void) | undefined
}

export type AdmissionTable = ReturnType<typeof defineAdmissionTable>

/** Parts of SQLite. */
export type SqliteParts = SqliteState & {
  /** Prepares a query as `Database.prepare`, for decisions: it returns its rows, not a promise of them. */
  prepare<R>(build: () => Preparable<R>): (values?: Record<string, unknown>) => R
}

/** Parts of PostgreSQL, where transactions run concurrently, of other nodes too: they must lock the rows that they change. */
type PostgresParts = {
  readonly admissionTable: AdmissionTable
  readonly partitions: Partitions
}

export type MonthlyTable = 'otp_requests' | 'otp_deliveries' | 'webhook_deliveries' | 'webhook_attempts'
export type PartitionedTable = MonthlyTable | 'events'

/** Partitions of the largest tables. */
export type Partitions = {
  /**
   * Makes a partition that is needed soon, or one for rows that have none.
   *
   * @returns false if there is nothing to do, or others use the table
   */
  prepareNext(executor: QueryExecutor, now: number): Promise<boolean>
  /**
   * Drops the oldest partition of a table if all of its rows are from before `until`.
   *
   * @returns false if there is none, or others use the table
   */
  dropOldest(executor: QueryExecutor, table: PartitionedTable, until: number): Promise<boolean>
}

/** The port over SQLite and PostgreSQL, with the parts that one of them has. */
export type Database = DatabasePort &
  (
    | { readonly sqlite: SqliteParts; readonly postgres?: undefined }
    | { readonly sqlite?: undefined; readonly postgres: PostgresParts }
  )

type DatabasePort = {
  /** The world of the process. */
  readonly world: World
  readonly tables: Tables

  /** Runs statements outside a transaction. On SQLite this connection is read-only. */
  readonly read: QueryExecutor

  /**
   * Runs `body` in one transaction and resolves once the commit is on disk. A throw rolls back this body's writes and
   * no others.
   *
   * `body` must await only `tx`: concurrent bodies share one commit (group commit), and any other wait would delay
   * all of them. It may be retried when another write in the batch fails, so side effects outside `tx` must be
   * idempotent.
   *
   * @param options.isUrgent see `WriteOptions`; SQLite writes all that waits together
   * @throws UNAVAILABLE the database is locked by another process, the disk is full, or the write queue is full
   */
  write<T>(body: (tx: QueryExecutor) => Promise<T>, options?: WriteOptions): Promise<T>

  /**
   * Creates a function that runs a call of a group and resolves once its transaction is on disk. Calls that wait at the
   * same time share one transaction.
   *
   * @param bind returns the calls of a connection
   * @throws UNAVAILABLE as `write`
   */
  group<C>(bind: (tx: QueryExecutor) => CallGroup<C>): <R>(call: C) => Promise<R>

  /**
   * Resolves when all that `read` shows now is on disk. On SQLite on Linux a commit is visible before it is flushed: await
   * this before rows leave the server for a reader that keeps them, such as that of a stream.
   *
   * @throws the error of the disk
   */
  whenDurable(): Promise<void>

  /** Reports all commits. Undefined on PostgreSQL, where other nodes commit too, and if nothing can be written. */
  readonly changes?: RowChanges & {
    /** Looks for commits of other processes, which the next transaction would notice. */
    lookForForeign(): void
    /** Tells the listeners what a commit of another process tells them. */
    notifyForeign(): void
  }

  /** Builds the query at its first run and keeps the statement: building costs ten times as much as running it. */
  prepare<R>(build: () => Preparable<R>): PreparedQuery<R>

  /**
   * Prepares a write of rows, which SQLite writes one by one and PostgreSQL by one statement. There it does not wait for the
   * server, and an error ends the transaction at its commit.
   */
  writeRows<T>(executor: QueryExecutor, write: RowWrite<T>): (rows: readonly T[]) => void

  /** Converts the id of a developer, project or application to the value of a `shortId` column, for raw conditions. */
  shortId(id: string): string | number

  /** Condition that a column of full ids and a `shortId` column name the same row. */
  matchesShortId(id: SQLiteColumn, shortId: SQLiteColumn): SQL

  /**
   * Locks the row until the transaction ends. Does nothing on SQLite, which has a single writer.
   *
   * @returns `missing` if there is no row to lock, so that another transaction may insert it meanwhile; never on SQLite
   */
  lock(
    tx: QueryExecutor,
    table: SQLiteTable,
    idColumn: SQLiteColumn,
    id: string | number,
  ): Promise<'locked' | 'missing'>

  /**
   * Locks the rows of a table without waiting for other workers, and skips those that they lease: `for no key update of …
   * skip locked` on PostgreSQL (which still allows inserts that reference the rows), empty on SQLite.
   */
  skipLocked(table: string): SQL

  /** Turns overwriting of all deleted data on or off; it costs more writes. Does nothing on PostgreSQL. */
  secureDelete(on: boolean): void

  /**
   * Overwrites the data that deleted and changed rows left in free pages and in the write-ahead log. Call it while
   * `secureDelete` is on. Does nothing on PostgreSQL, where VACUUM is the operator's.
   *
   * @param yieldToRequests awaited between batches; false ends the work
   * @returns false if it was ended, or if another process kept the log in use: call it again later
   */
  overwriteFreeSpace(yieldToRequests: () => Promise<boolean>): Promise<boolean>

  /** Converts an error of a read to one that is safe to return or log: see `toCallerError`. */
  convertError(error: unknown): unknown

  /** Closes the database after the queued writes have finished. */
  close(): Promise<void>
}
