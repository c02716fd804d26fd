import type { Database as SqliteConnection } from 'bun:sqlite'
import { statSync } from 'node:fs'

/**
 * Remembers which files are the database of a connection and its write-ahead log. An open file outlives its name: SQLite
 * would go on with a database that was deleted, moved or replaced, and the next start would find none of its commits.
 *
 * @returns throws if another file now has one of the names, or none
 */
export function watchFiles(path: string, connection: SqliteConnection): () => void {
  // The first read creates the log. It remains the same file while a connection is open.
  connection.run('SELECT 1 FROM sqlite_schema')
  const files = [path, `${path}-wal`].map((name) => ({ name, opened: identify(name) }))
  return () => {
    for (const { name, opened } of files) {
      const found = identify(name)
      if (found?.ino !== opened?.ino || found?.dev !== opened?.dev)
        throw Object.assign(new Error('the file of the database was deleted, moved or replaced'), {
          code: 'SQLITE_READONLY_DBMOVED',
        })
    }
  }
}

const identify = (path: string) => statSync(path, { throwIfNoEntry: false })
