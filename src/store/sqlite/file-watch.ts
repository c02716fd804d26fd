import type { Database as SqliteConnection } from 'bun:sqlite'
import type { World } from '../../world/world.ts'

/**
 * Remembers which files are the database of a connection and its write-ahead log. An open file outlives its name: SQLite
 * would go on with a database that was deleted, moved or replaced, and the next start would find none of its commits.
 *
 * @returns throws if another file now has one of the names, or none
 */
export function watchFiles(
  path: string,
  connection: SqliteConnection,
  { fileId }: Pick<World, 'fileId'>,
): () => void {
  // The first read creates the log. It remains the same file while a connection is open.
  connection.run('SELECT 1 FROM sqlite_schema')
  const files = [path, `${path}-wal`].map((name) => ({ name, opened: fileId(name) }))
  const isInPlace = ({ name, opened }: (typeof files)[number]) => {
    try {
      return fileId(name) === opened
    } catch {
      // In a directory that was closed to this user, the files are still there, and the open ones can be written to.
      return true
    }
  }
  return () => {
    if (files.every(isInPlace)) return
    const error = new Error('the file of the database was deleted, moved or replaced')
    throw Object.assign(error, { code: 'SQLITE_READONLY_DBMOVED' })
  }
}
