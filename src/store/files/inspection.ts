import { constants, Database as SqliteConnection } from 'bun:sqlite'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { masterKeyCheck } from '../../domain/model/keys.ts'
import { dataFiles, errorWord, readMasterKey, StartRefused } from './data-dir.ts'
import { driverCode } from '../engine/errors.ts'
import { isLocked } from './lock.ts'
import { appliedToSqlite, MigrationError, pendingMigrations, sqliteMigrations } from '../engine/migrate.ts'

/** What a data directory looks like to this user. */
export type Inspection =
  | { state: 'missing' }
  /** This user may not look into it. */
  | { state: 'closed'; ownerId: number; cause: string }
  | {
      state: 'open'
      /** Of POSIX, and whether it is this process's user. */
      ownerId: number
      isOwn: boolean
      /** Others can read the directory. */
      isExposed: boolean
      /** Files that others can read, by name. */
      exposed: string[]
      /** Files that belong to somebody else than the directory does, by name. */
      strayed: string[]
      freeBytes: number
      /** A server holds it at the moment. */
      isHeld: boolean
      /** `unchecked`: there is no database to compare it with, or others can read the key. */
      masterKey: 'missing' | 'unusable' | 'wrong' | 'fits' | 'unchecked'
      database: DatabaseInspection
    }

export type DatabaseInspection =
  | { state: 'missing' }
  | { state: 'unreadable'; cause: string }
  | {
      state: 'readable'
      /** Migrations that it lacks, by name. */
      pending: string[]
      /** Why this version cannot use its schema at all; null where it can. */
      misfit: string | null
      /** What SQLite finds wrong with the file; null for a whole one. */
      damage: string | null
      /** What the server that holds it gives no messages; a stopped one may have left some. */
      resting: { name: string; failure: string; restingUntil: number }[]
    }

/**
 * Looks at a data directory without changing a byte of it, also beside a running server. Never throws.
 *
 * @param configuredKey the master key where it does not stand in the directory; undefined where that is not known
 */
export function inspectDataDir(dataDir: string, configuredKey: Uint8Array | null | undefined): Inspection {
  if (!existsSync(dataDir)) return { state: 'missing' }
  const { uid: ownerId, mode } = statSync(dataDir)
  const paths = dataFiles(dataDir)
  try {
    const files = [...Object.values(paths), `${paths.database}-wal`].flatMap((path) => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found ? [{ name: basename(path), path, uid: found.uid, mode: found.mode }] : []
    })
    const secret = files.filter(({ path }) => path !== paths.lock)
    const { bavail, bsize } = statfsSync(dataDir)
    const { database, keyCheck } = inspectDatabase(paths.database)
    return {
      state: 'open',
      ownerId,
      isOwn: ownerId === process.getuid?.(),
      isExposed: isExposed(mode),
      exposed: secret.filter((file) => isExposed(file.mode)).map(({ name }) => name),
      strayed: files.filter(({ uid }) => uid !== ownerId).map(({ name }) => name),
      freeBytes: bavail * bsize,
      isHeld: isLocked(paths.lock),
      masterKey: judgeMasterKey(dataDir, configuredKey, keyCheck),
      database,
    }
  } catch (error) {
    return { state: 'closed', ownerId, cause: driverCode(error) ?? errorWord(error) }
  }
}

const isExposed = (mode: number) => (mode & 0o077) !== 0

function judgeMasterKey(dataDir: string, configured: Uint8Array | null | undefined, keyCheck: string | null) {
  const { masterKey: path } = dataFiles(dataDir)
  if (configured === undefined) return 'unchecked'
  if (configured === null && !existsSync(path)) return 'missing'
  if (configured === null && isExposed(statSync(path).mode)) return 'unchecked'
  try {
    const key = readMasterKey(dataDir, configured)
    if (keyCheck === null) return 'unchecked'
    return masterKeyCheck(key) === keyCheck ? 'fits' : 'wrong'
  } catch (error) {
    if (error instanceof StartRefused) return 'unusable'
    throw error
  }
}

function inspectDatabase(path: string): { database: DatabaseInspection; keyCheck: string | null } {
  if (!existsSync(path)) return { database: { state: 'missing' }, keyCheck: null }
  let connection: SqliteConnection | undefined
  try {
    connection = openToLook(path)
    const damage = findDamage(connection)
    const schema = judgeSchema(connection)
    const has = (table: string) =>
      connection?.query('select 1 from sqlite_schema where name = ?').get(table) !== null
    const keyCheck = has('meta')
      ? connection
          .query<{ value: string }, []>(`select value from meta where name = 'master_key_check'`)
          .get()
      : null
    const resting = has('resting_providers')
      ? connection
          .query<{ name: string; failure: string; restingUntil: number }, []>(
            'select name, failure, resting_until as restingUntil from resting_providers order by name',
          )
          .all()
      : []
    return { database: { state: 'readable', ...schema, damage, resting }, keyCheck: keyCheck?.value ?? null }
  } catch (error) {
    return {
      database: { state: 'unreadable', cause: driverCode(error) ?? errorWord(error) },
      keyCheck: null,
    }
  } finally {
    connection?.close()
  }
}

/**
 * Of a database at rest SQLite is told that nobody writes: even a connection that only reads would otherwise leave the
 * files of a write-ahead log behind, and root's would lock the server out.
 */
function openToLook(path: string): SqliteConnection {
  const isAtRest = !existsSync(`${path}-wal`)
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI
  const connection = isAtRest
    ? new SqliteConnection(`${pathToFileURL(path).href}?immutable=1`, flags)
    : new SqliteConnection(path, { readonly: true })
  connection.run('PRAGMA busy_timeout = 5000')
  return connection
}

function findDamage(connection: SqliteConnection): string | null {
  const row = connection.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()
  return row === null || row.quick_check === 'ok' ? null : 'quick_check found faults'
}

function judgeSchema(connection: SqliteConnection): { pending: string[]; misfit: string | null } {
  try {
    const pending = pendingMigrations(sqliteMigrations, appliedToSqlite(connection))
    return { pending: pending.map(({ name }) => name), misfit: null }
  } catch (error) {
    if (error instanceof MigrationError) return { pending: [], misfit: error.message }
    throw error
  }
}
