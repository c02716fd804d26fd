import type { ListKey, ListOwner, ListRange } from './sqlite-list-pages.ts'

export type RecentLists = ReturnType<typeof createRecentLists>

/** Holds the entries of lists that are not in the file yet, in memory. The keys of a list are sorted. */
export function createRecentLists() {
  const owners = new Map<ListOwner, Map<number, ListKey[]>>()
  let size = 0

  const find = (owner: ListOwner, list: number): ListKey[] | undefined => owners.get(owner)?.get(list)

  function findOrCreate(owner: ListOwner, list: number): ListKey[] {
    let lists = owners.get(owner)
    if (!lists) owners.set(owner, (lists = new Map()))
    let keys = lists.get(list)
    if (!keys) lists.set(list, (keys = []))
    return keys
  }

  return {
    size: () => size,

    /** @returns false if the entry was there */
    add(owner: ListOwner, list: number, key: ListKey): boolean {
      const keys = findOrCreate(owner, list)
      const last = keys.at(-1)
      // Almost every key is the greatest.
      const index = last === undefined || last < key ? keys.length : lowerBound(keys, key)
      if (keys[index] === key) return false
      if (index === keys.length) keys.push(key)
      else keys.splice(index, 0, key)
      size++
      return true
    },

    /** @returns false if the entry was not there */
    remove(owner: ListOwner, list: number, key: ListKey): boolean {
      const keys = find(owner, list)
      const index = keys ? lowerBound(keys, key) : 0
      if (keys?.[index] !== key) return false
      keys.splice(index, 1)
      size--
      if (keys.length === 0) owners.get(owner)?.delete(list)
      return true
    },

    clear() {
      owners.clear()
      size = 0
    },

    /** Reads keys: the greatest first, or ascending with `after`. */
    page(owner: ListOwner, list: number, range: ListRange, limit: number): ListKey[] {
      const keys = find(owner, list)
      if (!keys) return []
      if ('after' in range) {
        const start = lowerBound(keys, range.after)
        const first = keys[start] === range.after ? start + 1 : start
        return keys.slice(first, first + limit)
      }
      const end = range.before === undefined ? keys.length : lowerBound(keys, range.before)
      return keys.slice(Math.max(0, end - limit), end).toReversed()
    },

    /** Lists the lists that have entries, in the order of the primary key of the stored ones. */
    all(): Array<[owner: ListOwner, list: number]> {
      // SQLite sorts numbers before texts.
      const isText = (owner: ListOwner) => (typeof owner === 'string' ? 1 : 0)
      return [...owners]
        .toSorted(([a], [b]) => isText(a) - isText(b) || (a < b ? -1 : 1))
        .flatMap(([owner, lists]) =>
          [...lists.keys()].toSorted((a, b) => a - b).map((list): [ListOwner, number] => [owner, list]),
        )
    },
  }
}

/** Returns the index of the first key that is not below `bound`. */
function lowerBound(keys: readonly ListKey[], bound: ListKey): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] ?? bound) < bound) low = middle + 1
    else high = middle
  }
  return low
}
