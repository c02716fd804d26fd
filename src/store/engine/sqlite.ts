import { Database as SqliteConnection } from 'bun:sqlite'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sqliteColumns } from './columns.ts'
import type { QueryExecutor, Database } from './database.ts'
import { prepareOnSqlite } from './sqlite-prepare.ts'
import { openReader } from './sqlite-reader.ts'
import { createShortIds } from './short-ids.ts'
import { defineTables } from './tables.ts'
import { createWriteQueue } from './write-queue.ts'

export type SqliteOptions = {
  /**
   * Called when a commit failed in a way that leaves its outcome unknown. The process must end: SQLite would go on
   * as if nothing had happened, and what was refused may stand in the file after a restart.
   */
  onDiskFault(error: unknown): void
  /** Overwrites all that is deleted, at the cost of more writes. */
  secureDelete?: boolean
}

/**
 * Opens a migrated database: one connection that writes, by group commit, and one that only reads.
 *
 * `synchronous=FULL`: what was acknowledged survives a power cut. NORMAL would undo up to a checkpoint's worth of it,
 * attempt counters included.
 */
export function openSqlite(path: string, options: SqliteOptions): Database {
  const writer = connect(path, 0)
  if (options.secureDelete) writer.run('PRAGMA secure_delete = ON')
  const reader = openReader(path)

  // drizzle calls bun:sqlite synchronously and wraps the result, so that the asynchronous builders' types hold.
  const tx = drizzle(writer) as unknown as QueryExecutor
  const read = drizzle({ client: reader.client }) as unknown as QueryExecutor
  const queue = createWriteQueue(writer, tx, {
    beforeCommit: reader.endSnapshot,
    onDiskFault: options.onDiskFault,
  })

  const ids = createShortIds(reader.client.prepare, writer)

  return {
    tables: defineTables(sqliteColumns(ids)),
    read,
    write: queue.write,
    prepare: prepareOnSqlite,
    shortId: ids.toNumber,
    matchesShortId: (id, shortId) => sql`${id} = (select id from short_ids where number = ${shortId})`,
    lock: () => Promise.resolve(),
    skipLocked: sql``,
    async close() {
      await queue.drain()
      reader.close()
      writer.close()
    },
  }
}

/** A connection that may write, with the settings that every writer of the file must share. */
export function connect(path: string, busyTimeoutMs: number): SqliteConnection {
  const connection = new SqliteConnection(path, { create: true })
  connection.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  connection.run('PRAGMA journal_mode = WAL')
  connection.run('PRAGMA synchronous = FULL')
  connection.run('PRAGMA foreign_keys = ON')
  connection.run('PRAGMA trusted_schema = OFF')
  // What was deleted or replaced is overwritten where its page is written anyway: phone numbers whose time is over.
  connection.run('PRAGMA secure_delete = FAST')
  connection.run('PRAGMA cell_size_check = ON')
  connection.run('PRAGMA temp_store = MEMORY')
  // 16 MB. The kernel holds the file as well: four times as much costs 45 MB of memory, and spares nothing among 150,000
  // requests and a twentieth of a verification's CPU among 600,000.
  connection.run('PRAGMA cache_size = -16384')
  // 16 MB. Many pages are written again and again, and so moved from the log to their place four times less often than
  // after SQLite's own 1000.
  connection.run('PRAGMA wal_autocheckpoint = 4000')
  connection.run('PRAGMA journal_size_limit = 67108864')
  // macOS: fsync alone does not reach the platter.
  connection.run('PRAGMA fullfsync = ON')
  connection.run('PRAGMA checkpoint_fullfsync = ON')
  return connection
}
