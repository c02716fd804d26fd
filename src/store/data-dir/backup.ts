import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { Database as SqliteConnection } from 'bun:sqlite'
import type { OnStep } from '../../shared/progress.ts'
import { systemErrorCode, OperationRefused } from './data-dir.ts'
import { computeFileMac, writeMacFile } from './backup-mac.ts'
import { requireDatabase } from './missing-database.ts'
import { requireNotMoved } from './moved.ts'
import { driverCode } from '../engine/errors.ts'
import { explainCode } from '../../shared/error-cause.ts'

/** A finished backup, with the number of rows by noun. */
export type Backup = { file: string; bytes: number; sha256: string; rows: BackupRows }

export type BackupRows = { accounts: number; applications: number; otpRequests: number; logEntries: number }

/**
 * Writes a consistent copy of a database, which a server may be using: an integrity-checked SQLite file without a
 * write-ahead log, readable by its owner only. The copy is synced before it gets its final name, so a file with that
 * name is always complete, and at least as recent as the call. It is read from one snapshot and does not block the
 * server. Its HMAC is in `FILE.hmac` before that.
 *
 * @param file path of the backup; an existing file is never overwritten
 * @param masterKey authenticates the backup
 * @param onStep called as the work goes on
 * @throws OperationRefused FILE_EXISTS, NO_DATABASE, DATABASE_DAMAGED, FILE_NOT_WRITABLE; StartRefused the data was moved to
 *   PostgreSQL
 */
export async function backUpDatabase(
  database: string,
  file: string,
  masterKey: Uint8Array,
  onStep: OnStep = () => {},
): Promise<Backup> {
  requireDatabase(dirname(database))
  if (existsSync(file)) throw fileExistsError(file)
  const draft = draftFile(file)
  try {
    const copy = await copyForBackup(database, draft, onStep)
    renameWithoutReplacing(draft, file, computeFileMac(draft, masterKey, onStep))
    return { file, ...copy }
  } catch (error) {
    throw toOperationError(error, database, file)
  } finally {
    // Without `force`, which fails for a name that is too long, and would hide the first error.
    if (existsSync(draft)) rmSync(draft)
  }
}

/** Path of the draft of a backup, in the same folder. */
export const draftFile = (file: string) => `${file}.${randomUUID()}.part`

/**
 * Writes the copy that a backup is made of, and counts it. See `backUpDatabase`.
 *
 * @throws OperationRefused NO_DATABASE, DATABASE_DAMAGED; StartRefused the data was moved to PostgreSQL; errors of SQLite and
 *   the file system pass unchanged
 */
export async function copyForBackup(
  database: string,
  file: string,
  onStep: OnStep = () => {},
  options: { isTemporary?: boolean } = {},
): Promise<Omit<Backup, 'file'>> {
  requireDatabase(dirname(database))
  const newestSeq = withReadonlyConnection(database, (connection) => {
    requireNotMoved(connection)
    return readNewestEventSeq(connection)
  })
  copyDatabase(database, file, onStep, options)
  const rows = withReadonlyConnection(file, (connection) => {
    if (readNewestEventSeq(connection) < newestSeq) throw damagedDatabaseError(file)
    return countRows(connection)
  })
  return { bytes: statSync(file).size, sha256: await hashFile(file, onStep), rows }
}

/** Checks a backup as it is when it is made, and counts its rows. @throws OperationRefused BACKUP_INVALID */
export function checkAndCount(file: string, name: string, onStep: OnStep = () => {}): BackupRows {
  onStep({ step: 'checking the backup' })
  try {
    return withReadonlyConnection(file, (connection) => {
      requireIntegrity(connection, file)
      return countRows(connection)
    })
  } catch (error) {
    const isDamaged = error instanceof OperationRefused || driverCode(error)?.startsWith('SQLITE_')
    if (!isDamaged) throw error
    throw new OperationRefused(
      'BACKUP_INVALID',
      `${name} is damaged or not a backup of otpd`,
      'Choose another backup: otpd backup list',
      error,
    )
  }
}

/**
 * Copies the committed data of `from` into the new file `to`, private to its owner and synced. Checks the integrity
 * of the original first and of the copy afterwards.
 *
 * @param options.isTemporary does not sync the copy, for which the server's own syncs would have to wait
 * @throws OperationRefused DATABASE_DAMAGED; errors of SQLite and the file system pass unchanged
 */
export function copyDatabase(
  from: string,
  to: string,
  onStep: OnStep = () => {},
  { isTemporary = false }: { isTemporary?: boolean } = {},
): void {
  closeSync(openSync(to, 'wx', 0o600))
  // The connection cannot be query_only: VACUUM INTO writes, though not to this file.
  withReadonlyConnection(from, (connection) => {
    const total = usedBytes(connection)
    onStep({ step: 'checking the database', total, unit: 'bytes' })
    requireIntegrity(connection, from)
    onStep({ step: 'copying', file: to, total, unit: 'bytes' })
    try {
      connection.run('VACUUM INTO ?', [to])
    } catch (error) {
      // Left on a full disk.
      rmSync(`${to}-journal`, { force: true })
      throw error
    }
  })
  onStep({ step: 'checking the copy' })
  withReadonlyConnection(to, (connection) => requireIntegrity(connection, to))
  if (!isTemporary) fsyncPath(to)
}

