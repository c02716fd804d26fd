import type { ListKey, ListRange, Lists, ListSources } from '../engine/sqlite-state.ts'

/**
 * Loads the first rows of lists that match.
 *
 * @param load loads the rows of keys that exist and match, as `inOrder` returns them; undefined ends the list
 */
export async function loadListed<K extends ListKey, R>(
  lists: Pick<Lists, 'page'>,
  sources: ListSources,
  range: ListRange,
  limit: number,
  load: (keys: K[]) => Promise<ReadonlyArray<R | undefined> | undefined>,
): Promise<R[]> {
  const rows: R[] = []
  let next = range
  for (;;) {
    // A list has numbers or texts.
    const keys = lists.page(sources, next, limit) as K[]
    const last = keys.at(-1)
    if (last === undefined) return rows
    const found = await load(keys)
    if (!found) return rows
    for (const row of found) {
      if (row !== undefined && rows.push(row) === limit) return rows
    }
    // Nothing more to ask for.
    if (keys.length < limit) return rows
    next = 'after' in range ? { after: last } : { before: last }
  }
}

/** Arranges rows in the order of their keys; undefined for a key without a row. */
export function inOrder<K, R>(
  keys: readonly K[],
  rows: readonly R[],
  keyOf: (row: R) => K,
): Array<R | undefined> {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  return keys.map((key) => byKey.get(key))
}
