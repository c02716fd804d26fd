import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Database as SqliteConnection } from 'bun:sqlite'
import type { OnStep } from '../../shared/progress.ts'
import { checkFileMac, computeFileMac, macFile, writeMacFile } from './backup-mac.ts'
import { createDataKeys, findMasterKey, requireDataKeys, storeDataKeys } from './data-keys.ts'
import { requireOwnSchema, SchemaError } from './schema.ts'
import { runOnSqlite } from '../engine/sql-steps.ts'
import { connect } from '../sqlite/database.ts'
import { transact } from '../sqlite/transact.ts'
import { copyDatabase, withReadonlyConnection, fsyncPath } from './backup.ts'
import { dataFiles, fileTime, systemErrorCode, OperationRefused } from './data-dir.ts'
import { hasDatabase } from './missing-database.ts'
import { driverCode } from '../engine/errors.ts'
import { sqliteMigrations } from '../engine/migration-files.ts'
import { MigrationError, pendingMigrations } from '../engine/migrations.ts'
import { readAppliedMigrations, migrateSqlite } from '../sqlite/migrate.ts'
import { explainCode } from '../../shared/error-cause.ts'

export type RestoreResult = {
  /** Path of the replaced database; null if there was none. */
  keptAs: string | null
  /** Migrations that the next start of the server applies. */
  pendingMigrations: string[]
}

type RestoreOptions = {
  /** Master key in use, which the restored database gets. */
  masterKey: Uint8Array
  /** Replaced master keys that may open the backup. */
  oldMasterKeys?: readonly Uint8Array[] | undefined
  /** Name of the backup in messages; its path if left out. */
  name?: string | undefined
  /** It was sealed, and opening it has authenticated it: it has no HMAC and needs none. */
  wasSealed?: boolean | undefined
  /** Accept a backup without an HMAC. A wrong one is always refused. */
  allowUnauthenticated?: boolean | undefined
  /** Used in the file name of the old database. */
  now: number
  /** Called as the work goes on. */
  onStep?: OnStep | undefined
}

/**
 * Replaces the database by a checked copy of a backup, and keeps the old database in `backups/`. Atomic: the change
 * is one rename, so a crash or a power loss leaves either database. The caller must hold the lock of the data
 * directory.
 *
 * @throws OperationRefused FILE_MISSING, FILE_NOT_READABLE, BACKUP_NOT_AUTHENTICATED, BACKUP_FORGED, BACKUP_INVALID,
 *   BACKUP_SCHEMA_CHANGED, BACKUP_OF_ANOTHER_VERSION, BACKUP_OF_ANOTHER_KEY, or DATABASE_BUSY when another command uses
 *   the database. Nothing was changed.
 */
export function restoreDatabase(dataDir: string, file: string, options: RestoreOptions): RestoreResult {
  const files = dataFiles(dataDir)
  const { draft, copy } = draftFiles(files.database)
  removeRestoreDrafts(dataDir)
  try {
    copyBackup(file, copy, draft, options)
    rmSync(copy, { force: true })
    const pending = withReadonlyConnection(draft, (connection) =>
      checkBackup(connection, options.name ?? file, options),
    )
    const areKeysReplaced = adoptMasterKey(draft, options)
    const keptAs = replaceDatabase(dataDir, draft, options)
    return { keptAs, pendingMigrations: areKeysReplaced ? [] : pending }
  } finally {
    removeRestoreDrafts(dataDir)
  }
}

const draftFiles = (database: string) => ({
  draft: `${database}.restoring`,
  copy: `${database}.restoring.copy`,
})

/**
 * Deletes the working files that a killed restore leaves. The caller must hold the lock of the data directory.
 *
 * @returns whether there were any
 */
export function removeRestoreDrafts(dataDir: string): boolean {
  const left = Object.values(draftFiles(dataFiles(dataDir).database))
    .flatMap((path) => [path, `${path}-journal`, `${path}-wal`, `${path}-shm`])
    .filter((path) => existsSync(path))
  for (const path of left) rmSync(path, { force: true })
  return left.length > 0
}

/** Copies before checking, so that the checked bytes are the restored ones. */
function copyBackup(file: string, copy: string, draft: string, options: RestoreOptions): void {
  const { name = file } = options
  if (!existsSync(file)) {
    throw new OperationRefused('FILE_MISSING', `there is no ${file}`, 'List what is there: otpd backup list')
  }
  if (!statSync(file).isFile()) throw invalidBackup(name)
  try {
    const { allowUnauthenticated = false, wasSealed = false, onStep } = options
    if (wasSealed) return copyDatabase(file, draft, onStep)
    const mac = checkFileMac(file, candidates(options), { copy, onStep })
    if (mac === 'wrong') throw forgedBackup(file)
    if (mac === 'missing' && !allowUnauthenticated) throw unauthenticatedBackup(file)
    // A database that another tool copied may need the write-ahead log next to it.
    copyDatabase(mac === 'missing' ? file : copy, draft, onStep)
  } catch (error) {
    if (error instanceof OperationRefused)
      throw error.reason === 'DATABASE_DAMAGED' ? invalidBackup(name, error) : error
    const code = driverCode(error) ?? systemErrorCode(error)
    if (/^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(code)) throw invalidBackup(name, error)
    if (!/^(E[A-Z]+|SQLITE_\w+)$/.test(code)) throw error
    throw new OperationRefused(
      'FILE_NOT_READABLE',
      `${name} cannot be copied into the data directory (${explainCode(code)})`,
      'Check the permissions of the file and of the data directory, and the free space.',
      error,
    )
  }
}

