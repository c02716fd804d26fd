import type { Database as SqliteConnection } from 'bun:sqlite'
import { StartRefused } from './data-dir.ts'
import { readMeta } from './data-keys.ts'

/** Name in `meta` of where the data of a SQLite file went. */
export const movedToKey = 'moved_to'

/** The move of a data directory to PostgreSQL: its own id, where to (without user and password), and when. */
type MovedTo = { id: string; target: string; at: number }

/** Reads where the data of a SQLite file went; null if it is still there. */
export function readMovedTo(connection: SqliteConnection): MovedTo | null {
  const text = readMeta(connection, movedToKey)
  // Written by moveToPostgres.
  return text === null ? null : (JSON.parse(text) as MovedTo)
}

/** Requires that the data was not moved to PostgreSQL, where it changes since. @throws StartRefused it was */
export function requireNotMoved(connection: SqliteConnection): void {
  const moved = readMovedTo(connection)
  if (!moved) return
  throw new StartRefused(
    `the data of this directory was moved to PostgreSQL (${moved.target}) at ${new Date(moved.at).toISOString()}`,
    'Set OTPD_DATABASE_URL to that database. To serve this directory again, restore a backup from before the move.',
  )
}