/** Runs `work` on a read-only connection, and closes it. */
export function withReadonlyConnection<T>(path: string, work: (connection: SqliteConnection) => T): T {
  const connection = new SqliteConnection(path, { readonly: true })
  try {
    connection.run('PRAGMA busy_timeout = 5000')
    connection.run('PRAGMA trusted_schema = OFF')
    connection.run('PRAGMA cell_size_check = ON')
    return work(connection)
  } finally {
    connection.close()
  }
}

/** Syncs a file, or the names in a directory, to disk. */
export function fsyncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function requireIntegrity(connection: SqliteConnection, path: string): void {
  if (isCut(connection, path)) throw damagedDatabaseError(path)
  const rows = connection.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
  if (rows.length === 1 && rows[0]?.integrity_check === 'ok') return
  throw damagedDatabaseError(path)
}

/** Whether the file ends within a page, whose rest SQLite reads as zeros, and no write-ahead log may have that page. */
function isCut(connection: SqliteConnection, path: string): boolean {
  const bytes = queryNumber(connection, 'PRAGMA page_count') * queryNumber(connection, 'PRAGMA page_size')
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  return logBytes === 0 && statSync(path).size < bytes
}

/** Bytes of the pages that hold data, which is the size of a copy. */
export function usedBytes(connection: SqliteConnection): number {
  const pragma = (name: string) => queryNumber(connection, `PRAGMA ${name}`)
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
}

/** Reads the number of the last log entry, which every acknowledged change of a code increases. */
const readNewestEventSeq = (connection: SqliteConnection): number =>
  queryNumber(connection, `select value from counters where name = 'event_seq'`)

/** Counts the rows of a database as a backup does; null if it is missing, or cannot be read. */
export function countDatabase(path: string): BackupRows | null {
  try {
    return withReadonlyConnection(path, countRows)
  } catch {
    return null
  }
}

const countRows = (connection: SqliteConnection): BackupRows => ({
  accounts: queryNumber(connection, 'select count(*) from developers'),
  applications: queryNumber(connection, 'select count(*) from applications'),
  otpRequests: queryNumber(connection, 'select count(*) from otp_requests'),
  logEntries: queryNumber(connection, 'select count(*) from events'),
})

function queryNumber(connection: SqliteConnection, query: string): number {
  const [row] = connection.query<never, []>(query).values()
  return Number(row?.[0] ?? 0)
}

/** Creates the name exclusively first, because a rename alone would replace an existing file. */
function renameWithoutReplacing(draft: string, file: string, mac: string): void {
  closeSync(openSync(file, 'wx', 0o600))
  try {
    writeMacFile(file, mac)
    renameSync(draft, file)
  } catch (error) {
    // The next backup could not have the name of an empty one.
    rmSync(file)
    throw error
  }
  fsyncPath(dirname(file))
}

async function hashFile(path: string, onStep: OnStep): Promise<string> {
  const hash = createHash('sha256')
  const total = statSync(path).size
  let done = 0
  for await (const chunk of createReadStream(path, { highWaterMark: hashChunkBytes })) {
    hash.update(chunk)
    onStep({ step: 'hashing', done: (done += chunk.length), total, unit: 'bytes' })
  }
  return hash.digest('hex')
}

const hashChunkBytes = 4 << 20

/** Converts an error of SQLite or the file system to what an operator can do about it. */
export function toOperationError(error: unknown, database: string, file: string): unknown {
  if (error instanceof OperationRefused) return error
  const code = driverCode(error) ?? systemErrorCode(error)
  if (code === 'EEXIST') return fileExistsError(file)
  if (/^SQLITE_(NOTADB|CORRUPT|ERROR$)/.test(code)) return damagedDatabaseError(database, error)
  if (/^(E[A-Z]+|SQLITE_(CANTOPEN|READONLY|FULL|IOERR)\w*)$/.test(code)) {
    return new OperationRefused(
      'FILE_NOT_WRITABLE',
      `${file} cannot be written (${explainCode(code)})`,
      'Check that its directory exists, may be written to and has space for the whole database.',
      error,
    )
  }
  return error
}

const fileExistsError = (file: string) =>
  new OperationRefused('FILE_EXISTS', `${file} already exists and is not overwritten`, 'Choose another name.')

const damagedDatabaseError = (path: string, cause?: unknown) =>
  new OperationRefused(
    'DATABASE_DAMAGED',
    `${path} is damaged or not a database`,
    'Restore a backup: otpd restore latest',
    cause,
  )