function checkBackup(connection: SqliteConnection, name: string, options: RestoreOptions): string[] {
  let pending: string[]
  try {
    const applied = readAppliedMigrations(connection)
    if (applied.length === 0) throw invalidBackup(name)
    pending = pendingMigrations(sqliteMigrations, applied).map(({ name }) => name)
    if (connection.query('PRAGMA foreign_key_check').get() !== null) throw invalidBackup(name)
    requireOwnSchema(connection)
  } catch (error) {
    if (error instanceof SchemaError) {
      throw new OperationRefused(
        'BACKUP_SCHEMA_CHANGED',
        `${name} is not as otpd wrote it: ${error.message}`,
        error.remedy,
        error,
      )
    }
    if (error instanceof MigrationError) {
      throw new OperationRefused(
        'BACKUP_OF_ANOTHER_VERSION',
        `${name} is not for this otpd`,
        `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}`,
        error,
      )
    }
    // Another program's tables with the same names.
    if (driverCode(error) === 'SQLITE_ERROR') throw invalidBackup(name, error)
    throw error
  }
  if (findMasterKey(connection, candidates(options))) return pending
  throw new OperationRefused(
    'BACKUP_OF_ANOTHER_KEY',
    `${name} was made with another master key`,
    'Name the key of its day with --master-key-file; it then gets the present one.',
  )
}

const candidates = ({ masterKey, oldMasterKeys = [] }: RestoreOptions) => [masterKey, ...oldMasterKeys]

/**
 * Wraps the data keys of a copied backup with the master key in use, if that does not open it already. A backup of 0.1.0 is
 * migrated for that: its keys follow from the master key of its day.
 *
 * @returns whether it did
 */
function adoptMasterKey(draft: string, options: RestoreOptions): boolean {
  const { masterKey, now } = options
  const ownKey = withReadonlyConnection(draft, (connection) => findMasterKey(connection, candidates(options)))
  if (ownKey === masterKey || !ownKey) return false
  const connection = connect(draft, 0)
  try {
    // One file, so that the rename below moves all of it.
    connection.run('PRAGMA journal_mode = DELETE')
    connection.run('PRAGMA secure_delete = ON')
    migrateSqlite(connection, now, sqliteMigrations, () => createDataKeys(connection, ownKey, now))
    const { dataKeys } = requireDataKeys(connection, [ownKey])
    transact(connection, () =>
      runOnSqlite(connection, storeDataKeys(masterKey, dataKeys, { keepOthers: false, now })),
    )
    return true
  } finally {
    connection.close()
    fsyncPath(draft)
  }
}

function replaceDatabase(
  dataDir: string,
  draft: string,
  { masterKey, now, onStep }: RestoreOptions,
): string | null {
  const files = dataFiles(dataDir)
  // SQLite would delete the log of an empty database.
  const exclusiveConnection = hasDatabase(dataDir) ? openExclusively(files.database) : undefined
  try {
    const keptAs = keepPreviousDatabase(dataDir, now)
    // A damaged database cannot be restored anyway.
    if (keptAs !== null && exclusiveConnection)
      writeMacFile(keptAs, computeFileMac(keptAs, masterKey, onStep))
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

/**
 * Keeps the old database under a second name with a hard link, so that a database exists at every moment. Moves its logs
 * there, which hold commits and must never be applied to the new database.
 *
 * @returns its path, or that of a log without a database; null if there is neither
 */
function keepPreviousDatabase(dataDir: string, now: number): string | null {
  const files = dataFiles(dataDir)
  const hasOld = existsSync(files.database)
  const logs = ['-wal', '-journal'].filter((suffix) => existsSync(files.database + suffix))
  rmSync(`${files.database}-shm`, { force: true })
  if (!hasOld && logs.length === 0) return null
  mkdirSync(files.backups, { recursive: true, mode: 0o700 })
  const keptPath = join(files.backups, `before-restore-${fileTime(now)}.db`)
  try {
    if (hasOld) linkSync(files.database, keptPath)
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') throw error
    // The file system has no hard links.
    copyFileSync(files.database, keptPath)
    fsyncPath(keptPath)
  }
  for (const suffix of logs) renameSync(files.database + suffix, keptPath + suffix)
  fsyncPath(files.backups)
  return hasOld ? keptPath : `${keptPath}${logs[0]}`
}

const invalidBackup = (name: string, cause?: unknown) =>
  new OperationRefused(
    'BACKUP_INVALID',
    `${name} is damaged or not a backup of otpd`,
    'Choose another backup: otpd backup list. Nothing was changed.',
    cause,
  )

const forgedBackup = (file: string) =>
  new OperationRefused(
    'BACKUP_FORGED',
    `${file} does not match its HMAC in ${macFile(file)}`,
    'Choose another backup if it was changed or cut: otpd backup list. If it was made with another master key, name that with --master-key-file. Nothing was changed.',
  )

const unauthenticatedBackup = (file: string) =>
  new OperationRefused(
    'BACKUP_NOT_AUTHENTICATED',
    `there is no ${macFile(file)}, which proves that the backup is unchanged`,
    'Copy it along. For a backup of otpd 0.1.0 or of another tool that you trust: --unauthenticated.',
  )
