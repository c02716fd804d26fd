import { createEpochCache } from '../domain/model/epoch-cache.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { andThen, type Awaitable } from '../domain/model/awaitable.ts'

const entriesMax = 10_000

/**
 * Remembers what `read` returns for an id as long as the configuration's epoch lasts. On PostgreSQL, where other nodes
 * write too, it reads every time.
 */
export function rememberForEpoch<T>(
  database: Database,
  executor: QueryExecutor,
  read: (id: string) => Awaitable<T>,
): (id: string) => Awaitable<T> {
  const { sqlite } = database
  if (!sqlite) return read
  const cache = createEpochCache<T>(entriesMax)
  const isReader = executor === database.read
  return (id) => {
    if (isReader) sqlite.refresh()
    const epoch = sqlite.configuration.current()
    const known = cache.get(id, epoch)
    if (known !== undefined) return known
    return andThen(read(id), (value) => {
      cache.set(id, epoch, value)
      return value
    })
  }
}
