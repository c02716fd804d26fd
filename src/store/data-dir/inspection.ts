import type { Database as SqliteConnection } from 'bun:sqlite'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { OnStep } from '../../shared/progress.ts'
import { createKeyring, masterKeyCheck } from '../../domain/model/keys.ts'
import { verifyAuditTrail } from './audit-chains.ts'
import type { AuditVerification } from './audit-verification.ts'
import { describeMoved } from './moved.ts'
import { openReadonly, readDatabase } from './open-readonly.ts'
import { dataFiles, systemErrorCode, StartRefused } from './data-dir.ts'
import { listMasterKeyChecks, openDataKeys, requireDataKeys } from './data-keys.ts'
import { listKeptKeyPaths, readMasterKeyCandidates } from './master-key.ts'
import { requireOwnSchema } from './schema.ts'
import { driverCode } from '../engine/errors.ts'
import { isLocked } from './lock.ts'
import { describeMissing, hasDatabase, type MissingDatabase } from './missing-database.ts'
import { readUpgradeProgress, type UpgradeProgress } from './server-record.ts'
import { findMissingSpace, type MissingSpace } from './upgrade-copy.ts'
import { usedBytes } from './backup.ts'
import { inspectSeals, listUnsealedBackups, type SealInspection } from './seal-inspection.ts'
import { inspectSending, type SendingInspection } from './sending-inspection.ts'
import { sqliteMigrations } from '../engine/migration-files.ts'
import { MigrationError, pendingMigrations } from '../engine/migrations.ts'
import { readAppliedMigrations } from '../sqlite/migrate.ts'

/** State of a data directory as this user sees it. */
export type Inspection =
  | { state: 'missing' }
  /** This user has no access to it. */
  | { state: 'inaccessible'; ownerId: number; cause: string }
  | {
      state: 'accessible'
      /** POSIX user id. */
      ownerId: number
      /** The directory belongs to this process's user. */
      isOwn: boolean
      /** Other users can read the directory. */
      isExposed: boolean
      /** Names of files that other users can read. */
      exposed: string[]
      /** Names of files with an owner other than the directory's. */
      wrongOwner: string[]
      freeBytes: number
      /** A server is using it. */
      isHeld: boolean
      /** Null unless a server that starts is upgrading the database. */
      upgrade: UpgradeProgress | null
      /** `unchecked`: there is no database to compare it with, or other users can read the key. */
      masterKey: 'missing' | 'unusable' | 'mismatch' | 'matches' | 'unchecked'
      database: DatabaseInspection
      /** Null if it cannot be verified: without the right master key, or without an intact database of this version. */
      auditTrail: AuditVerification | null
      /** Names of backups in the directory that hold values in plain text. */
      unsealedBackups: string[]
    }

type DatabaseInspection =
  | ({ state: 'missing' } & MissingDatabase)
  | { state: 'unreadable'; cause: string }
  | (SendingInspection & {
      state: 'readable'
      /** Names of migrations that it lacks. */
      pending: string[]
      /** Free space that the upgrade lacks; null if there is enough. */
      missingSpace: MissingSpace | null
      /** Reason why this version cannot use its schema; null if it can. */
      schemaError: string | null
      /** Where its data was moved, and what to do; null if it was not. */
      moved: { message: string; remedy: string } | null
      /** Master keys that open it: two while one replaces the other. */
      masterKeys: number
      /** Damage that SQLite found in the file; null if intact. */
      damage: string | null
      /** Undefined if migrations are pending. */
      seals: SealInspection | undefined
    })

/** Depth of an inspection. */
export type InspectionOptions = {
  /** Compare every index with its table, which reads the whole file several times. */
  isDeep?: boolean
  /** Called as the work goes on. */
  onStep?: OnStep
}

/**
 * Inspects a data directory without changing it, even while a server is running. Never throws.
 *
 * @param configuredKey the master key if it is not stored in the directory; null if it is; undefined if unknown
 */
export function inspectDataDir(
  dataDir: string,
  configuredKey: Uint8Array | null | undefined,
  options: InspectionOptions = {},
): Inspection {
  if (!existsSync(dataDir)) return { state: 'missing' }
  const { uid: ownerId, mode } = statSync(dataDir)
  const paths = dataFiles(dataDir)
  try {
    const files = [...Object.values(paths), `${paths.database}-wal`, ...listKeptKeyPaths(dataDir)].flatMap(
      (path) => {
        const stats = statSync(path, { throwIfNoEntry: false })
        return stats ? [{ name: basename(path), path, uid: stats.uid, mode: stats.mode }] : []
      },
    )
    const secretFiles = files.filter(({ path }) => path !== paths.lock)
    const { bavail, bsize } = statfsSync(dataDir)
    const { database, keyChecks } = inspectDatabase(
      paths.database,
      () => listCandidates(dataDir, configuredKey),
      options,
    )
    const masterKey = checkMasterKey(dataDir, configuredKey, keyChecks)
    const isUsable =
      database.state === 'readable' && database.damage === null && database.schemaError === null
    const canVerify = masterKey === 'matches' && isUsable && database.pending.length === 0
    return {
      state: 'accessible',
      ownerId,
      isOwn: ownerId === process.getuid?.(),
      isExposed: isExposed(mode),
      exposed: secretFiles.filter((file) => isExposed(file.mode)).map(({ name }) => name),
      wrongOwner: files.filter(({ uid }) => uid !== ownerId).map(({ name }) => name),
      freeBytes: bavail * bsize,
      isHeld: isLocked(paths.lock),
      upgrade: readUpgradeProgress(dataDir),
      masterKey,
      database,
      auditTrail: canVerify
        ? readAuditTrail(paths.database, listCandidates(dataDir, configuredKey), options.onStep)
        : null,
      unsealedBackups: listUnsealedBackups(paths.backups),
    }
  } catch (error) {
    return { state: 'inaccessible', ownerId, cause: driverCode(error) ?? systemErrorCode(error) }
  }
}

