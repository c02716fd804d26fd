import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { createIdTokenSigner, idTokenSeconds } from './auth/built-in-issuer.ts'
import { createAccounts } from './auth/identity.ts'
import { createSigningKeys } from './auth/signing-keys.ts'
import type { Config } from './config.ts'
import { fromHost, recordAudit, type AuditEntry, type AuditQuery, type Deed } from './domain/audit.ts'
import { callbackPath } from './domain/callback-tokens.ts'
import {
  createDeveloperService,
  isForgotten,
  type Developer,
  type DeveloperChanges,
} from './domain/developers.ts'
import { cleanEmail } from './domain/email.ts'
import { invalidField, ServiceError } from './domain/errors.ts'
import { erasePhone, type Erased } from './domain/erasure.ts'
import { readGuardStatus } from './domain/guard-status.ts'
import { createIds } from './domain/ids.ts'
import { deriveKeys } from './domain/keys.ts'
import { systemClock, type Random } from './domain/ports.ts'
import type { Stores } from './domain/store.ts'
import { unlock, type Unlocked } from './domain/unlocking.ts'
import { dataFiles, OperationRefused, prepareDataDir, readMasterKey, StartRefused } from './store/data-dir.ts'
import { inspectDataDir, type Inspection } from './store/inspection.ts'
import { acquireLock } from './store/lock.ts'
import { appliedToSqlite, sqliteMigrations } from './store/migrate.ts'
import { prepareDatabase } from './store/open.ts'
import { connect, openSqlite } from './store/sqlite.ts'
import { createStore } from './store/store.ts'

/** A developer as the operator sees it: the API's profile, and what only the operator may know. */
export type HostDeveloper = {
  id: string
  email: string | null
  name: string | null
  company: string | null
  plan: string
  virtualPhoneNumber: string
  /**
   * `invited`: made by the operator for an external provider, and not yet logged in. `deleted`: nobody's any more, and
   * still the owner of what was made under it.
   */
  status: 'active' | 'disabled' | 'invited' | 'deleted'
  createdAt: string
  updatedAt: string
}

/** What stays of an account that was deleted. */
export type HostDeleted = { id: string; projects: number; applications: number }

export type HostToken = { idToken: string; expiresAt: string }

export type HostSetupToken = { token: string; expiresAt: string }

export { backUp, migrateUp, migrationStatus, restore } from './host-data.ts'

export type { GuardStatus as HostGuardStatus } from './domain/guard-status.ts'

export type HostRestingProvider = { name: string; failure: string; until: string }

export type HostInspection = Inspection

export type HostErased = Erased
export type HostUnlocked = Unlocked
/** Of the whole installation: whose trail it stands in comes with it. */
export type HostAuditEntry = Omit<AuditEntry, 'at'> & { at: string }

export type Host = Awaited<ReturnType<typeof openHost>>

/**
 * What the host commands do: they work on the data directory as the operator, whether a server runs on it or not. Each
 * call is one short transaction, which waits for the server's. Makes the directory, the key and the database where
 * there are none yet.
 *
 * @param options.config whose data directory, provider and plans
 * @param options.warn told of a directory that others can read
 * @throws StartRefused the directory cannot be used, or its database is not this version's while a server runs on it
 */
