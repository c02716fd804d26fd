/**
 * Creates a cache of values that stay true while a version is the same: a number that grows whenever one of them might change.
 * Get the version before you read a value, because it may grow meanwhile.
 *
 * @param entriesMax the cache is cleared when it is full
 */
export function createVersionedCache<T>(entriesMax: number) {
  const values = new Map<string, T>()
  let valuesVersion: number | undefined
  return {
    get(key: string, version: number): T | undefined {
      if (version !== valuesVersion) {
        values.clear()
        valuesVersion = version
      }
      return values.get(key)
    },

    /** @param version from before the value was read */
    set(key: string, version: number, value: T): void {
      if (version !== valuesVersion) return
      if (values.size >= entriesMax) values.clear()
      values.set(key, value)
    },
  }
}
