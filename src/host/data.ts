import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { backUpDatabase, type Backup } from '../store/files/backup.ts'
import { dataFiles, OperationRefused, prepareDataDir, StartRefused } from '../store/files/data-dir.ts'
import { readMasterKey } from '../store/files/master-key.ts'
import { acquireLock } from '../store/files/lock.ts'
import { readMigrationStatus, type MigrationStatus } from '../store/files/inspection.ts'
import { toStartError, prepareDatabase } from '../store/files/prepare-database.ts'
import { restoreDatabase, type RestoreResult } from '../store/files/restore.ts'

export type HostBackup = Backup
export type HostMigrationStatus = MigrationStatus
export type HostMigrationResult = { migrated: string[]; backup: string | null }
export type HostRestoreResult = RestoreResult

type Needs = { config: Config; warn?: (message: string) => void }

/** A server that is starting or shutting down may hold the lock briefly. */
const lockWaitMs = 1000

/**
 * Backs up the database to an integrity-checked copy, also while a server runs on it. The copy does not contain the
 * master key.
 *
 * @param file undefined: a new file in `backups` of the data directory
 * @throws OperationRefused as backUpDatabase does; StartRefused in development mode
 */
export async function backUp({ config }: Needs, file: string | undefined): Promise<HostBackup> {
  const files = dataFiles(requireDataDir(config))
  if (file !== undefined) return backUpDatabase(files.database, file)
  if (existsSync(files.database)) mkdirSync(files.backups, { recursive: true, mode: 0o700 })
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-')
  return backUpDatabase(files.database, join(files.backups, `otpd-${stamp}.db`))
}

/**
 * Replaces the database with a backup and keeps the replaced one in `backups`. Creates the data directory if it is
 * missing, but never a master key, since only the backup's own key can read it.
 *
 * @throws OperationRefused SERVER_RUNNING, MASTER_KEY_MISSING, or as restoreDatabase does; StartRefused
 */
export async function restore({ config, warn = () => {} }: Needs, file: string): Promise<HostRestoreResult> {
  const dataDir = requireDataDir(config)
  prepareDataDir(dataDir, warn)
  return withLock(dataDir, () => {
    const { masterKey: path } = dataFiles(dataDir)
    if (!config.secrets.masterKey && !existsSync(path)) {
      throw new OperationRefused(
        'MASTER_KEY_MISSING',
        `there is no master key at ${path}`,
        'Copy the master key of the backup there, or name it with OTPD_MASTER_KEY_FILE.',
      )
    }
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    return restoreDatabase(dataDir, file, { masterKey, now: Date.now() })
  })
}

/**
 * Lists the applied and the pending migrations.
 *
 * @throws StartRefused when the database is damaged, newer, or from another build
 */
export async function migrationStatus({ config }: Needs): Promise<HostMigrationStatus> {
  const dataDir = requireDataDir(config)
  try {
    return readMigrationStatus(dataFiles(dataDir).database)
  } catch (error) {
    throw toStartError(error, dataDir)
  }
}

/**
 * Backs up the database and applies the pending migrations, as the server does at start.
 *
 * @throws OperationRefused SERVER_RUNNING; StartRefused
 */
export async function migrateUp({ config, warn = () => {} }: Needs): Promise<HostMigrationResult> {
  const dataDir = requireDataDir(config)
  prepareDataDir(dataDir, warn)
  return withLock(dataDir, () => {
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    const result = prepareDatabase(dataDir, { masterKey, migrate: true, now: Date.now() })
    return { migrated: result.migrated, backup: result.backup ?? null }
  })
}

function requireDataDir({ dataDir }: Config): string {
  if (dataDir !== null) return dataDir
  throw new StartRefused('development mode has no data directory', 'Remove --dev, or set --data-dir.')
}

function withLock<T>(dataDir: string, work: () => T): T {
  const lock = acquireLock(dataFiles(dataDir).lock, lockWaitMs)
  if (!lock) {
    throw new OperationRefused(
      'SERVER_RUNNING',
      `a server is running on ${dataDir}`,
      'Stop it, run this command again, and start it afterwards.',
    )
  }
  try {
    return work()
  } finally {
    lock.release()
  }
}
