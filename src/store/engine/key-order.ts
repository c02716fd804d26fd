/** Compares keys as the databases order them. */
export const compareKeys = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0)

/** Lists the entries of a map in the order of their keys: rows are written so, which touches fewer pages. */
export const inKeyOrder = <K extends string | number, V>(map: ReadonlyMap<K, V>): Array<[K, V]> =>
  [...map].toSorted(([a], [b]) => compareKeys(a, b))

/** Lists the values of a map in the order of their keys. */
export const valuesInKeyOrder = <V>(map: ReadonlyMap<string | number, V>): V[] =>
  inKeyOrder(map).map(([, value]) => value)
