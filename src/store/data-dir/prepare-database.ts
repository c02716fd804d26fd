import { existsSync, statSync } from 'node:fs'
import { Database as SqliteConnection } from 'bun:sqlite'
import { eq } from 'drizzle-orm'
import type { OnStep } from '../../shared/progress.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import { createKeyring } from '../../domain/model/keys.ts'
import { startAuditChains } from './audit-chains.ts'
import { createDataKeys, requireDataKeys } from './data-keys.ts'
import { requireMasterKey } from './master-key.ts'
import {
  checkAccess,
  dataFiles,
  systemErrorCode,
  OperationRefused,
  requirePrivate,
  StartRefused,
} from './data-dir.ts'
import type { Database } from '../engine/database.ts'
import { driverCode } from '../engine/errors.ts'
import { onTable } from '../engine/on-table.ts'
import { sqliteMigrations } from '../engine/migration-files.ts'
import { MigrationError, pendingMigrations } from '../engine/migrations.ts'
import { readAppliedMigrations, migrateSqlite } from '../sqlite/migrate.ts'
import { requireDatabase } from './missing-database.ts'
import { requireNotMoved } from './moved.ts'
import { requireOwnSchema } from './schema.ts'
import { copyBeforeMigration, endUpgrade } from './upgrade-copy.ts'
import { withShares } from './upgrade-steps.ts'
import { connect } from '../sqlite/database.ts'
import { explainCode } from '../../shared/error-cause.ts'

/** How long to wait for an operator command that holds the database. */
const busyTimeoutMs = 5_000

/**
 * Backs up the database of a data directory and migrates it to this version, and checks that it belongs to the master
 * key. Closes it again. The caller must hold the lock of the data directory.
 *
 * @param options.migrate false: refuse an older database
 * @returns the migrations that were applied, and the path of the backup
 * @throws StartRefused the database is missing, damaged, newer than this otpd, older while `migrate` is false, of another
 *   master key, or readable by other users
 */
export function prepareDatabase(
  dataDir: string,
  options: { masterKey: Uint8Array; migrate: boolean; now: number; onStep?: OnStep | undefined },
): { migrated: string[]; backup: string | undefined } {
  const files = dataFiles(dataDir)
  requirePrivate(files.database)
  let connection: SqliteConnection | undefined
  try {
    requireDatabase(dataDir)
    requireOtpdDatabase(dataDir)
    connection = connect(files.database, busyTimeoutMs)
    return bringUpToDate(connection, dataDir, options)
  } catch (error) {
    throw toStartError(error, dataDir)
  } finally {
    connection?.close()
  }
}

/**
 * Checks the file before `connect` opens it for writing, because that changes it (journal mode).
 *
 * @throws MigrationError the database belongs to another program, or has no tables
 * @throws StartRefused a part of its last page is missing
 */
function requireOtpdDatabase(dataDir: string): void {
  const path = dataFiles(dataDir).database
  const connection = new SqliteConnection(path)
  try {
    connection.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    // SQLite takes zeros for what is missing. After a power cut, the log has the whole page.
    if (!endsWithWholePage(connection, path) && !hasWal(dataDir)) throw damaged(path)
    if (readAppliedMigrations(connection).length > 0) return
    throw new MigrationError(
      `${path} has no tables`,
      'Restore a backup: otpd restore latest. To begin with an empty database, move it away first: otpd serve --new',
    )
  } finally {
    connection.close()
  }
}

function endsWithWholePage(connection: SqliteConnection, path: string): boolean {
  const pageBytes = connection.query<{ page_size: number }, []>('PRAGMA page_size').get()?.page_size ?? 1
  return statSync(path).size % pageBytes === 0
}

