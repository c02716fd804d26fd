import { isFailing } from '../shared/failing-providers.ts'
import type { Config } from '../config/config.ts'
import type { OpenCircuit } from '../domain/model/delivery.ts'
import type { AuditEntry } from '../domain/model/audit.ts'
import type { AuditQuery } from '../domain/store/audit.ts'
import { callbackPath } from '../domain/otp/callback-tokens.ts'
import { parseTypedPhone } from '../domain/model/typed-phone.ts'
import { erasePhone, type ErasureResult } from '../domain/upkeep/erasure.ts'
import { readGuardStatus } from '../domain/guard/status.ts'
import { moveIdentities } from '../domain/upkeep/move-identities.ts'
import { unlock, type UnlockResult } from '../domain/upkeep/unlock.ts'
import { createHostAccounts } from './accounts.ts'
import { deleteTestAlerts, listAlerts, queueTestAlerts } from './alerts.ts'
import { requireDataDir } from './data.ts'
import type { SharedInspection } from './inspect-shared.ts'
import { hostClock, openStore } from './open.ts'
import type { SharedConfig } from './shared.ts'
import { dataFiles, prepareDataDir, StartRefused } from '../store/data-dir/data-dir.ts'
import {
  inspectDataDir,
  readMigrationStatus,
  type Inspection,
  type InspectionOptions,
} from '../store/data-dir/inspection.ts'
import { isLocked } from '../store/data-dir/lock.ts'
import { readMasterKey } from '../store/data-dir/master-key.ts'
import { keepDamagedLog } from '../store/data-dir/damaged-log.ts'
import { describeMissing, hasDatabase, requireDatabase } from '../store/data-dir/missing-database.ts'
import { lockDataDir } from '../store/data-dir/server-record.ts'
import { readDatabase } from '../store/data-dir/open-readonly.ts'
import { sqliteMigrations } from '../store/engine/migration-files.ts'
import { readAppliedMigrations } from '../store/sqlite/migrate.ts'
import { prepareDatabase, toStartError } from '../store/data-dir/prepare-database.ts'
import { connect } from '../store/sqlite/database.ts'

export type { HostAlerts } from './alerts.ts'
export type { HostDeveloper } from './accounts.ts'

export {
  backUp,
  listBackups,
  migrateUp,
  migrationStatus,
  verifyAudit,
  verifyBackup,
  type HostAuditVerification,
  type HostBackupList,
} from './data.ts'
export { inspectBackups, type BackupInspection } from './backups.ts'
export { requireReadable } from '../store/data-dir/data-dir.ts'
export { findRunningServer, type RunningServerView } from './running.ts'
export { certifiedUrl, inspectCertificate } from './certificate.ts'
export type { CertificateInspection as HostCertificate } from '../shared/certificate-checks.ts'
export { inspectKeptKeys, type KeptKeysInspection } from './kept-keys.ts'
export { giveToOwner } from '../store/data-dir/owner.ts'
export { findLogDamage, listDamagedLogs, type DamagedLog } from '../store/data-dir/damaged-log.ts'
export { moveDataDir, type HostMove, type HostMoveStep } from './move.ts'
export { findRestorable, restore, type HostFoundBackup } from './restore.ts'
export { rotateMasterKey, type HostRotation } from './rotation.ts'

export type { GuardStatus as HostGuardStatus } from '../domain/guard/status.ts'

export type { OpenCircuit } from '../domain/model/delivery.ts'

/** An open circuit with its time as text. */
type HostOpenCircuit = Omit<OpenCircuit, 'openUntil'> & { until: string }

export type HostInspection = Inspection

/** An audit entry of any developer or of the installation itself. */
type HostAuditEntry = Omit<AuditEntry, 'at'> & { at: string }

export type { InspectedNode, SharedInspection } from './inspect-shared.ts'

export type Host = Awaited<ReturnType<typeof openHost>>

