import { Database as SqliteConnection } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { checkAccess, systemErrorCode, StartRefused } from './data-dir.ts'
import { driverCode, isBusy } from '../engine/errors.ts'
import { explainCode } from '../../shared/error-cause.ts'
import { isPipeOrDevice } from '../../shared/regular-file.ts'

export type Lock = { release(): void }

/**
 * Acquires the lock of a data directory. The operating system releases it when the process ends, even by a crash.
 *
 * @param waitMs how long to wait for another process to release it
 * @returns undefined if another process holds it
 * @throws StartRefused the lock file cannot be written, or is no file
 */
export function acquireLock(path: string, waitMs = 0): Lock | undefined {
  if (isPipeOrDevice(path))
    throw new StartRefused(
      `${path} is a pipe or a device, not a file`,
      'Remove it: otpd makes the file itself.',
    )
  let connection: SqliteConnection | undefined
  try {
    // SQLite would create it with the permissions of any file. Nothing is kept in it.
    closeSync(openSync(path, 'a', 0o600))
    chmodSync(path, 0o600)
    connection = new SqliteConnection(path)
    connection.run(`PRAGMA busy_timeout = ${waitMs}`)
    connection.run('PRAGMA locking_mode = EXCLUSIVE')
    connection.run('BEGIN EXCLUSIVE')
  } catch (error) {
    connection?.close()
    if (isBusy(error)) return undefined
    throw cannotWrite(path, error)
  }
  return { release: () => connection.close() }
}

/** Makes the error for a file of the data directory that this process may not change. */
export function cannotWrite(path: string, error: unknown) {
  const code = driverCode(error) ?? systemErrorCode(error)
  const isFull = code === 'SQLITE_FULL' || code === 'ENOSPC'
  const remedy = isFull ? 'Make room on its disk, then run this again.' : checkAccess
  return new StartRefused(`${path} cannot be written to (${explainCode(code)})`, remedy, error)
}

/** Checks whether a process holds the lock, without taking it or creating its file. */
export function isLocked(path: string): boolean {
  if (!existsSync(path) || isPipeOrDevice(path)) return false
  const connection = new SqliteConnection(path, { readonly: true })
  try {
    connection.query('select 1 from sqlite_schema').get()
    return false
  } catch (error) {
    // Other errors come from files that a killed holder left behind.
    return isBusy(error)
  } finally {
    connection.close()
  }
}
