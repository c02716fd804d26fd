import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { backUpDatabase, type Backup } from '../store/files/backup.ts'
import {
  dataFiles,
  OperationRefused,
  prepareDataDir,
  readMasterKey,
  StartRefused,
} from '../store/files/data-dir.ts'
import { acquireLock } from '../store/files/lock.ts'
import { readMigrationStatus, type MigrationStatus } from '../store/files/inspection.ts'
import { toStartError, prepareDatabase } from '../store/files/prepare-database.ts'
import { restoreDatabase, type RestoreResult } from '../store/files/restore.ts'

export type HostBackup = Backup
export type HostMigrationStatus = MigrationStatus
export type HostMigrationResult = { migrated: string[]; backup: string | null }
export type HostRestoreResult = RestoreResult

type Needs = { config: Config; warn?: (message: string) => void }

/** A server that is just starting or ending may hold the lock for a moment. */
const lockWaitMs = 1000

/**
 * A checked copy of the database, whether a server runs on it or not. The master key is not in it.
 *
 * @param file undefined: a new name in `backups` of the data directory
 * @throws OperationRefused see backUpDatabase; StartRefused in development mode
 */
export async function backUp({ config }: Needs, file: string | undefined): Promise<HostBackup> {
  const files = dataFiles(requireDataDir(config))
  if (file !== undefined) return backUpDatabase(files.database, file)
  if (existsSync(files.database)) mkdirSync(files.backups, { recursive: true, mode: 0o700 })
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-')
  return backUpDatabase(files.database, join(files.backups, `otpd-${stamp}.db`))
}

/**
 * Puts a backup in the place of the database, which is kept. Makes the directory where there is none, but never a
 * master key: the backup was made with one.
 *
 * @throws OperationRefused SERVER_RUNNING, MASTER_KEY_MISSING, and see restoreDatabase; StartRefused
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
        'Put the one there that the backup was made with, or name it with OTPD_MASTER_KEY_FILE.',
      )
    }
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    return restoreDatabase(dataDir, file, { masterKey, now: Date.now() })
  })
}

/** What the database has, and what this version would apply. @throws StartRefused damaged, newer, or of another build */
export async function migrationStatus({ config }: Needs): Promise<HostMigrationStatus> {
  const dataDir = requireDataDir(config)
  try {
    return readMigrationStatus(dataFiles(dataDir).database)
  } catch (error) {
    throw toStartError(error, dataDir)
  }
}

/** Applies what is pending, after a backup, as a start of the server would. @throws OperationRefused SERVER_RUNNING; StartRefused */
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
  throw new StartRefused('there is no data directory in development mode', 'Leave out --dev, or name one.')
}

function withLock<T>(dataDir: string, work: () => T): T {
  const lock = acquireLock(dataFiles(dataDir).lock, lockWaitMs)
  if (!lock) {
    throw new OperationRefused(
      'SERVER_RUNNING',
      `a server runs on ${dataDir}`,
      'Stop it first, and start it afterwards.',
    )
  }
  try {
    return work()
  } finally {
    lock.release()
  }
}