/**
 * Opens the database for the host commands (`otpd admin …`), which work with or without a running server. Each call
 * is one short transaction, except an erasure, which uses many; they wait for the server's own transactions.
 *
 * @param options.access `read` changes nothing on disk, and every write then fails; `write` migrates an older database.
 *   Both need an existing database.
 * @param options.config provides the data directory, the identity provider and the plans
 * @param options.warn called with a warning about a directory that other users can read
 * @throws StartRefused when the directory cannot be used, or when its database has another version; OperationRefused
 *   (NO_DATABASE) there is nothing to read
 */
export async function openHost(options: {
  config: Config
  access: 'read' | 'write'
  warn?: (message: string) => void
}) {
  const { config, access, warn = () => {} } = options
  const { plans } = config
  const { store, keys, clock, random, newId, close } = config.database
    ? await openShared({ ...config, database: config.database }, access)
    : openDirectory(config, access, warn)
  if (access === 'write') await moveIdentities({ store, keys, random })
  const needs = { store, clock, newId, random, keys, plans, signUp: config.signup }

  return {
    ...createHostAccounts(config, needs),

    /** Null with a PostgreSQL database. */
    dataDir: config.dataDir,

    /**
     * Erases a person's data in every account, also while a server runs.
     *
     * @param country of a number without country code
     * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country
     */
    async erase(phone: string, country?: string): Promise<ErasureResult> {
      const result = await erasePhone(needs, parseTypedPhone(phone, country).phone)
      if (config.dataDir !== null) truncateWal(dataFiles(config.dataDir).database)
      return result
    },

    /**
     * Resets the limits of a phone number or an application.
     *
     * @param target a phone number, or the id of an application
     * @param country of a number without country code
     * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country; NOT_FOUND
     */
    unlock: (target: string, country?: string): Promise<UnlockResult> => unlock(needs, target, country),

    /** Lists the audit trail of all developers and of the installation, newest first. */
    async listAudit(query: AuditQuery): Promise<HostAuditEntry[]> {
      const entries = await store.read.audit.list(undefined, query)
      return entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    },

    /**
     * Reads the guard's rules and what they did in the last 24 hours.
     *
     * @param settings those of the running server, if they are not those of the configuration
     */
    guardStatus: (settings = config.guard) => readGuardStatus(store, settings, clock.now()),

    /** Lists the providers that fail, with the reason. */
    async listOpenCircuits(): Promise<HostOpenCircuit[]> {
      const circuits = await store.read.providerCircuits.list()
      return circuits
        .filter((circuit) => isFailing(circuit, clock.now()))
        .map(({ node, name, failure, openUntil }) => ({
          node,
          name,
          failure,
          until: new Date(openUntil).toISOString(),
        }))
    },

    /** Lists the alerts that fire, the oldest first, and the notices that wait to be sent. */
    listAlerts: () => listAlerts(store),

    /** Queues a test notice for each destination; the running server sends it. @returns when they were queued */
    queueTestAlerts: (destinations: readonly string[]) => queueTestAlerts(store, destinations, clock.now()),

    /** Deletes the test notices of a time that were not sent. */
    deleteTestAlerts: (destinations: readonly string[], at: string) =>
      deleteTestAlerts(store, destinations, at),

    /** URL for the delivery receipts of a provider below the public URL of the server; null without one. */
    callbackUrlFor: (provider: string, publicUrl: string | null): string | null =>
      publicUrl === null ? null : publicUrl + callbackPath(keys, provider),

    close,
  }
}

/**
 * Tells whether a data directory has an account. Read-only; never throws.
 *
 * @param subject who a login's token is for: the id of the account, or its subject at an external provider
 * @returns null if the database cannot be read, or was lost
 */
