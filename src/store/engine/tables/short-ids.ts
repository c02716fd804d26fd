import type { Database as SqliteConnection } from 'bun:sqlite'

/** Size of the cache. */
const cachedIdsMax = 100_000

/** Number for an unknown id: no row has it, and check constraints reject it. */
const unknownNumber = 0

export type ShortIds = {
  /** Returns 0 for an unknown id. */
  toNumber(id: string): number
  toId(number: number): string
}

/**
 * Maps the ids of developers, projects and applications to surrogate integer keys, which halve the size of requests,
 * log entries and their indexes. A trigger assigns the number when the row is inserted, and it is never reassigned,
 * so committed pairs can be cached.
 *
 * @param read prepares a query that sees committed data only
 * @param writer also sees the writes of its open transaction, which may still be rolled back and are not cached
 */
export function createShortIds(
  read: (sql: string) => { values(value: string | number): unknown[][] },
  writer: SqliteConnection,
): ShortIds {
  const numberCache = new Map<string, number>()
  const idCache = new Map<number, string>()
  const selectNumberSql = 'select number from short_ids where id = ?'
  const selectIdSql = 'select id from short_ids where number = ?'
  const committed = { byId: read(selectNumberSql), byNumber: read(selectIdSql) }
  const uncommitted = { byId: writer.prepare(selectNumberSql), byNumber: writer.prepare(selectIdSql) }

  function remember(id: string, number: number) {
    if (numberCache.size >= cachedIdsMax) {
      numberCache.clear()
      idCache.clear()
    }
    numberCache.set(id, number)
    idCache.set(number, id)
  }

  return {
    toNumber(id) {
      const cached = numberCache.get(id)
      if (cached !== undefined) return cached
      const number = committed.byId.values(id)[0]?.[0]
      if (typeof number !== 'number') return Number(uncommitted.byId.values(id)[0]?.[0] ?? unknownNumber)
      remember(id, number)
      return number
    },

    toId(number) {
      const cached = idCache.get(number)
      if (cached !== undefined) return cached
      const id = committed.byNumber.values(number)[0]?.[0]
      if (typeof id !== 'string') return String(uncommitted.byNumber.values(number)[0]?.[0])
      remember(id, number)
      return id
    },
  }
}
