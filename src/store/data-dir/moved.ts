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

/** Describes the move of a data directory to PostgreSQL, and what to do; null if its data is still there. */
export function describeMoved(connection: SqliteConnection): { message: string; remedy: string } | null {
  const moved = readMovedTo(connection)
  return (
    moved && {
      message: `the data of this directory was moved to PostgreSQL (${moved.target}) at ${new Date(moved.at).toISOString()}`,
      remedy:
        'Set OTPD_DATABASE_URL to that database. To serve this directory again, restore a backup from before the move.',
    }
  )
}

/** Requires that the data was not moved to PostgreSQL, where it has changed since. @throws StartRefused it was */
export function requireNotMoved(connection: SqliteConnection): void {
  const moved = describeMoved(connection)
  if (moved) throw new StartRefused(moved.message, moved.remedy)
}
