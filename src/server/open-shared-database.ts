import { Client } from 'pg'
import type { Config, DatabaseConfig } from '../config/config.ts'
import { MigrationError } from '../store/engine/migrate.ts'
import { migratePostgres } from '../store/engine/migrate-postgres.ts'
import { openPostgres } from '../store/engine/postgres.ts'
import { StartRefused } from '../store/files/data-dir.ts'
import { openSharedKeyring, type SharedKeyring } from '../store/postgres/keyring.ts'
import type { Storage, StorageNeeds } from './storage.ts'

/**
 * Migrates the PostgreSQL database if needed and opens it with its keys. Other nodes may do the same at once.
 *
 * @throws StartRefused with the cause and a remedy
 */
export async function openSharedDatabase(
  config: Pick<Config, 'migrate' | 'node' | 'secrets'>,
  { url, connections, statements }: DatabaseConfig,
  { log, clock, cleanups, onFault }: StorageNeeds,
): Promise<Storage> {
  const { masterKey } = config.secrets
  if (masterKey === null) throw new Error('a shared database needs a configured master key')
  try {
    const client = new Client({ connectionString: url, application_name: `otpd/${config.node}` })
    await client.connect()
    try {
      const { isNew, migrated } = await migratePostgres(client, { migrate: config.migrate })
      if (migrated.length > 0 && !isNew) log.info('database migrated', { migrations: migrated })
    } finally {
      await client.end()
    }
    const database = openPostgres(url, { connections, statements, applicationName: `otpd/${config.node}` })
    cleanups.push(database.close)
    const { keyring, isNew } = await openSharedKeyring(database, masterKey, {
      now: clock.now(),
      onReplaced: () => log.info('the keys were replaced, and were read again'),
    })
    return {
      database,
      keyring: { ...keyring, refresh: () => refreshOrFail(keyring, onFault) },
      clock,
      isNew,
      isShared: true,
      dataDir: null,
      setupTokenFile: null,
      watch: () => {},
      toStartError,
    }
  } catch (error) {
    throw toStartError(error)
  }
}

/** A node without the master key must not go on: what it writes, the others could not read. */
async function refreshOrFail(keyring: SharedKeyring, onFault: (error: unknown) => void) {
  try {
    await keyring.refresh()
  } catch (error) {
    if (error instanceof StartRefused) onFault(error)
    throw error
  }
}

function toStartError(error: unknown): unknown {
  if (error instanceof MigrationError) return new StartRefused(error.message, error.remedy, error)
  return error
}
