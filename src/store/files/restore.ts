import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Database as SqliteConnection } from 'bun:sqlite'
import { masterKeyCheck } from '../../domain/model/keys.ts'
import { copyDatabase, withReadonlyConnection, fsyncPath } from './backup.ts'
import { dataFiles, systemErrorCode, OperationRefused } from './data-dir.ts'
import { driverCode } from '../engine/errors.ts'
import {
  readAppliedMigrations,
  MigrationError,
  pendingMigrations,
  sqliteMigrations,
} from '../engine/migrate.ts'

export type RestoreResult = {
  /** Path of the replaced database; null if there was none. */
  keptAs: string | null
  /** Migrations that the next start of the server applies. */
  pendingMigrations: string[]
}

/**
 * Replaces the database by a checked copy of a backup, and keeps the old database in `backups/`. Atomic: the change
 * is one rename, so a crash or a power loss leaves either database. The caller must hold the lock of the data
 * directory.
 *
 * @param options.now used in the file name of the old database
 * @throws OperationRefused FILE_MISSING, FILE_NOT_READABLE, BACKUP_INVALID, BACKUP_OF_ANOTHER_VERSION,
 *   BACKUP_OF_ANOTHER_KEY, or DATABASE_BUSY when another command uses the database. Nothing was changed.
 */
export function restoreDatabase(
  dataDir: string,
  file: string,
  options: { masterKey: Uint8Array; now: number },
): RestoreResult {
  const files = dataFiles(dataDir)
  const draft = `${files.database}.restoring`
  // Left over from a restore that was killed.
  rmSync(draft, { force: true })
  try {
    copyBackup(file, draft)
    const pending = withReadonlyConnection(draft, (connection) =>
      checkBackup(connection, file, options.masterKey),
    )
    const keptAs = replaceDatabase(dataDir, draft, options.now)
    return { keptAs, pendingMigrations: pending }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Copies before checking, so that the checked bytes are the restored ones. */
function copyBackup(file: string, draft: string): void {
  if (!existsSync(file)) {
    throw new OperationRefused('FILE_MISSING', `there is no ${file}`, 'Give the path of a backup file.')
  }
  if (!statSync(file).isFile()) throw invalidBackup(file)
  try {
    copyDatabase(file, draft)
  } catch (error) {
    if (error instanceof OperationRefused) throw invalidBackup(file, error)
    const code = driverCode(error) ?? systemErrorCode(error)
    if (/^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(code)) throw invalidBackup(file, error)
    if (!/^(E[A-Z]+|SQLITE_\w+)$/.test(code)) throw error
    throw new OperationRefused(
      'FILE_NOT_READABLE',
      `${file} cannot be copied into the data directory (${code})`,
      'Check the permissions of the file and of the data directory, and the free space.',
      error,
    )
  }
}

function checkBackup(connection: SqliteConnection, file: string, masterKey: Uint8Array): string[] {
  let pending: string[]
  let storedKeyCheck: { value: string } | null
  try {
    const applied = readAppliedMigrations(connection)
    if (applied.length === 0) throw invalidBackup(file)
    pending = pendingMigrations(sqliteMigrations, applied).map(({ name }) => name)
    if (connection.query('PRAGMA foreign_key_check').get() !== null) throw invalidBackup(file)
    storedKeyCheck = connection
      .query<{ value: string }, []>(`select value from meta where name = 'master_key_check'`)
      .get()
  } catch (error) {
    if (error instanceof MigrationError) {
      throw new OperationRefused(
        'BACKUP_OF_ANOTHER_VERSION',
        `${file} is not for this otpd`,
        `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}`,
        error,
      )
    }
    // Another program's tables with the same names.
    if (driverCode(error) === 'SQLITE_ERROR') throw invalidBackup(file, error)
    throw error
  }
  if (storedKeyCheck?.value === masterKeyCheck(masterKey)) return pending
  throw new OperationRefused(
    'BACKUP_OF_ANOTHER_KEY',
    `${file} was made with another master key`,
    'Copy that key to master.key in the data directory, or point OTPD_MASTER_KEY_FILE to it.',
  )
}

function replaceDatabase(dataDir: string, draft: string, now: number): string | null {
  const files = dataFiles(dataDir)
  const exclusiveConnection = existsSync(files.database) ? openExclusively(files.database) : undefined
  try {
    const keptAs = existsSync(files.database) ? keepPreviousDatabase(dataDir, now) : null
    // The old database's WAL must never be applied to the new database.
    for (const log of walFiles(files.database)) rmSync(log, { force: true })
    fsyncPath(dataDir)
    renameSync(draft, files.database)
    fsyncPath(dataDir)
    return keptAs
  } finally {
    exclusiveConnection?.close()
  }
}

/**
 * Opens the database exclusively. Leaving WAL mode checkpoints the log, and works only while no other connection is
 * open, which excludes host commands that do not hold the lock.
 *
 * @returns undefined if the database is too damaged to open; it is then kept together with its log
 */
function openExclusively(database: string): SqliteConnection | undefined {
  const connection = new SqliteConnection(database)
  try {
    connection.run('PRAGMA busy_timeout = 5000')
    connection.run('PRAGMA journal_mode = DELETE')
    connection.run('BEGIN EXCLUSIVE')
    return connection
  } catch (error) {
    connection.close()
    if (/^SQLITE_(NOTADB|CORRUPT)/.test(driverCode(error) ?? '')) return undefined
    if (driverCode(error)?.startsWith('SQLITE_BUSY')) {
      throw new OperationRefused(
        'DATABASE_BUSY',
        `another process is using ${database}`,
        'Wait until it finishes, or stop it.',
        error,
      )
    }
    throw error
  }
}

/** Keeps the old database under a second name with a hard link, so that a database exists at every moment. */
function keepPreviousDatabase(dataDir: string, now: number): string {
  const files = dataFiles(dataDir)
  mkdirSync(files.backups, { recursive: true, mode: 0o700 })
  const stamp = new Date(now).toISOString().replaceAll(/[:.]/g, '-')
  const keptPath = join(files.backups, `before-restore-${stamp}.db`)
  try {
    linkSync(files.database, keptPath)
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') throw error
    // The file system has no hard links.
    copyFileSync(files.database, keptPath)
    fsyncPath(keptPath)
  }
  const [wal = '', ...otherFiles] = walFiles(files.database)
  if (existsSync(wal)) renameSync(wal, `${keptPath}-wal`)
  for (const other of otherFiles) rmSync(other, { force: true })
  fsyncPath(files.backups)
  return keptPath
}

/** The write-ahead log first, then the files that SQLite can recreate. */
const walFiles = (database: string) => [`${database}-wal`, `${database}-shm`]

const invalidBackup = (file: string, cause?: unknown) =>
  new OperationRefused(
    'BACKUP_INVALID',
    `${file} is damaged or not a backup of otpd`,
    'Choose another backup. Nothing was changed.',
    cause,
  )
