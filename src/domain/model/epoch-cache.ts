/**
 * Creates a cache of values that stay true while an epoch lasts: a number that changes whenever one of them might. Get
 * the epoch before you read a value, because it may move meanwhile.
 *
 * @param entriesMax the cache is cleared when it is full
 */
export function createEpochCache<T>(entriesMax: number) {
  const values = new Map<string, T>()
  let valuesEpoch: number | undefined
  return {
    get(key: string, epoch: number): T | undefined {
      if (epoch !== valuesEpoch) {
        values.clear()
        valuesEpoch = epoch
      }
      return values.get(key)
    },

    /** @param epoch from before the value was read */
    set(key: string, epoch: number, value: T): void {
      if (epoch !== valuesEpoch) return
      if (values.size >= entriesMax) values.clear()
      values.set(key, value)
    },
  }
}
