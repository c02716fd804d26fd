/** Compares keys as the databases order them. */
export const compareKeys = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0)

/** Lists the entries of a map in the order of their keys: rows are written so, which touches fewer pages. */
export const inKeyOrder = <K extends string | number, V>(map: ReadonlyMap<K, V>): Array<[K, V]> =>
  [...map].toSorted(([a], [b]) => compareKeys(a, b))

/** Lists the values of a map in the order of their keys. */
export const valuesInKeyOrder = <V>(map: ReadonlyMap<string | number, V>): V[] =>
  inKeyOrder(map).map(([, value]) => value)

export type ChangedRows<T> = ReturnType<typeof createChangedRows<T>>

/** Holds rows of one table as a transaction leaves them, by their keys. */
export function createChangedRows<T>() {
  const rows = new Map<string | number, { value: T; isNew: boolean }>()
  const isNew = (key: string | number): boolean => rows.get(key)?.isNew === true
  return {
    size: (): number => rows.size,
    isNew,
    get: (key: string | number): T | undefined => rows.get(key)?.value,
    /** Sets a row, which stays new if it was added before. */
    set: (key: string | number, value: T, isAdded = false): void =>
      void rows.set(key, { value, isNew: isAdded || isNew(key) }),
    /** Lists the rows that are new and the others, in the order of their keys. */
    lists(): { added: T[]; updated: T[] } {
      const added: T[] = []
      const updated: T[] = []
      for (const { value, isNew } of valuesInKeyOrder(rows)) (isNew ? added : updated).push(value)
      return { added, updated }
    },
    clear: (): void => rows.clear(),
  }
}

/** Returns the index of the first item whose key is not below `bound`, by binary search. */
export function lowerBound<T, Key extends number | string>(
  items: readonly T[],
  bound: Key,
  keyOf: (item: T) => Key,
): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const item = items[middle]
    if (item !== undefined && keyOf(item) < bound) low = middle + 1
    else high = middle
  }
  return low
}
