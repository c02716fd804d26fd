import { Database as SqliteConnection, type SQLQueryBindings } from 'bun:sqlite'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { createAdmissionLog } from './admission-log.ts'
import { createDiskSync } from './disk-sync.ts'
import { watchFiles } from './file-watch.ts'
import { createVersionCounter, lazy, type TransactionHooks, watchForeignCommits } from './memory-state.ts'
import { createGuardRows } from './guard-rows.ts'
import { sqliteColumns } from '../engine/tables/columns.ts'
import type { Database, QueryExecutor } from '../engine/database.ts'
import { createPhoneIndex } from './phone-index.ts'
import { toCallerError } from '../engine/errors.ts'
import { prepareOnSqlite } from './prepare.ts'
import { createLists, type ListLimits } from './lists.ts'
import { openReader } from './reader.ts'
import { overwriteFreePages, truncateWal } from './scrub.ts'
import { createShortIds, type ShortIds } from '../engine/tables/short-ids.ts'
import { defineTables } from '../engine/tables.ts'
import { systemWorld } from '../../world/system.ts'
import { createWriteQueue, type WriteQueueHooks } from './write-queue.ts'

/** Attempts to truncate the write-ahead log while other processes read or write. */
const truncateAttemptsMax = 100

export type SqliteOptions = Pick<
  WriteQueueHooks,
  'world' | 'onDiskFault' | 'onUnavailable' | 'onForeignCommit'
> & {
  /** Overwrites all deleted data, at the cost of more writes. */
  secureDelete?: boolean
  /** For tests, and host commands. */
  listLimits?: ListLimits
  /** New records of phones that are held in memory before they are added to their index, for tests. */
  phoneTailMax?: number
}

/**
 * Opens a migrated database with one writing connection, which uses group commit, and one read-only connection.
 *
 * Acknowledged writes survive a power loss: the queue flushes the write-ahead log after each commit, before it resolves.
 */
export function openSqlite(path: string, options: SqliteOptions): Database {
  const { world = systemWorld, secureDelete, listLimits, phoneTailMax, ...hooks } = options
  const writer = connect(path, 0)
  const disk = createDiskSync(path, writer, hooks.onDiskFault, world)
  if (secureDelete) writer.run('PRAGMA secure_delete = ON')
  const reader = openReader(new SqliteConnection(path, { readonly: true }), world.timers)

  // drizzle calls bun:sqlite synchronously and wraps the result, so the types of the asynchronous builders hold.
  const tx = drizzle(writer) as unknown as QueryExecutor
  const read = drizzle({ client: reader.client }) as unknown as QueryExecutor
  const ids = createShortIds(reader.client.prepare, writer)
  const admissions = createAdmissionLog(writer, ids.toNumber, world)
  const configuration = createVersionCounter()
  const log = createVersionCounter()
  const lists = createLists(writer, (body) => queue.write(body), world, listLimits)
  const phoneIndex = createPhoneIndex(
    reader.client.prepare,
    writer,
    (body) => queue.write(body),
    phoneTailMax,
    world.timers,
  )
  const guardRows = createGuardRows(writer, (body) => queue.write(body), world)
  const rowChanges = createRowChanges(() => queue.noticeForeignCommits())
  const queue = createWriteQueue(writer, tx, {
    ...hooks,
    world,
    disk,
    requireFiles: watchFiles(path, writer, world),
    transactionHooks: [
      // First, so that nothing is read from an older snapshot and remembered under the new version.
      { beforeCommit: reader.endSnapshot, onForeignCommit: reader.endSnapshot },
      admissions.hooks,
      configuration.hooks,
      log.hooks,
      lists.hooks,
      phoneIndex.hooks,
      guardRows.hooks,
      // Last: its listeners may read what the others hold.
      rowChanges.hooks,
    ],
    onChanged: rowChanges.notifyOwn,
  })

  let isFresh = false
  /** As the reader's snapshot, what is known of other processes lasts until the turn of the event loop ends. */
  function refresh() {
    if (isFresh) return
    isFresh = true
    world.timers.setImmediate(() => (isFresh = false))
    queue.noticeForeignCommits()
  }

  return {
    ...describeSqlite(ids, writer),
    world,
    changes: rowChanges.changes,
    sqlite: {
      prepare: prepareOnSqlite,
      admissions,
      configuration,
      log,
      guardRows: guardRows.cache,
      refresh,
      lists: lists.lists,
      phoneIndex,
    },
    read,
    write: queue.write,
    group: queue.group,
    whenDurable: queue.whenDurable,
    secureDelete: (on) => writer.run(`PRAGMA secure_delete = ${on || secureDelete ? 'ON' : 'FAST'}`),
    async overwriteFreeSpace(yieldToRequests) {
      const write = (body: () => void) => queue.write(async () => body())
      if (!(await overwriteFreePages(writer, write, yieldToRequests))) return false
      const connection = connect(path, 0)
      try {
        for (let attempt = 0; attempt < truncateAttemptsMax; attempt++) {
          reader.endSnapshot()
          if (truncateWal(connection)) return true
          if (!(await yieldToRequests())) return false
        }
        return false
      } finally {
        connection.close()
      }
    },
    async close() {
      await Promise.all([lists.close(), phoneIndex.close(), guardRows.close()])
      await queue.drain()
      await disk?.stop()
      reader.close()
      writer.close()
      disk?.close()
    },
  }
}

