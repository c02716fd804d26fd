import { createVersionedCache } from '../domain/model/versioned-cache.ts'
import type { Connection } from './engine/connection.ts'
import { andThen, type Awaitable } from '../domain/model/awaitable.ts'

const entriesMax = 10_000

/**
 * Remembers what `read` returns for an id while the version of the configuration is the same. On PostgreSQL, where other nodes
 * write too, it reads every time.
 */
export function rememberConfiguration<T>(
  { database, executor }: Connection,
  read: (id: string) => Awaitable<T>,
): (id: string) => Awaitable<T> {
  const { sqlite } = database
  if (!sqlite) return read
  const cache = createVersionedCache<T>(entriesMax)
  const isReader = executor === database.read
  return (id) => {
    if (isReader) sqlite.refresh()
    const version = sqlite.configuration.current()
    const known = cache.get(id, version)
    if (known !== undefined) return known
    return andThen(read(id), (value) => {
      cache.set(id, version, value)
      return value
    })
  }
}
