import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Database as SqliteConnection } from 'bun:sqlite'
import { ServiceError } from '../../domain/model/errors.ts'
import { masterKeyCheck } from '../../domain/model/keys.ts'
import { copyDatabase, fsyncPath } from './backup.ts'
import { dataFiles, errorWord, OperationRefused, requirePrivate, StartRefused } from './data-dir.ts'
import { driverCode } from '../engine/errors.ts'
import {
  readAppliedMigrations,
  MigrationError,
  migrateSqlite,
  pendingMigrations,
  sqliteMigrations,
} from '../engine/migrate.ts'
import { connect } from '../engine/sqlite.ts'

/** How long a command of the operator's may hold the database. */
const busyTimeoutMs = 5_000

/**
 * Brings the database of a data directory to this version, after a backup of what is there, and makes sure that it
 * belongs to the master key. Leaves it closed. Whoever calls holds the lock of the directory.
 *
 * @returns what a database that was there before got, and where its backup lies
 * @param options.migrate false: refuse an older database
 * @throws StartRefused the database is damaged, newer than this otpd, older and not to be migrated, of another master
 *   key, or readable by others
 */
export function prepareDatabase(
  dataDir: string,
  options: { masterKey: Uint8Array; migrate: boolean; now: number },
): { migrated: string[]; backup: string | undefined } {
  const files = dataFiles(dataDir)
  requirePrivate(files.database)
  let connection: SqliteConnection | undefined
  try {
    if (existsSync(files.database)) requireOtpdDatabase(files.database)
    // SQLite would let others read it, and a first start that is cut short would leave it so.
    else closeSync(openSync(files.database, 'wx', 0o600))
    connection = connect(files.database, busyTimeoutMs)
    return bringUpToDate(connection, dataDir, options)
  } catch (error) {
    throw toStartError(error, dataDir)
  } finally {
    connection?.close()
  }
}

/** Before the settings of a connection that writes change the file. @throws MigrationError it is another program's */
function requireOtpdDatabase(path: string): void {
  const connection = new SqliteConnection(path)
  try {
    connection.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    readAppliedMigrations(connection)
  } finally {
    connection.close()
  }
}

function bringUpToDate(
  connection: SqliteConnection,
  dataDir: string,
  options: { masterKey: Uint8Array; migrate: boolean; now: number },
) {
  const applied = readAppliedMigrations(connection)
  const pending = pendingMigrations(sqliteMigrations, applied)
  let backup: string | undefined
  if (pending.length > 0) {
    const isNew = applied.length === 0
    if (!isNew && !options.migrate) {
      throw new StartRefused('the database is older than this otpd', 'Migrate it: otpd migrate up')
    }
    if (!isNew) backup = backUpBeforeMigration(dataDir, options.now)
    migrateSqlite(connection, options.now)
  }
  requireMasterKey(connection, options.masterKey)
  // A new database has nothing to migrate from.
  const migrated = applied.length === 0 ? [] : pending.map(({ name }) => name)
  return { migrated, backup }
}

/** Bears its name only once it is whole and on the disk: a start that is killed meanwhile leaves no half of one. */
function backUpBeforeMigration(dataDir: string, now: number): string {
  const { database, backups: folder } = dataFiles(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stamp = new Date(now).toISOString().replaceAll(/[:.]/g, '-')
  const path = join(folder, `before-migration-${stamp}.db`)
  const draft = join(folder, 'before-migration.part')
  try {
    rmSync(draft, { force: true })
    copyDatabase(database, draft)
    renameSync(draft, path)
    fsyncPath(folder)
  } finally {
    rmSync(draft, { force: true })
  }
  return path
}

/** The database keeps a check value of its key: with a wrong one every code and client ID would silently change. */
function requireMasterKey(connection: SqliteConnection, masterKey: Uint8Array): void {
  const check = masterKeyCheck(masterKey)
  connection.run(`insert into meta (name, value) values ('master_key_check', ?) on conflict do nothing`, [
    check,
  ])
  const row = connection
    .query<{ value: string }, []>(`select value from meta where name = 'master_key_check'`)
    .get()
  if (row?.value === check) return
  throw new StartRefused(
    'the database belongs to another master key',
    'Start with the key that it was made with: master.key beside it, or OTPD_MASTER_KEY_FILE.',
  )
}

/** What is wrong with the database of a data directory, as a StartRefused where it is foreseen. */
export function toStartError(error: unknown, dataDir: string): unknown {
  if (error instanceof StartRefused) return error
  if (error instanceof MigrationError || error instanceof OperationRefused) {
    return new StartRefused(error.message, error.remedy, error)
  }
  const { database, backups } = dataFiles(dataDir)
  // A write that was refused: UNAVAILABLE is for callers.
  const cause = error instanceof ServiceError ? error.cause : error
  const code = driverCode(cause) ?? errorWord(cause)
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    const where = existsSync(backups) ? ` Backups lie in ${backups}.` : ''
    return new StartRefused(
      `${database} is damaged or not a database of otpd`,
      `Restore a backup.${where}`,
      error,
    )
  }
  if (code.startsWith('SQLITE_BUSY')) {
    return new StartRefused(`another process holds ${database}`, 'Wait until it is done, or stop it.', error)
  }
  if (/^SQLITE_(CANTOPEN|READONLY|FULL|IOERR)/.test(code)) {
    return new StartRefused(
      `${database} cannot be written to (${code})`,
      'Check the rights of the data directory and the free space of its disk.',
      error,
    )
  }
  // Of a file beside it.
  if (/^E[A-Z]+$/.test(code)) {
    return new StartRefused(
      `${dataDir} cannot be written to (${code})`,
      'Check the rights of the data directory and the free space of its disk.',
      error,
    )
  }
  return error
}

/** Whether the last process left without closing: SQLite removes the write-ahead log with the last connection. */
export function wasUncleanStop(dataDir: string): boolean {
  const wal = `${dataFiles(dataDir).database}-wal`
  return existsSync(wal) && statSync(wal).size > 0
}
