import type { Database as SqliteConnection } from 'bun:sqlite'

/** Runs a body in a transaction that has the write lock from its beginning. A throw rolls it back. */
export function transact<T>(connection: SqliteConnection, body: () => T): T {
  connection.run('BEGIN IMMEDIATE')
  try {
    const result = body()
    connection.run('COMMIT')
    return result
  } catch (error) {
    // A full disk ends the transaction by itself.
    if (connection.inTransaction) connection.run('ROLLBACK')
    throw error
  }
}
