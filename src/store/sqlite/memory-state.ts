import type { Database as SqliteConnection } from 'bun:sqlite'
import { ForeignCommitError } from '../engine/errors.ts'

// Parts of the state that a process keeps in memory, and that changes with the transactions.

/**
 * Hooks of state in memory that changes with the transactions. Jobs change it at once, so that those behind them in the batch see
 * it; it writes the changes when the batch commits, and undoes them if the batch is rolled back. All are called synchronously.
 */
export type TransactionHooks = {
  /** Counts the changes that the batch has made so far: a job that failed must leave none. */
  countPending?(): number
  /** Called before COMMIT; may write. A throw rejects the batch. */
  beforeCommit?(): void
  /** Called right after COMMIT, when readers see the changes: before they are on disk, and before any caller learns of it. */
  onCommit?(): void
  /** Called if the batch was rolled back: undoes its changes. */
  onRollback?(): void
  /**
   * Called if another connection has committed: at the beginning of a batch inside its transaction, or outside of any
   * transaction when `noticeForeignCommits` finds it.
   */
  onForeignCommit?(): void
}

/**
 * Watches for commits of other connections: SQLite changes `data_version` for each of them, and not for our own.
 *
 * @param onForeignCommit see `WriteQueueHooks`
 */
export function watchForeignCommits(
  connection: SqliteConnection,
  transactionHooks: readonly TransactionHooks[],
  onForeignCommit: (connection: SqliteConnection) => void = () => {},
) {
  const dataVersion = connection.prepare<{ data_version: number }, []>('PRAGMA data_version')
  /** Versions that `onForeignCommit` and that the hooks ran for. */
  let seenVersion: number | undefined
  let noticedVersion: number | undefined

  function runHooks(version: number | undefined) {
    if (version === noticedVersion) return
    noticedVersion = version
    for (const one of transactionHooks) one.onForeignCommit?.()
  }

  return {
    /** Reports other connections' commits at the beginning of a batch. @throws ForeignCommitError */
    noteInTransaction() {
      const version = dataVersion.get()?.data_version
      runHooks(version)
      if (version === seenVersion) return
      try {
        onForeignCommit(connection)
      } catch (error) {
        throw new ForeignCommitError(error)
      }
      seenVersion = version
    },

    /** Runs the hooks for other connections' commits, also between two batches. */
    notice() {
      // While a batch holds the write lock, no other connection commits.
      if (connection.inTransaction) return
      // If the version cannot be read, it counts as a new one: NaN equals nothing.
      let version: number | undefined = Number.NaN
      try {
        version = dataVersion.get()?.data_version
      } catch {}
      runHooks(version)
    },
  }
}

/**
 * Creates a counter of the writes to some tables. Rows that were read under a version are still true while it is the same.
 *
 * It grows when something is written, so that the transactions behind it in the batch read again, and once more when that is
 * committed or rolled back: readers between the two have read what was true before, and transactions what is true no longer.
 */
export function createVersionCounter() {
  let value = 0
  let hasUncommitted = false

  function onEnd() {
    if (!hasUncommitted) return
    value++
    hasUncommitted = false
  }

  const hooks: TransactionHooks = {
    onCommit: onEnd,
    onRollback: onEnd,
    onForeignCommit: () => void value++,
  }

  return {
    hooks,
    current: () => value,
    /** Call it in a transaction, after the write. */
    increment() {
      value++
      hasUncommitted = true
    },
  }
}

/** Creates a value at its first use, and keeps it. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined
  return () => (value ??= create())
}

/**
 * Creates work that is done in transactions of its own, behind the calls, one run at a time. A run that fails is repeated
 * when the work is started again, so it must lose nothing.
 *
 * @param run ends early if it finds that the work was closed
 */
export function createBackgroundWork(run: (isClosed: () => boolean) => Promise<void>) {
  let running: Promise<void> | undefined
  let isClosed = false
  return {
    /** Starts a run, if none is under way. */
    start(): void {
      if (running || isClosed) return
      running = run(() => isClosed)
        .catch(() => {})
        .finally(() => (running = undefined))
    },
    /** Resolves when the run that is under way has ended. */
    async close(): Promise<void> {
      isClosed = true
      await running
    },
  }
}
