import { systemWorld } from '../../world/system.ts'
import type { Timers } from '../../world/world.ts'
import type { Database as SqliteConnection, SQLQueryBindings, Statement } from 'bun:sqlite'

/**
 * Wraps a read-only connection, for reads outside of transactions. All reads in one turn of the event loop share a
 * snapshot: taking one costs locks and the page cache, several times as much as looking up a row.
 */
export function openReader(connection: SqliteConnection, timers: Timers = systemWorld.timers) {
  connection.run('PRAGMA busy_timeout = 1000')
  connection.run('PRAGMA query_only = ON')
  const begin = connection.prepare('BEGIN')
  const end = connection.prepare('COMMIT')
  /** By their texts: drizzle prepares a query that is built for each call again and again. */
  const statements = new Map<string, Statement<unknown, SQLQueryBindings[]>>()
  let isSnapshotOpen = false

  function beginSnapshot() {
    if (isSnapshotOpen) return
    begin.run()
    isSnapshotOpen = true
    timers.setImmediate(endSnapshot)
  }

  /**
   * Ends the read transaction, so that the next read sees the latest commit. Call it before each commit: the caller
   * that awaits the commit must see it, and an older snapshot would keep its pages from being checkpointed.
   */
  function endSnapshot() {
    if (!isSnapshotOpen) return
    isSnapshotOpen = false
    // A disk error during a read ends the transaction too.
    if (connection.inTransaction) end.run()
  }

  /** The part of a connection that drizzle uses. */
  const client = {
    prepare(query: string) {
      const statement = statements.get(query) ?? connection.prepare<unknown, SQLQueryBindings[]>(query)
      statements.set(query, statement)
      return {
        run: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.run(...values)),
        all: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.all(...values)),
        values: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.values(...values)),
      }
    },
  }

  return {
    // The assertion is sound as long as drizzle's bun:sqlite session calls only `prepare`; the store's tests cover
    // that.
    client: client as unknown as SqliteConnection,
    endSnapshot,
    close() {
      endSnapshot()
      // A statement keeps its connection open until it is collected as garbage. If this one were closed last, the log would
      // stay: only a connection that writes may delete it.
      for (const statement of [begin, end, ...statements.values()]) statement.finalize()
      connection.close()
    },
  }
}