const isExposed = (mode: number) => (mode & 0o077) !== 0

function checkMasterKey(
  dataDir: string,
  configured: Uint8Array | null | undefined,
  keyChecks: readonly string[],
) {
  const { masterKey: path } = dataFiles(dataDir)
  if (configured === undefined) return 'unchecked'
  if (configured === null && !existsSync(path)) return 'missing'
  if (configured === null && isExposed(statSync(path).mode)) return 'unchecked'
  try {
    const candidates = readMasterKeyCandidates(dataDir, configured)
    if (keyChecks.length === 0) return 'unchecked'
    return candidates.some((key) => keyChecks.includes(masterKeyCheck(key))) ? 'matches' : 'mismatch'
  } catch (error) {
    if (error instanceof StartRefused) return 'unusable'
    throw error
  }
}

/** Lists the master keys at hand; none if there is no key that may be read. */
function listCandidates(dataDir: string, configured: Uint8Array | null | undefined): readonly Uint8Array[] {
  if (configured === undefined) return []
  try {
    return readMasterKeyCandidates(dataDir, configured)
  } catch (error) {
    if (error instanceof StartRefused) return []
    throw error
  }
}

function inspectDatabase(
  path: string,
  listMasterKeys: () => readonly Uint8Array[],
  options: InspectionOptions,
): { database: DatabaseInspection; keyChecks: string[] } {
  const dataDir = dirname(path)
  if (!hasDatabase(dataDir))
    return { database: { state: 'missing', ...describeMissing(dataDir) }, keyChecks: [] }
  let connection: SqliteConnection | undefined
  try {
    connection = openReadonly(path)
    const damage = findDamage(connection, options)
    const schema = checkSchema(connection)
    const keyChecks = listMasterKeyChecks(connection)
    return {
      database: {
        state: 'readable',
        ...schema,
        missingSpace:
          schema.pending.length === 0
            ? null
            : findMissingSpace(dirname(path), usedBytes(connection), {
                pending: sqliteMigrations.filter(({ name }) => schema.pending.includes(name)),
              }),
        moved: schema.schemaError === null ? describeMoved(connection) : null,
        masterKeys: keyChecks.length,
        damage,
        ...inspectSending(connection),
        seals:
          schema.pending.length === 0 && schema.schemaError === null
            ? inspectSeals(connection, openDataKeys(connection, listMasterKeys())?.dataKeys)
            : undefined,
      },
      keyChecks,
    }
  } catch (error) {
    return {
      database: { state: 'unreadable', cause: driverCode(error) ?? systemErrorCode(error) },
      keyChecks: [],
    }
  } finally {
    connection?.close()
  }
}

/**
 * Verifies the audit trail without changing the file, even while a server is running.
 *
 * @param masterKeys the keys that may open the database
 * @throws MigrationError see pendingMigrations; StartRefused the database is older, or of another master key
 */
export function readAuditTrail(
  database: string,
  masterKeys: readonly Uint8Array[],
  onStep?: OnStep,
): AuditVerification {
  return readDatabase(database, (connection) => {
    if (pendingMigrations(sqliteMigrations, readAppliedMigrations(connection)).length > 0)
      throw new StartRefused('the database is older than this otpd', 'Migrate it: otpd migrate up')
    const { dataKeys } = requireDataKeys(connection, masterKeys)
    return verifyAuditTrail(connection, createKeyring(dataKeys).keys, onStep)
  })
}

/** Checks the pages of the file; the deep check also compares every index with its table. */
function findDamage(connection: SqliteConnection, { isDeep = false, onStep }: InspectionOptions) {
  const check = isDeep ? 'integrity_check' : 'quick_check'
  onStep?.({ step: isDeep ? 'checking tables and indexes' : 'checking the database' })
  const [row] = connection.query<never, []>(`PRAGMA ${check}(1)`).values()
  return row?.[0] === 'ok' ? null : `${check} found damage`
}

function checkSchema(connection: SqliteConnection): { pending: string[]; schemaError: string | null } {
  try {
    const pending = pendingMigrations(sqliteMigrations, readAppliedMigrations(connection))
    requireOwnSchema(connection)
    return { pending: pending.map(({ name }) => name), schemaError: null }
  } catch (error) {
    if (error instanceof MigrationError) return { pending: [], schemaError: error.message }
    throw error
  }
}

export type MigrationStatus = { applied: string[]; pending: string[] }

/**
 * Lists the migrations that a database has and those that this version would apply. Reads only: it does not even
 * create a missing database.
 *
 * @throws MigrationError see pendingMigrations
 */
export function readMigrationStatus(database: string): MigrationStatus {
  const applied = existsSync(database) ? readDatabase(database, readAppliedMigrations) : []
  const pending = pendingMigrations(sqliteMigrations, applied)
  return { applied: applied.map(({ name }) => name), pending: pending.map(({ name }) => name) }
}
