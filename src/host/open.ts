import { uptime } from 'node:os'
import { createIds } from '../domain/model/ids.ts'
import { systemClock, type Clock } from '../domain/model/clock.ts'
import type { Keyring } from '../domain/model/keys.ts'
import type { Random } from '../domain/model/random.ts'
import type { Config } from '../config/config.ts'
import { dataFiles } from '../store/data-dir/data-dir.ts'
import { openKeyring } from '../store/data-dir/live-keyring.ts'
import { openReadonly } from '../store/data-dir/open-readonly.ts'
import { readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import type { Database } from '../store/engine/database.ts'
import { openSqlite, wrapReadonlySqlite } from '../store/sqlite/database.ts'
import { createStore } from '../store/store.ts'

/** Clock of host commands, which agrees with the server's. */
export const hostClock = () => systemClock(Date.now, () => performance.now(), uptime)

export type OpenedStore = ReturnType<typeof buildStore<Keyring & { refresh(): void | Promise<void> }>>

/** Builds what host commands need on an open database. */
export function buildStore<K extends Keyring>(database: Database, keyring: K, clock: Clock) {
  const random: Random = (bytes) => crypto.getRandomValues(bytes)
  return {
    database,
    store: createStore(database, { keys: keyring.keys }),
    keyring,
    keys: keyring.keys,
    clock,
    random,
    newId: createIds(clock, random),
    close: () => database.close(),
  }
}

/**
 * Opens the store of a prepared data directory with its keys, also while a server uses it.
 *
 * @param access `read` changes nothing on disk, and every write then fails
 */
export function openStore(
  dataDir: string,
  config: Pick<Config, 'secrets'>,
  access: 'read' | 'write' = 'write',
) {
  const files = dataFiles(dataDir)
  const keyring = openKeyring(files.database, () =>
    readMasterKeyCandidates(dataDir, config.secrets.masterKey),
  )
  const database =
    access === 'read'
      ? wrapReadonlySqlite(openReadonly(files.database))
      : openSqlite(files.database, {
          // A commit whose outcome is unknown fails the command, which then exits.
          onDiskFault: () => {},
          onForeignCommit: keyring.refresh,
          secureDelete: true,
          listLimits: { recentMax: Infinity, sliceRows: 0 },
          phoneTailMax: Infinity,
        })
  return buildStore(database, keyring, hostClock())
}
