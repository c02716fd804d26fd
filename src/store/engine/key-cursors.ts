/** Returns the next key; undefined at the end. A closure, since generators take several times as long. */
export type KeyCursor = () => string | undefined

export const noKeys: KeyCursor = () => undefined

/** Reads sorted keys from the end. The array may grow meanwhile. */
export function descendingKeys(keys: readonly string[], before: string | undefined): KeyCursor {
  let index = before === undefined ? keys.length : lowerBound(keys, before)
  return () => (index > 0 ? keys[--index] : undefined)
}

/** Reads sorted keys from the beginning. What is added to the array meanwhile is not read. */
export function ascendingKeys(keys: readonly string[], after: string): KeyCursor {
  let index = lowerBound(keys, after)
  if (keys[index] === after) index++
  const { length } = keys
  return () => (index < length ? keys[index++] : undefined)
}

/** Returns the index of the first key that is not below `bound`. */
function lowerBound(keys: readonly string[], bound: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] ?? '') < bound) low = middle + 1
    else high = middle
  }
  return low
}

/** Skips removed keys. */
export const without = (next: KeyCursor, removed: ReadonlySet<string> | undefined): KeyCursor =>
  removed === undefined
    ? next
    : () => {
        let key = next()
        while (key !== undefined && removed.has(key)) key = next()
        return key
      }

/** Merges sorted sources, without duplicates. */
export function mergeCursors(sources: readonly KeyCursor[], isAscending: boolean): KeyCursor {
  const [only, ...others] = sources
  if (only && others.length === 0) return only
  const heads = sources.map((next) => next())
  const isFirst = isAscending
    ? (head: string, first: string) => head < first
    : (head: string, first: string) => head > first
  return () => {
    let first: string | undefined
    for (const head of heads) {
      if (head !== undefined && (first === undefined || isFirst(head, first))) first = head
    }
    if (first === undefined) return undefined
    for (let i = 0; i < heads.length; i++) {
      // A source may repeat a key that was changed twice.
      while (heads[i] === first) heads[i] = sources[i]?.()
    }
    return first
  }
}

/**
 * Loads the first rows of a list that match.
 *
 * @param load loads the rows of some keys that exist and match, as `inOrder` returns them; undefined ends the list
 */
export async function loadListed<R>(
  next: KeyCursor,
  limit: number,
  load: (keys: string[]) => Promise<ReadonlyArray<R | undefined> | undefined>,
): Promise<R[]> {
  const rows: R[] = []
  for (;;) {
    const batch: string[] = []
    while (batch.length < limit) {
      const key = next()
      if (key === undefined) break
      batch.push(key)
    }
    if (batch.length === 0) return rows
    const found = await load(batch)
    if (!found) return rows
    for (const row of found) {
      if (row !== undefined && rows.push(row) === limit) return rows
    }
    // Nothing more to ask for.
    if (batch.length < limit) return rows
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
