import type { Database as SqliteConnection } from 'bun:sqlite'

/** How many are remembered. */
const knownMax = 100_000

/** What a number that stands for no id is written as: no row has it, and no table takes it. */
const nobody = 0

export type ShortIds = {
  /** 0 for an id that nothing has. */
  numberOf(id: string): number
  idOf(number: number): string
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
  const numbers = new Map<string, number>()
  const ids = new Map<number, string>()
  const byId = 'select number from short_ids where id = ?'
  const byNumber = 'select id from short_ids where number = ?'
  const committed = { byId: read(byId), byNumber: read(byNumber) }
  const written = { byId: writer.prepare(byId), byNumber: writer.prepare(byNumber) }

  function remember(id: string, number: number) {
    if (numbers.size >= knownMax) {
      numbers.clear()
      ids.clear()
    }
    numbers.set(id, number)
    ids.set(number, id)
  }

  return {
    numberOf(id) {
      const known = numbers.get(id)
      if (known !== undefined) return known
      const number = committed.byId.values(id)[0]?.[0]
      if (typeof number !== 'number') return Number(written.byId.values(id)[0]?.[0] ?? nobody)
      remember(id, number)
      return number
    },

    idOf(number) {
      const known = ids.get(number)
      if (known !== undefined) return known
      const id = committed.byNumber.values(number)[0]?.[0]
      if (typeof id !== 'string') return String(written.byNumber.values(number)[0]?.[0])
      remember(id, number)
      return id
    },
  }
}
