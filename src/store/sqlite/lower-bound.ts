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
