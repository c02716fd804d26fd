/** Yields all rows in pages, in key order (keyset pagination). */
export async function* scanPages<T, Key>(
  list: (after: Key, limit: number) => Promise<T[]>,
  getKey: (row: T) => Key,
  start: Key,
  pageRows: number,
): AsyncGenerator<T[]> {
  for (let after = start; ;) {
    const rows = await list(after, pageRows)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = getKey(last)
  }
}
