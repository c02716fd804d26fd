import { Database as SqliteConnection } from 'bun:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** What a table came to: `ok`, or in words of SQLite's what is wrong. */
export type TableCheck = { table: string; result: string }

/** Runs in a thread of its own, and ends with the last table. @param workerData the path of the database */
function checkTables(path: string): void {
  const connection = new SqliteConnection(path, { readonly: true })
  const tables = connection
    .query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`)
    .all()
  for (const { name: table } of tables) {
    const row = connection.query<{ quick_check: string }, []>(`PRAGMA quick_check('${table}')`).get()
    const tableCheck: TableCheck = { table, result: row?.quick_check ?? '' }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows alone
    parentPort?.postMessage(tableCheck)
  }
  connection.close()
}

checkTables(workerData)
