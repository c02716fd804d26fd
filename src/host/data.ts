import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { backupFileName } from '../backups/names.ts'
import type { Config } from '../config/config.ts'
import type { OnStep } from '../shared/progress.ts'
import { restrictAccess } from '../shared/restrict-access.ts'
import { decodeMasterKeyFile } from '../config/secrets.ts'
import { backUpDatabase, withReadonlyConnection } from '../store/data-dir/backup.ts'
import { findBackup, verifySource, type HostVerifiedBackup } from './backup-source.ts'
import { backUpToTarget, listStoredBackups, type HostBackup, type HostBackupList } from './backups.ts'
import {
  dataFiles,
  isFolder,
  OperationRefused,
  prepareDataDir,
  requireReadable,
  StartRefused,
  systemErrorCode,
} from '../store/data-dir/data-dir.ts'
import { findMasterKey, noMasterKeyOpens } from '../store/data-dir/data-keys.ts'
import { listKeptKeys, readMasterKey, readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import { isLocked } from '../store/data-dir/lock.ts'
import { lockDataDir } from '../store/data-dir/server-record.ts'
import type { AuditVerification } from '../store/data-dir/audit-verification.ts'
import { readAuditTrail, readMigrationStatus, type MigrationStatus } from '../store/data-dir/inspection.ts'
import { findLogDamage, keepDamagedLog } from '../store/data-dir/damaged-log.ts'
import { requireDatabase } from '../store/data-dir/missing-database.ts'
import { toStartError, prepareDatabase } from '../store/data-dir/prepare-database.ts'
import { explainCode } from '../shared/error-cause.ts'

export type { HostBackupList } from './backups.ts'
type HostMigrationResult = { migrated: string[]; backup: string | null }
export type HostAuditVerification = Omit<AuditVerification, 'provedSince'> & { provedSince: string | null }

export type Needs = { config: Config; warn?: (message: string) => void; onStep?: OnStep }

/** A server that is starting or shutting down may hold the lock briefly. */
const lockWaitMs = 1000

/**
 * Backs up the database, also while a server runs on it: to an integrity-checked copy, or encrypted into a bucket. A
 * backup does not contain the master key.
 *
 * @param options.file a new file, or a folder for one; undefined: at the place of the configuration
 * @param options.prune then delete all but the newest that verified, at that place
 * @throws OperationRefused as backUpDatabase does, what the bucket says, NOT_ON_POSTGRES; StartRefused in development mode
 */
export async function backUp(
  needs: Needs,
  options: { file?: string | undefined; prune?: boolean } = {},
): Promise<HostBackup> {
  const { config, onStep } = needs
  const dataDir = requireSqlite(config, 'backup')
  const masterKey = readBackupKey(config)
  if (!isLocked(dataFiles(dataDir).lock) && findLogDamage(dataDir))
    needs.warn?.(
      'the write-ahead log is damaged: the newest changes are missing in this backup. See otpd doctor.',
    )
  const { file: place, prune = false } = options
  const file = place !== undefined && isFolder(place) ? join(place, backupFileName(Date.now())) : place
  if (file === undefined) return backUpToTarget(needs, { dataDir, masterKey, prune })
  const backup = await backUpDatabase(dataFiles(dataDir).database, file, masterKey, onStep)
  return { ...backup, pruned: [] }
}

/**
 * Lists the backups at the place of the configuration, or at another one. It changes nothing.
 *
 * @throws OperationRefused PLACE_INVALID, FILE_NOT_READABLE, what the bucket says, NOT_ON_POSTGRES
 */
export async function listBackups(
  needs: Needs,
  { from, cwd }: { from?: string | undefined; cwd: string },
): Promise<HostBackupList> {
  return listStoredBackups(needs, { dataDir: requireSqlite(needs.config, 'backup'), from, cwd })
}

/**
 * Reads a backup to its end, as a restore does, and counts it. The database stays as it is.
 *
 * @param text a name at the place of the configuration, a path or an address; `latest` for the newest
 * @throws OperationRefused as a restore does
 */
export async function verifyBackup(
  needs: Needs,
  text: string,
  { cwd }: { cwd: string },
): Promise<HostVerifiedBackup> {
  const { config, onStep = () => {} } = needs
  const dataDir = requireSqlite(config, 'backup')
  const masterKeys = [...readMasterKeyCandidates(dataDir, config.secrets.masterKey), ...listOldKeys(dataDir)]
  const source = await findBackup(needs, text, { dataDir, cwd, masterKeys })
  return verifySource(source, { dataDir, masterKeys, onStep })
}

/**
 * Lists the applied and the pending migrations.
 *
 * @throws OperationRefused NO_DATABASE; StartRefused when the database is damaged, newer, or from another build
 */
export async function migrationStatus({ config }: Needs): Promise<MigrationStatus> {
  if (config.database) {
    const { postgresMigrationStatus } = await import('./migrate-postgres.ts')
    return postgresMigrationStatus(config.database.url)
  }
  const dataDir = requireDataDir(config)
  requireDatabase(dataDir)
  try {
    return readMigrationStatus(dataFiles(dataDir).database)
  } catch (error) {
    throw toStartError(error, dataDir)
  }
}

/**
 * Applies the pending migrations, as the server does at start: on PostgreSQL while nodes serve, and on SQLite after a
 * backup.
 *
 * @param onDrain called with the name of a migration that waits until older nodes have drained
 * @throws OperationRefused NO_DATABASE, SERVER_RUNNING; StartRefused
 */
export async function migrateUp(
  { config, warn = () => {}, onStep }: Needs,
  onDrain: (name: string) => void = () => {},
): Promise<HostMigrationResult> {
  if (config.database) {
    const { migratePostgresUp } = await import('./migrate-postgres.ts')
    return { migrated: await migratePostgresUp(config.database.url, onDrain), backup: null }
  }
  const dataDir = requireDataDir(config)
  requireDatabase(dataDir)
  prepareDataDir(dataDir, warn)
  return withLock(dataDir, () => {
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    const result = prepareDatabase(dataDir, { masterKey, migrate: true, now: Date.now(), onStep })
    return { migrated: result.migrated, backup: result.backup ?? null }
  })
}

/**
 * Verifies the audit trail, also while a server runs. It changes and creates nothing.
 *
 * @throws OperationRefused NO_DATABASE; StartRefused the database is older, or the master key is not its own
 */
export async function verifyAudit({ config, onStep }: Needs): Promise<HostAuditVerification> {
  if (config.database) {
    const { verifySharedAudit } = await import('./shared.ts')
    return toHostVerification(await verifySharedAudit({ ...config, database: config.database }, onStep))
  }
  const dataDir = requireDataDir(config)
  requireDatabase(dataDir)
  const { database } = dataFiles(dataDir)
  try {
    const masterKeys = readMasterKeyCandidates(dataDir, config.secrets.masterKey)
    return toHostVerification(readAuditTrail(database, masterKeys, onStep))
  } catch (error) {
    throw toStartError(error, dataDir)
  }
}

const toHostVerification = ({ provedSince, ...verification }: AuditVerification): HostAuditVerification => ({
  ...verification,
  provedSince: provedSince === null ? null : new Date(provedSince).toISOString(),
})

/** Reads the replaced master keys, which open backups of their time. */
export const listOldKeys = (dataDir: string) => listKeptKeys(dataDir).map(({ key }) => key)

/** Reads the master key that authenticates backups. @throws OperationRefused NO_DATABASE; StartRefused there is none */
function readBackupKey(config: Config): Uint8Array {
  const dataDir = requireDataDir(config)
  requireDatabase(dataDir)
  const candidates = readMasterKeyCandidates(dataDir, config.secrets.masterKey)
  const { database } = dataFiles(dataDir)
  let masterKey: Uint8Array | undefined
  try {
    masterKey = withReadonlyConnection(database, (connection) => findMasterKey(connection, candidates))
  } catch (error) {
    throw toStartError(error, dataDir)
  }
  if (masterKey) return masterKey
  throw noMasterKeyOpens(candidates)
}

/**
 * Reads a master key from a file that the operator named.
 *
 * @throws OperationRefused KEY_FILE_INVALID
 */
export function readMasterKeyFile(path: string): Uint8Array {
  const refuse = (message: string, remedy: string) =>
    new OperationRefused('KEY_FILE_INVALID', message, remedy)
  let bytes: Uint8Array
  try {
    const stats = statSync(path)
    // An empty flag names the folder of the caller.
    if (stats.isDirectory()) throw refuse(`${path} is a folder, not a file`, 'Name the file of the key.')
    if ((stats.mode & 0o007) !== 0)
      throw refuse(`other users can read ${path}`, restrictAccess([path], { keepsGroup: true }))
    bytes = readFileSync(path)
  } catch (error) {
    if (error instanceof OperationRefused) throw error
    throw refuse(
      `${path} cannot be read (${explainCode(systemErrorCode(error))})`,
      'Correct the path or the permissions.',
    )
  }
  const decoded = decodeMasterKeyFile(bytes)
  if ('value' in decoded) return decoded.value
  throw refuse(`${path} does not hold a master key`, decoded.remedy)
}

/** Returns the data directory. @throws OperationRefused NOT_ON_POSTGRES; as requireDataDir does */
export function requireSqlite(config: Config, command: 'backup' | 'restore'): string {
  if (!config.database) return requireDataDir(config)
  throw new OperationRefused(
    'NOT_ON_POSTGRES',
    `the database is in PostgreSQL, which otpd does not ${command === 'backup' ? 'back up' : 'restore'}`,
    command === 'backup'
      ? "Use pg_dump or your provider's backups, and keep a copy of the master key elsewhere."
      : "Stop all nodes, and use pg_restore or your provider's point-in-time recovery; then start them with the master key of that time.",
  )
}

/** Returns the data directory. @throws StartRefused in development mode; OperationRefused it cannot be read */
export function requireDataDir({ dataDir }: Config): string {
  if (dataDir === null)
    throw new StartRefused('development mode has no data directory', 'Remove --dev, or set --data-dir.')
  requireReadable(dataDir)
  return dataDir
}

export const serverRunning = (dataDir: string) =>
  new OperationRefused(
    'SERVER_RUNNING',
    `a server is running on ${dataDir}`,
    'Stop it, run this command again, and start it afterwards.',
  )

/** Runs `work` while no server can start on the data directory. @throws OperationRefused SERVER_RUNNING */
export async function withLock<T>(dataDir: string, work: () => T | Promise<T>): Promise<T> {
  const lock = lockDataDir(dataDir, lockWaitMs)
  if (!lock) throw serverRunning(dataDir)
  try {
    keepDamagedLog(dataDir)
    return await work()
  } finally {
    lock.release()
  }
}