export function hasDeveloper(dataDir: string, subject: string): boolean | null {
  try {
    if (!hasDatabase(dataDir)) {
      const { isNew, isForeign } = describeMissing(dataDir)
      // The one of a server that lost its database may be the right one.
      return isNew || isForeign ? false : null
    }
    const query = 'select 1 from developers where id = ?1 or subject = ?1'
    return readDatabase(
      dataFiles(dataDir).database,
      (connection) => connection.query(query).get(subject) !== null,
    )
  } catch {
    return null
  }
}

/**
 * Inspects the data directory with the permissions of this user. Read-only; never throws.
 *
 * @param config null if the configuration has problems; the master key is then not inspected
 */
export const inspectHost = (
  dataDir: string,
  config: Config | null,
  options?: InspectionOptions,
): HostInspection => inspectDataDir(dataDir, config === null ? undefined : config.secrets.masterKey, options)

/** Opens a shared database. Its driver is loaded only then. */
async function openShared(config: SharedConfig, access: 'read' | 'write') {
  const { openSharedStore } = await import('./shared.ts')
  return openSharedStore(config, access)
}

/** Inspects a shared database without changing it, also while nodes serve it. Never throws an expected failure. */
export async function inspectShared(config: Config & SharedConfig): Promise<SharedInspection> {
  const inspector = await import('./inspect-shared.ts')
  return inspector.inspectShared(config)
}

function openDirectory(config: Config, access: 'read' | 'write', warn: (message: string) => void) {
  const dataDir = requireDataDir(config)
  if (access === 'read') requireCurrentDatabase(dataDir)
  else bringDatabaseUpToDate(dataDir, config, hostClock().now(), warn)
  return openStore(dataDir, config, access)
}

/**
 * Requires a database that this version can read as it is.
 *
 * @throws OperationRefused (NO_DATABASE); StartRefused the database is damaged, older or newer
 */
function requireCurrentDatabase(dataDir: string): void {
  requireDatabase(dataDir)
  try {
    if (readMigrationStatus(dataFiles(dataDir).database).pending.length === 0) return
  } catch (error) {
    throw toStartError(error, dataDir)
  }
  throw new StartRefused('the database is older than this otpd', 'Migrate it: otpd migrate up')
}

/** Migrates an older database, or waits until the server that holds the lock has created or migrated it. */
function bringDatabaseUpToDate(
  dataDir: string,
  config: Config,
  now: number,
  warn: (message: string) => void,
): void {
  if (!isLocked(dataFiles(dataDir).lock)) requireDatabase(dataDir)
  prepareDataDir(dataDir, warn)
  const lock = lockDataDir(dataDir)
  try {
    if (lock) keepDamagedLog(dataDir)
    else waitForMigrations(dataDir)
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    prepareDatabase(dataDir, { masterKey, migrate: config.migrate, now })
  } finally {
    lock?.release()
  }
}

const waitMaxMs = 5000
const pollMs = 20

/** Waits for a server at its first start, which holds the lock before its tables exist. */
function waitForMigrations(dataDir: string): void {
  for (let waitedMs = 0; waitedMs < waitMaxMs; waitedMs += pollMs) {
    const applied = hasDatabase(dataDir) ? listAppliedMigrations(dataFiles(dataDir).database) : []
    if (applied.length >= sqliteMigrations.length) return
    if (applied.length > 0) {
      throw new StartRefused(
        'an older otpd is running on this data directory',
        'Use that version, or stop it and start this one first.',
      )
    }
    Bun.sleepSync(pollMs)
  }
  throw new StartRefused('another otpd is still creating this data directory', 'Try again in a moment.')
}

/**
 * Truncates the write-ahead log, which keeps erased values until it is overwritten. A concurrent reader can prevent this;
 * the values then stay until the log is overwritten.
 */
function truncateWal(database: string): void {
  const connection = connect(database, waitMaxMs)
  try {
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    connection.close()
  }
}

function listAppliedMigrations(database: string) {
  const connection = connect(database, waitMaxMs)
  try {
    return readAppliedMigrations(connection)
  } finally {
    connection.close()
  }
}
