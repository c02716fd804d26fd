import type { Config, DatabaseConfig } from '../config/config.ts'
import { databaseClock } from '../domain/model/clock.ts'
import { openPostgres } from '../store/postgres/database.ts'
import { StartRefused } from '../store/data-dir/data-dir.ts'
import { toStartError } from '../store/postgres/connect.ts'
import { openSharedKeyring, type SharedKeyring } from '../store/postgres/keyring.ts'
import { listNodes, nodeGoneMs } from '../store/postgres/nodes.ts'
import { prepareSharedDatabase } from '../store/postgres/prepare.ts'
import { registerThisNode } from './node-registry.ts'
import { createOutageReporter, withoutOutages } from './outage-log.ts'
import { watchSchema } from './schema-watch.ts'
import type { Storage, StorageNeeds } from './storage.ts'

/** How long a start waits for a server that is away. */
const awayMaxMs = 30_000

const diskFullCode = '53100'

/**
 * Checks the PostgreSQL server, migrates the database if needed and opens it with its keys. Other nodes may do the same at
 * once.
 *
 * @throws StartRefused with the cause and a remedy; DatabaseUnreachable the server stayed away for 30 seconds
 */
export async function openSharedDatabase(
  config: Config,
  { url, connections, statements, isUnsafe }: DatabaseConfig,
  { log, version, clock: nodeClock, cleanups, onFault }: StorageNeeds,
): Promise<Storage> {
  const { masterKey } = config.secrets
  if (masterKey === null) throw new Error('a shared database needs a configured master key')
  const applicationName = `otpd/${config.node}`
  const { migrated, clockAheadMs, clockWarning, keepsOptions } = await prepareSharedDatabase({
    url,
    applicationName,
    statements,
    isUnsafe,
    migrate: config.migrate,
    waitMs: awayMaxMs,
    now: nodeClock.now,
    onWaiting: (cause) => log.warn('the database is unavailable; trying again for 30 seconds', { cause }),
  })
  if (migrated.length > 0) log.info('database migrated', { migrations: migrated })
  if (clockWarning !== undefined) log.warn(clockWarning)
  if (isUnsafe)
    log.warn(
      'OTPD_DATABASE_UNSAFE is set: the server may lose acknowledged writes; never use it in production',
    )

  const clock = databaseClock(() => performance.now(), nodeClock.now() + clockAheadMs)
  const disk = { isFull: false }
  const outages = createOutageReporter(log, nodeClock)
  try {
    const database = openPostgres(url, {
      connections,
      statements,
      keepsOptions,
      applicationName,
      onUnavailable(code, denied) {
        disk.isFull ||= code === diskFullCode
        outages.onFailure(denied === undefined ? code : `${code}, permission denied for ${denied}`)
      },
    })
    cleanups.push(database.close)
    const { keyring, isNew } = await openSharedKeyring(database, masterKey, {
      now: clock.now(),
      onReplaced: () => log.info('the keys were replaced, and were read again'),
    })
    const writeRecord = await registerThisNode(config, {
      database,
      keys: keyring.keys,
      clock,
      version,
      log: withoutOutages(log),
      cleanups,
      onRenewed: outages.onSuccess,
    })
    watchSchema(database, { log: withoutOutages(log), cleanups, onFault })
    // Data keys are replaced only while there is no node, so none has changed them since.
    await keyring.refresh()
    return {
      database,
      keyring: { ...keyring, refresh: () => refreshOrFail(keyring, onFault) },
      clock,
      isNew,
      isShared: true,
      async listNodes() {
        const nodes = await listNodes(database)
        return nodes.map(({ name, seenAt }) => ({
          name,
          seenAt,
          isAlive: clock.now() - seenAt < nodeGoneMs,
        }))
      },
      dataDir: null,
      setupTokenFile: null,
      disk,
      watch: async () => {},
      writeRecord,
      toStartError,
    }
  } catch (error) {
    throw toStartError(error)
  }
}

/** A node without the master key must not go on: the others could not read what it writes. */
async function refreshOrFail(keyring: SharedKeyring, onFault: (error: unknown) => void) {
  try {
    await keyring.refresh()
  } catch (error) {
    if (error instanceof StartRefused) onFault(error)
    throw error
  }
}
