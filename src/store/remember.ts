import { createVersionedCache } from '../domain/model/versioned-cache.ts'
import type { Connection } from './engine/connection.ts'
import type { Preparable, SqliteParts } from './engine/database.ts'

const entriesMax = 10_000

/**
 * Prepares a query of configuration on SQLite, and remembers what it returns while the version of the configuration is the same.
 *
 * @param build has a placeholder `id`
 */
export function prepareRemembered<R, T>(
  { database, executor }: Connection,
  sqlite: SqliteParts,
  build: () => Preparable<R>,
  parse: (rows: R, id: string) => T,
): (id: string) => T {
  const select = sqlite.prepare(build)
  const cache = createVersionedCache<T>(entriesMax)
  const isReader = executor === database.read
  return (id) => {
    if (isReader) sqlite.refresh()
    const version = sqlite.configuration.current()
    const known = cache.get(id, version)
    if (known !== undefined) return known
    const value = parse(select({ id }), id)
    cache.set(id, version, value)
    return value
  }
}
