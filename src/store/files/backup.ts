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
import { errorWord, OperationRefused } from './data-dir.ts'
import { driverCode } from '../engine/errors.ts'

/** @param rows what is in it, by noun */
export type Backup = { file: string; bytes: number; sha256: string; rows: BackupRows }

export type BackupRows = { accounts: number; applications: number; otpRequests: number; logEntries: number }

/**
 * Writes a consistent copy of a database that a server may be writing to: a plain SQLite file without a write-ahead
 * log, readable by its owner only. It is checked, and it is on the disk before it bears its name, so that a file of
 * that name is always whole, and at least as new as the moment at which it was asked for. The server is not held up: it
 * writes on while the copy is read from one snapshot.
 *
 * @param file never replaced
 * @throws OperationRefused FILE_EXISTS, NO_DATABASE, DATABASE_DAMAGED, FILE_NOT_WRITABLE
 */
export async function backUpDatabase(database: string, file: string): Promise<Backup> {
  if (!existsSync(database)) {
    throw new OperationRefused(
      'NO_DATABASE',
      `there is no ${database}`,
      'Name the right directory with --data-dir.',
    )
  }
  if (existsSync(file)) throw fileExistsError(file)
  const draft = `${file}.${randomUUID()}.part`
  try {
    const newestSeq = withReadonlyConnection(database, readNewestEventSeq)
    copyDatabase(database, draft)
    const rows = withReadonlyConnection(draft, (connection) => {
      if (readNewestEventSeq(connection) < newestSeq) throw damagedDatabaseError(draft)
      return countRows(connection)
    })
    const backup = { file, bytes: statSync(draft).size, sha256: await hashFile(draft), rows }
    renameWithoutReplacing(draft, file)
    return backup
  } catch (error) {
    throw toOperationError(error, database, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Copies what is committed in `from` into the new file `to`, closed to others and synchronized, after a check of the
 * original and before one of the copy.
 *
 * @throws OperationRefused DATABASE_DAMAGED; errors of SQLite and the file system as they are
 */
export function copyDatabase(from: string, to: string): void {
  closeSync(openSync(to, 'wx', 0o600))
  // Its own connection may not be query_only: VACUUM INTO writes, though not to this file.
  withReadonlyConnection(from, (connection) => {
    requireIntegrity(connection, from)
    connection.run('VACUUM INTO ?', [to])
  })
  withReadonlyConnection(to, (connection) => requireIntegrity(connection, to))
  fsyncPath(to)
}

/** Works on a file that is only read. */
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

/** Until the disk has it, a file or the names in a directory. */
export function fsyncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function requireIntegrity(connection: SqliteConnection, path: string): void {
  const rows = connection.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
  if (rows.length === 1 && rows[0]?.integrity_check === 'ok') return
  throw damagedDatabaseError(path)
}

/** The number of the last log entry, which every acknowledged change of a code has moved on. */
const readNewestEventSeq = (connection: SqliteConnection): number =>
  queryNumber(connection, `select value from counters where name = 'event_seq'`)

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

/** A rename would replace a file; taking the name first does not. */
function renameWithoutReplacing(draft: string, file: string): void {
  closeSync(openSync(file, 'wx', 0o600))
  renameSync(draft, file)
  fsyncPath(dirname(file))
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

function toOperationError(error: unknown, database: string, file: string): unknown {
  if (error instanceof OperationRefused) return error
  const code = driverCode(error) ?? errorWord(error)
  if (code === 'EEXIST') return fileExistsError(file)
  if (/^SQLITE_(NOTADB|CORRUPT|ERROR$)/.test(code)) return damagedDatabaseError(database, error)
  if (/^(E[A-Z]+|SQLITE_(CANTOPEN|READONLY|FULL|IOERR)\w*)$/.test(code)) {
    return new OperationRefused(
      'FILE_NOT_WRITABLE',
      `${file} cannot be written (${code})`,
      'Check that its directory exists, may be written to and has space for the whole database.',
      error,
    )
  }
  return error
}

const fileExistsError = (file: string) =>
  new OperationRefused('FILE_EXISTS', `${file} exists, and is not replaced`, 'Choose another name.')

const damagedDatabaseError = (path: string, cause?: unknown) =>
  new OperationRefused('DATABASE_DAMAGED', `${path} is damaged or not a database`, 'Restore a backup.', cause)
