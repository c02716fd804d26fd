import type { Database as SqliteConnection } from 'bun:sqlite'
import { ForeignCommitError } from '../engine/errors.ts'
import type { TransactionHooks } from './transaction-hooks.ts'

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
