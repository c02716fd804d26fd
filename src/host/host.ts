import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import type { Config } from '../config/config.ts'
import type { AuditEntry, AuditQuery } from '../domain/accounts/audit.ts'
import { callbackPath } from '../domain/otp/callback-tokens.ts'
import { erasePhone, type ErasureResult } from '../domain/upkeep/erasure.ts'
import { readGuardStatus } from '../domain/guard/status.ts'
import { createIds } from '../domain/model/ids.ts'
import { deriveKeys } from '../domain/model/keys.ts'
import { systemClock, type Random } from '../domain/model/clock.ts'
import { unlock, type UnlockResult } from '../domain/upkeep/unlock.ts'
import { createHostAccounts } from './accounts.ts'
import { dataFiles, prepareDataDir, readMasterKey, StartRefused } from '../store/files/data-dir.ts'
import { inspectDataDir, type Inspection } from '../store/files/inspection.ts'
import { acquireLock } from '../store/files/lock.ts'
import { readAppliedMigrations, sqliteMigrations } from '../store/engine/migrate.ts'
import { prepareDatabase } from '../store/files/prepare-database.ts'
import { connect, openSqlite } from '../store/engine/sqlite.ts'
import { createStore } from '../store/store.ts'

export type { HostDeletedAccount, HostDeveloper, HostSetupToken, HostToken } from './accounts.ts'

export { backUp, migrateUp, migrationStatus, restore } from './data.ts'

export type { GuardStatus as HostGuardStatus } from '../domain/guard/status.ts'

export type HostOpenCircuit = { name: string; failure: string; until: string }

export type HostInspection = Inspection

export type HostErasureResult = ErasureResult
export type HostUnlockResult = UnlockResult
/** Of the whole installation: whose trail it stands in comes with it. */
export type HostAuditEntry = Omit<AuditEntry, 'at'> & { at: string }

export type Host = Awaited<ReturnType<typeof openHost>>

/**
 * What the host commands do: they work on the data directory as the operator, whether a server runs on it or not. Each
 * call is one short transaction, an erasure many, which wait for the server's. Makes the directory, the key and the database where
 * there are none yet.
 *
 * @param options.config whose data directory, provider and plans
 * @param options.warn told of a directory that others can read
 * @throws StartRefused the directory cannot be used, or its database is not this version's while a server runs on it
 */
export async function openHost(options: { config: Config; warn?: (message: string) => void }) {
  const { config, warn = () => {} } = options
  const { dataDir, plans } = config
  if (dataDir === null) {
    throw new StartRefused('there is no data directory in development mode', 'Leave out --dev, or name one.')
  }
  const clock = systemClock(Date.now, () => performance.now(), uptime)
  const random: Random = (bytes) => crypto.getRandomValues(bytes)
  const masterKey = ensureDatabase(dataDir, config, clock.now(), warn)
  // A commit whose outcome is unknown is an error of the command, which ends with it.
  const database = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {}, secureDelete: true })
  const store = createStore(database)
  const keys = deriveKeys(masterKey)
  const newId = createIds(clock, random)
  const needs = { store, clock, newId, random, keys, plans, signUp: config.signup }

  return {
    ...createHostAccounts(config, needs),

    /** Forgets a person everywhere, beside a running server too. @throws INVALID_PHONE_NUMBER */
    async erase(phone: string): Promise<HostErasureResult> {
      const result = await erasePhone(needs, phone)
      truncateWal(dataFiles(dataDir).database)
      return result
    },

    /** @param target a phone number, or the id of an application @throws INVALID_PHONE_NUMBER; NOT_FOUND */
    unlock: (target: string): Promise<HostUnlockResult> => unlock(needs, target),

    /** Everybody's trail and the installation's own, newest first. */
    async listAudit(query: AuditQuery): Promise<HostAuditEntry[]> {
      const entries = await store.read.audit.list(undefined, query)
      return entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    },

    /** What the guard did in the last 24 hours, beside what the configuration makes of its rules. */
    guardStatus: () => readGuardStatus(store, config.guard, clock.now()),

    /** Those that a server on this directory gives nothing at the moment, and why. */
    async listOpenCircuits(): Promise<HostOpenCircuit[]> {
      const circuits = await store.read.providerCircuits.list()
      return circuits
        .filter(({ openUntil }) => openUntil > clock.now())
        .map(({ name, failure, openUntil }) => ({
          name,
          failure,
          until: new Date(openUntil).toISOString(),
        }))
    },

    /** Where receipts of a provider are to be sent; null where no public address is configured. */
    callbackUrlFor: (provider: string): string | null =>
      config.publicUrl === null ? null : config.publicUrl + callbackPath(keys, provider),

    close: () => database.close(),
  }
}

/**
 * What the data directory looks like to this user; changes nothing, makes nothing, throws nothing.
 *
 * @param config null where the configuration has faults: the master key is then not looked at
 */
export const inspectHost = (dataDir: string, config: Config | null): HostInspection =>
  inspectDataDir(dataDir, config === null ? undefined : config.secrets.masterKey)

/** Makes what is missing, or waits until the server that holds the directory has made it. */
function ensureDatabase(
  dataDir: string,
  config: Config,
  now: number,
  warn: (message: string) => void,
): Uint8Array {
  prepareDataDir(dataDir, warn)
  const lock = acquireLock(dataFiles(dataDir).lock)
  try {
    if (!lock) waitForMigrations(dataFiles(dataDir).database)
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    prepareDatabase(dataDir, { masterKey, migrate: config.migrate, now })
    return masterKey
  } finally {
    lock?.release()
  }
}

const waitMaxMs = 5000
const pollMs = 20

/** A server at its first start holds the lock before its tables stand; only it may make them. */
function waitForMigrations(database: string): void {
  for (let waitedMs = 0; waitedMs < waitMaxMs; waitedMs += pollMs) {
    const applied = listAppliedMigrations(database)
    if (applied.length >= sqliteMigrations.length) return
    if (applied.length > 0) {
      throw new StartRefused(
        'an older otpd runs on this data directory',
        'Use the otpd that runs there, or stop it and start this one first.',
      )
    }
    Bun.sleepSync(pollMs)
  }
  throw new StartRefused('another otpd is still making this data directory', 'Try again in a moment.')
}

/** The write-ahead log holds what was replaced until it is written over. A reader that holds it up lets it stand. */
function truncateWal(database: string): void {
  const connection = connect(database, waitMaxMs)
  try {
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    connection.close()
  }
}

function listAppliedMigrations(database: string) {
  if (!existsSync(database)) return []
  const connection = connect(database, waitMaxMs)
  try {
    return readAppliedMigrations(connection)
  } finally {
    connection.close()
  }
}
