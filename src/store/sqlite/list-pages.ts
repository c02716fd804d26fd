import type { Database as SqliteConnection, SQLQueryBindings, Statement } from 'bun:sqlite'
import type { ListKey, ListOwner, ListRange } from '../engine/sqlite-state.ts'

export type List = [owner: ListOwner, list: number]

/** An entry of a list. */
type ListEntry = { owner: ListOwner; list: number; key: ListKey }

/** Below and above every key: SQLite sorts numbers before texts. */
const leastKey = -1
const greatestKey = '~'

/** `from` compares keys with the position where a page begins, `to` with the one where it ends at the latest. */
type Direction = { from: '<' | '>'; to: '<' | '>'; extreme: 'max' | 'min'; order: 'desc' | 'asc' }

const descending: Direction = { from: '<', to: '>', extreme: 'max', order: 'desc' }
const ascending: Direction = { from: '>', to: '<', extreme: 'min', order: 'asc' }

/** Up to so many lists, a statement that names each is faster; its cost grows faster than their number. */
const namedListsMax = 12

/** Creates the function that reads a page of lists from the table: the entries between `range` and `end`, if it is given. */
export function createListPages(connection: SqliteConnection) {
  const statements = new Map<string, Statement<ListEntry, SQLQueryBindings[]>>()
  const prepare = (name: string, sql: () => string) => {
    let statement = statements.get(name)
    if (!statement)
      statements.set(name, (statement = connection.prepare<ListEntry, SQLQueryBindings[]>(sql())))
    return statement
  }

  return (lists: readonly List[], range: ListRange, limit: number, end: ListKey | undefined): ListEntry[] => {
    const isAscending = 'after' in range
    const direction = isAscending ? ascending : descending
    const start = isAscending ? range.after : (range.before ?? greatestKey)
    const last = end ?? (isAscending ? greatestKey : leastKey)
    const count = lists.length
    return count <= namedListsMax
      ? prepare(`${count} ${direction.order}`, () => namedListsSql(count, direction)).all(
          start,
          last,
          limit,
          ...lists.flat(),
        )
      : prepare(direction.order, () => mergeSql(direction)).all(start, last, limit, JSON.stringify(lists))
  }
}

/** The union of lists whose owners and numbers are parameters; SQLite merges them in the order of their keys. */
function namedListsSql(count: number, { from, to, order }: Direction): string {
  const selects = Array.from(
    { length: count },
    (_, index) =>
      `select key, owner, list from lists where owner = ?${2 * index + 4} and list = ?${2 * index + 5} and key ${from} ?1 and key ${to} ?2`,
  )
  return `${selects.join(' union all ')} order by key ${order} limit ?3`
}

/**
 * Merges any number of lists: a recursive query with an order is a priority queue. It begins with the first key of each
 * list; the row that comes first is taken out, and the next key of its list is put in.
 */
function mergeSql({ from, to, extreme, order }: Direction): string {
  const nextKey = (row: string, start: string) =>
    `(select ${extreme}(key) from lists where owner = ${row}.owner and list = ${row}.list and key ${from} ${start} and key ${to} ?2)`
  return `with recursive
    source (owner, list) as materialized (
      select value ->> 0, value ->> 1 from json_each(?4)),
    page (key, owner, list) as (
      select ${nextKey('source', '?1')}, owner, list from source
      union all
      select ${nextKey('page', 'page.key')}, owner, list from page where key is not null
      order by 1 ${order} nulls last limit ?3)
    select key, owner, list from page where key is not null`
}