/**
 * Creates the signal of commits that changed rows, by this process or another.
 *
 * @param lookForForeign runs the hooks for commits of other processes
 */
function createRowChanges(lookForForeign: () => void) {
  const listeners = new Set<(isForeign: boolean) => unknown>()

  function notify(isForeign: boolean) {
    for (const listener of listeners) listener(isForeign)
  }

  const notifyForeign = () => notify(true)
  const changes: NonNullable<Database['changes']> = {
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    lookForForeign,
    notifyForeign,
  }
  const hooks: TransactionHooks = { onForeignCommit: notifyForeign }
  return { changes, hooks, notifyOwn: () => notify(false) }
}

/** Wraps a read-only connection as a database whose every write fails. */
export function wrapReadonlySqlite(connection: SqliteConnection): Database {
  const reader = openReader(connection)
  const ids = createShortIds(reader.client.prepare, connection)
  const admissions = createAdmissionLog(connection, ids.toNumber, systemWorld)
  const configuration = createVersionCounter()
  const log = createVersionCounter()
  const { lists } = createLists(reader.client, undefined, systemWorld)
  const phoneIndex = createPhoneIndex(reader.client.prepare, connection, undefined)
  const transactionHooks = [admissions, configuration, log, phoneIndex].map(({ hooks }) => hooks)
  const foreignCommits = watchForeignCommits(connection, transactionHooks)
  return {
    ...describeSqlite(ids, connection),
    world: systemWorld,
    sqlite: {
      prepare: prepareOnSqlite,
      admissions,
      configuration,
      log,
      guardRows: undefined,
      refresh: foreignCommits.notice,
      lists,
      phoneIndex,
    },
    read: drizzle({ client: reader.client }) as unknown as QueryExecutor,
    write: () => Promise.reject(readOnlyError()),
    whenDurable: () => Promise.resolve(),
    group: () => () => Promise.reject(readOnlyError()),
    secureDelete: () => {},
    overwriteFreeSpace: () => Promise.reject(readOnlyError()),
    close: () => Promise.resolve(reader.close()),
  }
}

const readOnlyError = () => new Error('the database is open for reading only')

type Dialect = Pick<
  Database,
  'tables' | 'prepare' | 'writeRows' | 'shortId' | 'matchesShortId' | 'lock' | 'skipLocked' | 'convertError'
>

const describeSqlite = (ids: ShortIds, writer: SqliteConnection): Dialect => ({
  tables: defineTables(sqliteColumns(ids)),
  prepare(build) {
    const query = prepareOnSqlite(build)
    return async (values) => query(values)
  },
  writeRows(_, { sqlite, toValues }) {
    const statement = lazy(() => {
      if (sqlite === undefined) throw new Error('a write of PostgreSQL alone')
      return writer.prepare<unknown, SQLQueryBindings[]>(sqlite)
    })
    return (rows) => {
      for (const row of rows) statement().run(...toValues(row))
    }
  },
  shortId: ids.toNumber,
  matchesShortId: (id, shortId) => sql`${id} = (select id from short_ids where number = ${shortId})`,
  lock: async () => 'locked',
  skipLocked: () => sql``,
  convertError: toCallerError,
})

/** Opens a read-write connection with the settings that all writers of the file must share. */
export function connect(path: string, busyTimeoutMs: number): SqliteConnection {
  const connection = new SqliteConnection(path, { create: true })
  connection.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  // Write-ahead log: readers see a snapshot while the one writer commits.
  connection.run('PRAGMA journal_mode = WAL')
  connection.run('PRAGMA synchronous = FULL')
  connection.run('PRAGMA foreign_keys = ON')
  connection.run('PRAGMA trusted_schema = OFF')
  // Overwrites deleted data (expired phone numbers) on pages that are written anyway.
  connection.run('PRAGMA secure_delete = FAST')
  connection.run('PRAGMA cell_size_check = ON')
  connection.run('PRAGMA temp_store = MEMORY')
  // 16 MB. The kernel caches the file too: 64 MB would cost 45 MB more memory and save nothing with 150,000 requests,
  // and 5 % of a verification's CPU time with 600,000.
  connection.run('PRAGMA cache_size = -16384')
  // 16 MB. Many pages are written repeatedly, and are so checkpointed four times less often than with SQLite's default
  // of 1000 pages.
  connection.run('PRAGMA wal_autocheckpoint = 4000')
  connection.run('PRAGMA journal_size_limit = 67108864')
  // macOS: fsync alone does not reach the platter.
  connection.run('PRAGMA fullfsync = ON')
  connection.run('PRAGMA checkpoint_fullfsync = ON')
  return connection
}
