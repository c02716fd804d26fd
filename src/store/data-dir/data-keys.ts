import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  dataKeysOf010,
  masterKeyCheck,
  newDataKey,
  purposes,
  unwrapDataKey,
  wrapDataKey,
  type DataKey,
  type Purpose,
} from '../../domain/model/keys.ts'
import type { Random } from '../../domain/model/random.ts'
import { query, runOnSqlite, type SqlSteps } from '../engine/sql-steps.ts'
import { StartRefused } from './data-dir.ts'

/** Data keys of a database, opened with a master key that it has. */
export type OpenDataKeys = { masterKey: Uint8Array; dataKeys: DataKey[] }

const random: Random = (bytes) => crypto.getRandomValues(bytes)

const hasTable = (connection: SqliteConnection, name: string) =>
  connection.query(`select 1 from sqlite_schema where type = 'table' and name = ?`).get(name) !== null

/** Reads a fact about the installation; null if it is not there. */
export function* selectMeta(name: string): SqlSteps<string | null> {
  const [row] = yield* query<{ value: string }>('select value from meta where name = ?', name)
  return row?.value ?? null
}

export const readMeta = (connection: SqliteConnection, name: string): string | null =>
  runOnSqlite(connection, selectMeta(name))

/** Stores a fact about the installation. */
export const upsertMeta = (name: string, value: string) =>
  query(
    'insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
    name,
    value,
  )

/** Lists the check values of the master keys that wrap data keys. */
export const listMasterKeys = () =>
  query<{ check: string }>('select distinct master_key as "check" from data_keys')

/**
 * Lists the check values of the master keys that open a database: two while one replaces the other, one for a database of
 * 0.1.0, none for a new one.
 */
export function listMasterKeyChecks(connection: SqliteConnection): string[] {
  if (hasTable(connection, 'data_keys')) {
    const rows = runOnSqlite(connection, listMasterKeys())
    if (rows.length > 0) return rows.map(({ check }) => check)
  }
  const check = hasTable(connection, 'meta') ? readMeta(connection, 'master_key_check') : null
  return check === null ? [] : [check]
}

/** Finds the master key, among candidates, that opens a database. */
export function findMasterKey(
  connection: SqliteConnection,
  candidates: readonly Uint8Array[],
): Uint8Array | undefined {
  const checks = listMasterKeyChecks(connection)
  return candidates.find((candidate) => checks.includes(masterKeyCheck(candidate)))
}

/** Says why no data key was opened: the master keys at hand are others, or there are none. */
export const noMasterKeyOpens = (candidates: readonly Uint8Array[]) =>
  candidates.length > 0
    ? new StartRefused(
        'the database belongs to another master key',
        'Use the key that it was created with: master.key in the same directory, or OTPD_MASTER_KEY_FILE.',
      )
    : new StartRefused(
        'the master key of the database is missing',
        'Restore master.key in the data directory, or point OTPD_MASTER_KEY_FILE to it. Nothing else opens the database and its backups.',
      )

/** Opens the data keys; undefined if no candidate is a master key of the database. */
export function openDataKeys(
  connection: SqliteConnection,
  candidates: readonly Uint8Array[],
): OpenDataKeys | undefined {
  const masterKey = findMasterKey(connection, candidates)
  if (masterKey === undefined) return undefined
  return { masterKey, dataKeys: runOnSqlite(connection, readDataKeys(masterKey)) }
}

/**
 * Opens the data keys.
 *
 * @param refused makes the error if no candidate is a master key of the database
 * @throws StartRefused that error
 */
export function requireDataKeys(
  connection: SqliteConnection,
  candidates: readonly Uint8Array[],
  refused = noMasterKeyOpens,
): OpenDataKeys {
  const opened = openDataKeys(connection, candidates)
  if (opened) return opened
  throw refused(candidates)
}

/** Reads the data keys that a master key wraps. */
export function* readDataKeys(masterKey: Uint8Array): SqlSteps<DataKey[]> {
  const rows = yield* query<{ purpose: Purpose; version: number; wrapped: string }>(
    'select purpose, version, wrapped from data_keys where master_key = ? order by purpose, version',
    masterKeyCheck(masterKey),
  )
  return rows.map(({ wrapped, ...id }) => unwrapDataKey(masterKey, id, wrapped))
}

/**
 * Gives a database that has no data keys its first ones: random ones if it is new, and if 0.1.0 created it, ones that
 * keep valid what that version made. Runs inside the transaction of the migration.
 */
export function createDataKeys(connection: SqliteConnection, masterKey: Uint8Array, now: number): void {
  if (connection.query('select 1 from data_keys').get() !== null) return
  const isNew = readMeta(connection, 'master_key_check') === null
  const dataKeys = isNew
    ? purposes.map((purpose) => newDataKey(purpose, 1, random))
    : dataKeysOf010(masterKey, random)
  runOnSqlite(connection, storeDataKeys(masterKey, dataKeys, { keepOthers: false, now }))
}

/**
 * Stores data keys under a master key, which becomes the current one, inside the caller's transaction. Running servers
 * notice the new epoch before their next write.
 *
 * @param options.keepOthers keeps what other master keys wrap
 */
export function* storeDataKeys(
  masterKey: Uint8Array,
  dataKeys: readonly DataKey[],
  { keepOthers, now }: { keepOthers: boolean; now: number },
): SqlSteps<void> {
  const check = masterKeyCheck(masterKey)
  if (keepOthers) yield* query('delete from data_keys where master_key = ?', check)
  else yield* query('delete from data_keys')
  for (const dataKey of dataKeys) {
    yield* query(
      'insert into data_keys (master_key, purpose, version, wrapped, created_at) values (?, ?, ?, ?, ?)',
      check,
      dataKey.purpose,
      dataKey.version,
      wrapDataKey(masterKey, dataKey, random),
      now,
    )
  }
  yield* upsertMeta('master_key_check', check)
  yield* upsertMeta('key_epoch', crypto.randomUUID())
}

/** Makes a new version of each data key but that of client IDs, which are no secret and would change. */
export function nextDataKeys(dataKeys: readonly DataKey[]): DataKey[] {
  return purposes
    .filter((purpose) => purpose !== 'client-ids')
    .map((purpose) => {
      const newest = Math.max(
        ...dataKeys.filter((key) => key.purpose === purpose).map(({ version }) => version),
      )
      return newDataKey(purpose, newest + 1, random)
    })
}
