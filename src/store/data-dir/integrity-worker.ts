import { Database as SqliteConnection } from 'bun:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** Result of a table: `ok`, or SQLite's description of the damage. */
export type TableCheck = { table: string; result: string }

/** Checks all tables and posts a result for each. Runs in a worker thread, with the database path as `workerData`. */
function checkTables(path: string): void {
  const connection = new SqliteConnection(path, { readonly: true })
  const tables = connection
    .query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`)
    .all()
  for (const { name: table } of tables) {
    const row = connection.query<{ quick_check: string }, []>(`PRAGMA quick_check('${table}')`).get()
    const tableCheck: TableCheck = { table, result: row?.quick_check ?? '' }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- exists for windows only
    parentPort?.postMessage(tableCheck)
  }
  connection.close()
}

checkTables(workerData)
