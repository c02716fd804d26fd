import { constants, Database as SqliteConnection } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/**
 * Opens a database for reading, and creates no file. An unused database is opened as immutable: otherwise even a
 * read-only connection would leave write-ahead log files behind, and root's would lock the server out.
 */
export function openReadonly(path: string): SqliteConnection {
  const hasNoWal = !existsSync(`${path}-wal`)
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI
  const connection = hasNoWal
    ? new SqliteConnection(`${pathToFileURL(path).href}?immutable=1`, flags)
    : new SqliteConnection(path, { readonly: true })
  connection.run('PRAGMA busy_timeout = 5000')
  connection.run('PRAGMA trusted_schema = OFF')
  connection.run('PRAGMA cell_size_check = ON')
  return connection
}

/** Runs `work` on a connection of `openReadonly`, and closes it. */
export function readDatabase<T>(path: string, work: (connection: SqliteConnection) => T): T {
  const connection = openReadonly(path)
  try {
    return work(connection)
  } finally {
    connection.close()
  }
}
