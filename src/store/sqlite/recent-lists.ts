import type { ListKey, ListOwner, ListRange } from '../engine/sqlite-state.ts'
import { lowerBound } from '../engine/key-order.ts'

export type RecentLists = ReturnType<typeof createRecentLists>

/** Keys in ascending order, in blocks, none of them empty. A change in the middle moves the keys of one block only. */
type Blocks = ListKey[][]

/** Keys that a new block gets. One that grows in its middle is divided at twice as many. */
const blockKeys = 512

/** Holds entries of lists in memory. */
export function createRecentLists() {
  const owners = new Map<ListOwner, Map<number, Blocks>>()
  let size = 0

  const find = (owner: ListOwner, list: number): Blocks | undefined => owners.get(owner)?.get(list)

  function findOrCreate(owner: ListOwner, list: number): Blocks {
    let lists = owners.get(owner)
    if (!lists) owners.set(owner, (lists = new Map()))
    let blocks = lists.get(list)
    if (!blocks) lists.set(list, (blocks = []))
    return blocks
  }

  function forget(owner: ListOwner, list: number): void {
    const lists = owners.get(owner)
    lists?.delete(list)
    if (lists?.size === 0) owners.delete(owner)
  }

  return {
    size: () => size,

    /** @returns false if the entry was there */
    add(owner: ListOwner, list: number, key: ListKey): boolean {
      const blocks = findOrCreate(owner, list)
      const last = blocks.at(-1)
      // Almost every key is the greatest.
      if (!last || lastOf(last) < key) {
        if (last && last.length < blockKeys) last.push(key)
        else blocks.push([key])
      } else {
        const { block, keys, index } = locate(blocks, key)
        if (keys?.[index] === key) return false
        keys?.splice(index, 0, key)
        if (keys && keys.length >= 2 * blockKeys) blocks.splice(block + 1, 0, keys.splice(blockKeys))
      }
      size++
      return true
    },

    /** @returns false if the entry was not there */
    remove(owner: ListOwner, list: number, key: ListKey): boolean {
      const blocks = find(owner, list)
      if (!blocks) return false
      const { block, keys, index } = locate(blocks, key)
      if (keys?.[index] !== key) return false
      size--
      keys.splice(index, 1)
      if (keys.length === 0) blocks.splice(block, 1)
      if (blocks.length === 0) forget(owner, list)
      return true
    },

    has(owner: ListOwner, list: number, key: ListKey): boolean {
      const blocks = find(owner, list)
      if (!blocks) return false
      const { keys, index } = locate(blocks, key)
      return keys?.[index] === key
    },

    clear() {
      owners.clear()
      size = 0
    },

    /** Reads keys: the greatest first, or ascending with `after`. */
    page(owner: ListOwner, list: number, range: ListRange, limit: number): ListKey[] {
      const blocks = find(owner, list)
      if (!blocks) return []
      return 'after' in range
        ? keysAfter(blocks, range.after, limit)
        : keysBefore(blocks, range.before, limit).toReversed()
    },

    /** Lists the lists that have entries. */
    all: (): Array<[owner: ListOwner, list: number]> =>
      [...owners].flatMap(([owner, lists]) =>
        [...lists.keys()].map((list): [ListOwner, number] => [owner, list]),
      ),
  }
}

/** Finds the first key that is not below `bound`: its block and its index there. There are no `keys` if all are below it. */
function locate(
  blocks: Blocks,
  bound: ListKey,
): { block: number; keys: ListKey[] | undefined; index: number } {
  const block = lowerBound(blocks, bound, lastOf)
  const keys = blocks[block]
  return { block, keys, index: keys ? lowerBound(keys, bound, itself) : 0 }
}

const lastOf = (keys: ListKey[]): ListKey => keys[keys.length - 1] ?? ''
const itself = (key: ListKey): ListKey => key

/** Returns the first keys above `after`, ascending. */
function keysAfter(blocks: Blocks, after: ListKey, limit: number): ListKey[] {
  const { block, keys, index } = locate(blocks, after)
  const first = keys?.[index] === after ? index + 1 : index
  const page = keys?.slice(first, first + limit) ?? []
  for (let next = block + 1; next < blocks.length && page.length < limit; next++)
    page.push(...(blocks[next]?.slice(0, limit - page.length) ?? []))
  return page
}

/** Returns the last keys below `before`, ascending; without it the last of all. */
function keysBefore(blocks: Blocks, before: ListKey | undefined, limit: number): ListKey[] {
  const end = before === undefined ? undefined : locate(blocks, before)
  const page = end?.keys?.slice(Math.max(0, end.index - limit), end.index) ?? []
  for (let next = (end?.block ?? blocks.length) - 1; next >= 0 && page.length < limit; next--) {
    const keys = blocks[next] ?? []
    page.unshift(...keys.slice(Math.max(0, keys.length - (limit - page.length))))
  }
  return page
}

/** Merges sorted pages of the same range, without duplicates. */
export function mergePages(pages: Iterable<readonly ListKey[]>, range: ListRange, limit: number): ListKey[] {
  const isBefore = 'after' in range ? (a: ListKey, b: ListKey) => a < b : (a: ListKey, b: ListKey) => a > b
  let merged: readonly ListKey[] = []
  for (const page of pages) {
    const [first] = page
    const last = merged.at(-1)
    if (first === undefined) continue
    // Most pages have nothing for a list of many.
    if (merged.length === limit && last !== undefined && !isBefore(first, last)) continue
    merged = merged.length === 0 ? page : mergeTwo(merged, page, isBefore, limit)
  }
  return [...merged]
}

function mergeTwo(
  a: readonly ListKey[],
  b: readonly ListKey[],
  isBefore: (a: ListKey, b: ListKey) => boolean,
  limit: number,
): ListKey[] {
  const merged: ListKey[] = []
  for (let i = 0, j = 0; merged.length < limit;) {
    const [left, right] = [a[i], b[j]]
    if (left === undefined && right === undefined) break
    const isLeft = right === undefined || (left !== undefined && !isBefore(right, left))
    const key = isLeft ? left : right
    if (left === key) i++
    if (right === key) j++
    if (key !== undefined) merged.push(key)
  }
  return merged
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
