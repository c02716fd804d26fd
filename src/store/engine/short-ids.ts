import type { Database as SqliteConnection } from 'bun:sqlite'
import { and, eq, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Database } from './database.ts'

/** How many are remembered. */
const cachedIdsMax = 100_000

/** What a number that stands for no id is written as: no row has it, and no table takes it. */
const unknownNumber = 0

export type ShortIds = {
  /** 0 for an id that nothing has. */
  toNumber(id: string): number
  toId(number: number): string
}

/**
 * Developers, projects and applications stand as numbers in the rows and indexes of every request and log entry, which
 * are half as large so. A number is given with the row that it names, by a trigger, and never to anything else: what is
 * committed is remembered.
 *
 * @param read asks what is committed
 * @param writer sees besides what its transaction has written, which may still be undone
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

/** Whose rows a list has: a developer's, all of them or those of one application, as columns of short ids have them. */
export const ownerShortId = (
  database: Database,
  { developerId, appId }: { developerId: string; appId?: string | undefined },
) => ({
  developerId: database.shortId(developerId),
  appId: appId === undefined ? undefined : database.shortId(appId),
})

export type OwnerShortId = ReturnType<typeof ownerShortId>

/**
 * Found by one of the two, as each has an index in the order of the list: the developer of an application's rows is
 * compared as no index has it.
 */
export const isOwnedBy = (
  table: { developerId: SQLiteColumn; appId: SQLiteColumn },
  { developerId, appId }: { developerId: SQL; appId: SQL | undefined },
): SQL | undefined =>
  appId === undefined
    ? eq(table.developerId, developerId)
    : and(eq(table.appId, appId), sql`nullif(${table.developerId}, null) = ${developerId}`)