export async function openHost(options: { config: Config; warn?: (message: string) => void }) {
  const { config, warn = () => {} } = options
  const { dataDir, plans, oidc } = config
  if (dataDir === null) {
    throw new StartRefused('there is no data directory in development mode', 'Leave out --dev, or name one.')
  }
  const clock = systemClock(Date.now, () => performance.now(), uptime)
  const random: Random = (bytes) => crypto.getRandomValues(bytes)
  const masterKey = prepare(dataDir, config, clock.now(), warn)
  // A commit whose outcome is unknown is an error of the command, which ends with it.
  const database = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {}, secureDelete: true })
  const store = createStore(database)
  const keys = deriveKeys(masterKey)
  const newId = createIds(clock, random)
  const needs = { store, clock, newId, random, keys, plans, signUp: config.signup }
  const { accounts, setupTokens } = createAccounts(needs)
  const developers = createDeveloperService(needs)
  const signingKeys = createSigningKeys({ ...needs, key: keys.signingKey })

  const find = async (who: string): Promise<Developer> => {
    const byId = await store.read.developers.find(who)
    if (byId && !isForgotten(byId)) return byId
    const [found, another] = await store.read.developers.findByEmail(cleanEmail(who))
    if (!found) throw new ServiceError('NOT_FOUND', 'There is no such developer.')
    if (another)
      throw new ServiceError('CONFLICT', 'Several developers have that address. Name one by its id.')
    return found
  }
  const note = (tx: Stores, developerId: string, deed: Deed) => {
    const operator = { developerId, actorId: null, origin: fromHost }
    return recordAudit(tx, newId, operator, { targetId: developerId, ...deed }, clock.now())
  }
  const change = async (who: string, changes: DeveloperChanges, deed: Deed): Promise<HostDeveloper> => {
    const { id } = await find(who)
    const changed = await store.write(async (tx) => {
      await tx.developers.lock(id)
      if (changes.status === 'disabled') await tx.refreshTokens.deleteOfDeveloper(id)
      await note(tx, id, deed)
      return tx.developers.update(id, changes, clock.now())
    })
    if (!changed) throw new ServiceError('NOT_FOUND', 'There is no such developer.')
    return present(changed)
  }
  const requireBuiltIn = () => {
    if (!oidc) return
    throw new ServiceError(
      'CONFLICT',
      'Passwords and setup tokens are for the built-in provider, and another is configured.',
      {
        reason: 'EXTERNAL_PROVIDER',
      },
    )
  }

  return {
    /**
     * With the built-in provider an account with a password; with an external one an account that waits for whoever
     * proves that address there, and no password.
     *
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN, EXTERNAL_PROVIDER a password was given)
     */
    async createAccount(input: { email: string; name?: string; password?: string }): Promise<HostDeveloper> {
      const { email, name, password } = input
      if (password === undefined) {
        if (!oidc)
          throw invalidField('body', 'password', 'An account of the built-in provider needs a password.')
        return present(await developers.invite({ email, name }, fromHost))
      }
      requireBuiltIn()
      return present(await accounts.create({ email, name, password }))
    },

    /** All, oldest first. */
    listAccounts: async (): Promise<HostDeveloper[]> => (await store.read.developers.list()).map(present),

    /** One account more, for whoever holds the token within 30 minutes. @throws CONFLICT (EXTERNAL_PROVIDER) */
    async createSetupToken(): Promise<HostSetupToken> {
      requireBuiltIn()
      const { token, expiresAt } = await setupTokens.issue()
      return { token, expiresAt: new Date(expiresAt).toISOString() }
    },

    /** @throws INVALID_ARGUMENT no such plan; NOT_FOUND; CONFLICT the address is several developers' */
    async setPlan(who: string, plan: string): Promise<HostDeveloper> {
      if (!Object.hasOwn(plans, plan)) {
        throw invalidField('body', 'plan', `Expected one of ${Object.keys(plans).join(', ')}.`)
      }
      return change(who, { plan }, { action: 'account.plan_changed', detail: plan })
    },

    /** Holds from the next request on, and ends the sessions. @throws NOT_FOUND; CONFLICT */
    disable: (who: string) => change(who, { status: 'disabled' }, { action: 'account.disabled' }),

    /** @throws NOT_FOUND; CONFLICT */
    enable: (who: string) => change(who, { status: 'active' }, { action: 'account.enabled' }),

    /**
     * Removes the account: its password, its name and address, its sessions. Nobody gets in any more, from the next
     * request on. Projects, applications, which are refused like those of a disabled account, and records stay. Atomic.
     *
     * @throws NOT_FOUND; CONFLICT
     */
    async deleteAccount(who: string): Promise<HostDeleted> {
      const { id } = await find(who)
      return store.write(async (tx) => {
        await tx.developers.lock(id)
        await tx.accounts.delete(id)
        await tx.refreshTokens.deleteOfDeveloper(id)
        await tx.developers.forget(id, clock.now())
        await note(tx, id, { action: 'account.deleted' })
        return { id, projects: await tx.projects.count(id), applications: await tx.applications.count(id) }
      })
    },

    /** @throws NOT_FOUND; CONFLICT */
    findAccount: async (who: string): Promise<HostDeveloper> => present(await find(who)),

    /**
     * An ID token as a login would give, without a session: it cannot be renewed.
     *
     * @param server the address under which the server is reached, for where no public one is configured
     * @throws NOT_FOUND; CONFLICT (ACCOUNT_DISABLED, EXTERNAL_PROVIDER); OperationRefused SERVER_UNKNOWN
     */
    async issueToken(who: string, server?: string): Promise<HostToken> {
      requireBuiltIn()
      const issuerUrl = `${config.publicUrl ?? server ?? listenUrl(config)}/v1/auth`
      const developer = await find(who)
      if (developer.status !== 'active') {
        throw new ServiceError('CONFLICT', 'That account is disabled.', { reason: 'ACCOUNT_DISABLED' })
      }
      const sign = createIdTokenSigner({ issuerUrl: () => issuerUrl, signingKeys, clock })
      const idToken = await sign(developer)
      await store.write((tx) => note(tx, developer.id, { action: 'token.issued' }))
      return { idToken, expiresAt: new Date(clock.now() + idTokenSeconds * 1000).toISOString() }
    },

    /** Ends the account's sessions too. @throws INVALID_ARGUMENT; NOT_FOUND; CONFLICT (EXTERNAL_PROVIDER) */
    async resetPassword(email: string, password: string): Promise<HostDeveloper> {
      requireBuiltIn()
      return present(await accounts.resetPassword(email, password))
    },

    /** ID tokens are signed with a new key from now on; those of the old one live to their end. @returns its id */
    async rotateSigningKey(): Promise<{ kid: string }> {
      requireBuiltIn()
      return { kid: await signingKeys.rotate() }
    },

    /** Forgets a person everywhere, beside a running server too. @throws INVALID_PHONE_NUMBER */
    async erase(phone: string): Promise<HostErased> {
      const erased = await erasePhone(needs, phone)
      emptyLog(dataFiles(dataDir).database)
      return erased
    },

    /** @param target a phone number, or the id of an application @throws INVALID_PHONE_NUMBER; NOT_FOUND */
    unlock: (target: string): Promise<HostUnlocked> => unlock(needs, target),

    /** Everybody's trail and the installation's own, newest first. */
    async listAudit(query: AuditQuery): Promise<HostAuditEntry[]> {
      const entries = await store.read.audit.list(undefined, query)
      return entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    },

    /** What the guard did in the last 24 hours, beside what the configuration makes of its rules. */
    guardStatus: () => readGuardStatus(store, config.guard, clock.now()),

    /** Those that a server on this directory gives nothing at the moment, and why. */
    async listRestingProviders(): Promise<HostRestingProvider[]> {
      const noted = await store.read.restingProviders.list()
      return noted
        .filter(({ restingUntil }) => restingUntil > clock.now())
        .map(({ name, failure, restingUntil }) => ({
          name,
          failure,
          until: new Date(restingUntil).toISOString(),
        }))
    },

    /** Where receipts of a provider are to be sent; null where no public address is configured. */
    callbackUrlOf: (provider: string): string | null =>
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
function prepare(dataDir: string, config: Config, now: number, warn: (message: string) => void): Uint8Array {
  prepareDataDir(dataDir, warn)
  const lock = acquireLock(dataFiles(dataDir).lock)
  try {
    if (!lock) awaitMigrations(dataFiles(dataDir).database)
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    prepareDatabase(dataDir, { masterKey, migrate: config.migrate, now })
    return masterKey
  } finally {
    lock?.release()
  }
}

const patienceMs = 5000
const pollMs = 20

/** A server at its first start holds the lock before its tables stand; only it may make them. */
function awaitMigrations(database: string): void {
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += pollMs) {
    const applied = appliedMigrations(database)
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
function emptyLog(database: string): void {
  const connection = connect(database, patienceMs)
  try {
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    connection.close()
  }
}

function appliedMigrations(database: string) {
  if (!existsSync(database)) return []
  const connection = connect(database, patienceMs)
  try {
    return appliedToSqlite(connection)
  } finally {
    connection.close()
  }
}

const present = (developer: Developer): HostDeveloper => ({
  id: developer.id,
  email: developer.email,
  name: developer.name,
  company: developer.company,
  plan: developer.plan,
  virtualPhoneNumber: developer.virtualPhone,
  status: statusOf(developer),
  createdAt: new Date(developer.createdAt).toISOString(),
  updatedAt: new Date(developer.updatedAt).toISOString(),
})

function statusOf(developer: Developer): HostDeveloper['status'] {
  if (isForgotten(developer)) return 'deleted'
  return developer.issuer === null && developer.status === 'active' ? 'invited' : developer.status
}

/** As the server calls itself. */
function listenUrl({ listen: { host, port } }: Config): string {
  if (port !== 0) return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  throw new OperationRefused(
    'SERVER_UNKNOWN',
    'the server listens on whatever port is free',
    'Say where it is reached: --server URL, or OTPD_PUBLIC_URL.',
  )
}
