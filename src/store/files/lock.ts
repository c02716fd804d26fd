import { Database as SqliteConnection } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { errorWord, StartRefused } from './data-dir.ts'
import { driverCode, isBusy } from '../engine/errors.ts'

export type Lock = { release(): void }

/**
 * Takes the lock of a data directory, which the system frees with the process, however it ends.
 *
 * @param waitMs how long another process may still hold it
 * @returns undefined where another process holds it
 * @throws StartRefused its file cannot be written
 */
export function acquireLock(path: string, waitMs = 0): Lock | undefined {
  let connection: SqliteConnection | undefined
  try {
    connection = new SqliteConnection(path, { create: true })
    connection.run(`PRAGMA busy_timeout = ${waitMs}`)
    connection.run('PRAGMA locking_mode = EXCLUSIVE')
    connection.run('BEGIN EXCLUSIVE')
  } catch (error) {
    connection?.close()
    if (isBusy(error)) return undefined
    throw new StartRefused(
      `${path} cannot be written to (${driverCode(error) ?? errorWord(error)})`,
      'Check the rights of the data directory and the free space of its disk.',
      error,
    )
  }
  return { release: () => connection.close() }
}

/** Whether a process holds the lock, without taking it or making its file. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const connection = new SqliteConnection(path, { readonly: true })
  try {
    connection.query('select 1 from sqlite_schema').get()
    return false
  } catch (error) {
    // Anything else is what a holder left that was killed.
    return isBusy(error)
  } finally {
    connection.close()
  }
}
