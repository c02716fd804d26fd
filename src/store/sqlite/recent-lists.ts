import type { ListKey, ListOwner, ListRange } from '../engine/sqlite-state.ts'

export type RecentLists = ReturnType<typeof createRecentLists>

/** Holds entries of lists in memory. The keys of a list are sorted. */
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

    has(owner: ListOwner, list: number, key: ListKey): boolean {
      const keys = find(owner, list)
      return keys !== undefined && keys[lowerBound(keys, key)] === key
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

    /** Lists the lists that have entries. */
    all: (): Array<[owner: ListOwner, list: number]> =>
      [...owners].flatMap(([owner, lists]) =>
        [...lists.keys()].map((list): [ListOwner, number] => [owner, list]),
      ),
  }
}

/** Sorts lists as the primary key of the stored ones does. A list may be there twice. */
export function inStoredOrder(
  lists: ReadonlyArray<[owner: ListOwner, list: number]>,
): Array<[ListOwner, number]> {
  // SQLite sorts numbers before texts.
  const isText = (owner: ListOwner) => (typeof owner === 'string' ? 1 : 0)
  return lists.toSorted(
    ([a, listA], [b, listB]) => isText(a) - isText(b) || (a === b ? listA - listB : a < b ? -1 : 1),
  )
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