/** As `prepareDatabase`, on a connection. A database without tables is new. */
export function bringUpToDate(
  connection: SqliteConnection,
  dataDir: string,
  options: { masterKey: Uint8Array; migrate: boolean; now: number; onStep?: OnStep | undefined },
) {
  const applied = readAppliedMigrations(connection)
  if (applied.length > 0) requireNotMoved(connection)
  const pending = pendingMigrations(sqliteMigrations, applied)
  requireOwnSchema(connection)
  requireMasterKey(connection, options.masterKey)
  let backup: string | undefined
  const isNew = applied.length === 0
  if (pending.length > 0) {
    if (!isNew && !options.migrate) {
      throw new StartRefused('the database is older than this otpd', 'Migrate it: otpd migrate up')
    }
    // The tables of a new database are made at once.
    const onStep = isNew || !options.onStep ? undefined : withShares(options.onStep, pending)
    if (!isNew) backup = copyBeforeMigration(connection, dataDir, { ...options, pending, onStep })
    const beforeCommit = () => {
      createDataKeys(connection, options.masterKey, options.now)
      if (pending.some(({ name }) => name.endsWith('_audit_chains'))) {
        const { dataKeys } = requireDataKeys(connection, [options.masterKey])
        startAuditChains(connection, createKeyring(dataKeys).keys, options.now)
      }
    }
    migrateSqlite(connection, options.now, sqliteMigrations, beforeCommit, onStep)
  }
  endUpgrade(dataDir)
  // A new database is not reported as migrated.
  const migrated = isNew ? [] : pending.map(({ name }) => name)
  return { migrated, backup }
}

/** Converts a known error of the database or its directory to a StartRefused; returns other errors unchanged. */
export function toStartError(error: unknown, dataDir: string): unknown {
  if (error instanceof StartRefused) return error
  if (error instanceof MigrationError || error instanceof OperationRefused) {
    return new StartRefused(error.message, error.remedy, error)
  }
  const { database } = dataFiles(dataDir)
  // A rejected write is wrapped in UNAVAILABLE for callers; its cause has the code.
  const cause = error instanceof ServiceError ? error.cause : error
  const code = driverCode(cause) ?? systemErrorCode(cause)
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) return damaged(database, error)
  if (code.startsWith('SQLITE_BUSY')) {
    return new StartRefused(`another process holds ${database}`, 'Wait until it finishes, or stop it.', error)
  }
  if (code === 'SQLITE_FULL' || code === 'ENOSPC') {
    return new StartRefused(`the disk of ${dataDir} is full`, 'Make room on it, then start again.', error)
  }
  if (/^SQLITE_(CANTOPEN|READONLY|IOERR)/.test(code)) {
    return new StartRefused(`${database} cannot be written to (${explainCode(code)})`, checkAccess, error)
  }
  // The error concerns another file in the directory.
  if (/^E[A-Z]+$/.test(code)) {
    return new StartRefused(`${dataDir} cannot be written to (${explainCode(code)})`, checkAccess, error)
  }
  return error
}

const damaged = (path: string, cause?: unknown) =>
  new StartRefused(
    `${path} is damaged or not a database of otpd`,
    'Restore a backup: otpd restore latest, or another one of otpd backup list.',
    cause,
  )

const cleanStop = 'clean_stop'

/** Records that the server stops. Call it as its last write. */
export async function markCleanStop({ tables, write }: Database): Promise<void> {
  await write((tx) => onTable(tx, tables.meta).insertMissing({ name: cleanStop, value: 'yes' }))
}

/** Tells whether the last server recorded its stop, and removes the record. */
export async function takeCleanStop({ tables: { meta }, write }: Database): Promise<boolean> {
  return (await write((tx) => onTable(tx, meta).take(eq(meta.name, cleanStop)))).length > 0
}

/**
 * Tells whether a database has a write-ahead log with content: the last process that closes the database deletes it. After
 * a clean stop of the server that may be another one, such as a program that copies it.
 */
export function hasWal(dataDir: string): boolean {
  const wal = `${dataFiles(dataDir).database}-wal`
  return existsSync(wal) && statSync(wal).size > 0
}
