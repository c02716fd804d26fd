import { Database as SqliteConnection, type SQLQueryBindings } from 'bun:sqlite'

/**
 * A connection that cannot write, for reads outside of transactions. Those of one turn of the event loop see one snapshot:
 * taking one costs locks and the whole cache of pages, several times what looking up a row does.
 */
export function openReader(path: string) {
  const connection = new SqliteConnection(path, { readonly: true })
  connection.run('PRAGMA busy_timeout = 1000')
  connection.run('PRAGMA query_only = ON')
  const begin = connection.prepare('BEGIN')
  const end = connection.prepare('COMMIT')
  let isSnapshotOpen = false

  function beginSnapshot() {
    if (isSnapshotOpen) return
    begin.run()
    isSnapshotOpen = true
    setImmediate(endSnapshot)
  }

  /**
   * What is read from now on is what is committed by then. To be called before each commit: whoever waits for it must
   * see it, and a snapshot of before would keep its pages from being moved out of the log.
   */
  function endSnapshot() {
    if (!isSnapshotOpen) return
    isSnapshotOpen = false
    // A read that fails on the disk has ended it already.
    if (connection.inTransaction) end.run()
  }

  /** All of a connection that drizzle uses. */
  const client = {
    prepare(query: string) {
      const statement = connection.prepare<unknown, SQLQueryBindings[]>(query)
      return {
        run: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.run(...values)),
        all: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.all(...values)),
        values: (...values: SQLQueryBindings[]) => (beginSnapshot(), statement.values(...values)),
      }
    },
  }

  return {
    // The assertion is sound as long as drizzle's session for bun:sqlite calls nothing else; the store's tests do.
    client: client as unknown as SqliteConnection,
    endSnapshot,
    close() {
      endSnapshot()
      connection.close()
    },
  }
}
