import type { Database as SqliteConnection } from 'bun:sqlite'
import { createBackgroundWork, lazy, type TransactionHooks } from './memory-state.ts'
import type { ListKey, ListOwner, ListRange, Lists } from '../engine/sqlite-state.ts'
import { createVersionedCache } from '../../domain/model/versioned-cache.ts'
import { createListPages, type List } from './list-pages.ts'
import { createRecentLists, inStoredOrder, mergePages, type RecentLists } from './recent-lists.ts'
import type { World } from '../../world/world.ts'

export type ListLimits = {
  /**
   * Entries, new and removed ones, after which they are moved to the file. With more of them, fewer pages are written for
   * each. Infinity in host commands: only one process may move them.
   */
  recentMax: number
  /** Entries that one write transaction moves: a millisecond of work, so that no call waits long for it. */
  sliceRows: number
}

/** Entries that are checked after a move: a millisecond of work. */
const checkedMax = 1_000

/** Lists whose greatest keys are kept: about 5 MB. */
const greatestKeysMax = 50_000

const listLimitsDefault: ListLimits = { recentMax: 200_000, sliceRows: 500 }

/** A change of the lists of an owner, as `list_changes` has it. */
type Entry = [owner: ListOwner, key: ListKey, add: readonly number[], remove: readonly number[]]

/** Creates what the table does not have yet. No entry is in both. */
function createRecentChanges() {
  const added = createRecentLists()
  const removed = createRecentLists()
  /** Moves a key from one side to the other. @returns undoes it */
  function move(from: RecentLists, to: RecentLists, owner: ListOwner, list: number, key: ListKey) {
    const hasLeft = from.remove(owner, list, key)
    const isNew = to.add(owner, list, key)
    return () => {
      if (isNew) to.remove(owner, list, key)
      if (hasLeft) from.add(owner, list, key)
    }
  }
  /** Applies a change. @param undos gets what undoes its parts; call the last one first */
  function apply([owner, key, add, remove]: Entry, undos: Array<() => void>): void {
    for (const list of add) undos.push(move(removed, added, owner, list, key))
    // The table may have it, even if it was in memory: it was moved, but not yet forgotten, or a start has read it again.
    for (const list of remove) undos.push(move(added, removed, owner, list, key))
  }
  return { added, removed, apply }
}

/**
 * Creates the lists of a connection, which take part in its transactions: the table `lists`, which is filled in bulk. An
 * ordinary index on the owner would have to write a page at a random place for every row.
 *
 * New and removed entries are held in memory, and thousands of them are moved to the table at once, in its order: a list
 * has the entries of the table without the removed ones, and the new ones. Each transaction that changes lists also inserts
 * one row into `list_changes`, from which a process takes the changes that are not in the table: after its start, or after
 * another process has committed.
 *
 * @param write runs a body in a write transaction; undefined if the database is open for reading only
 */
export function createLists(
  connection: SqliteConnection,
  write: (<T>(body: () => Promise<T>) => Promise<T>) | undefined,
  { onBroken }: Pick<World, 'onBroken'>,
  { recentMax, sliceRows } = listLimitsDefault,
) {
  // Prepared at the first use: a host command may open a database that has not been migrated.
  const statements = lazy(() => ({
    pages: createListPages(connection),
    greatest: connection.prepare<{ key: ListKey | null }, List>(
      'select max(key) as key from lists where owner = ? and list = ?',
    ),
    insert: connection.prepare('insert or ignore into lists (owner, list, key) values (?, ?, ?)'),
    remove: connection.prepare('delete from lists where owner = ? and list = ? and key = ?'),
    changesAfter: connection.prepare('select seq, changes from list_changes where seq > ? order by seq'),
    insertChanges: connection.prepare('insert into list_changes (changes) values (?)'),
    // The last row stays, so that its number is not used again.
    deleteChanges: connection.prepare('delete from list_changes where seq < ?'),
  }))
  const { added, removed, apply } = createRecentChanges()
  /** The last row of `list_changes` whose changes are in memory or in the table. */
  let lastSeq = 0
  /** Changes of the open transaction, and what undoes them in memory. */
  let entries: Entry[] = []
  let undos: Array<() => void> = []
  let ownSeq = 0
  /** Grows when entries were moved to the table, by this process or by another one. */
  let movesVersion = 0
  /** The greatest keys that lists have in the table, or had before some were removed; null for none. */
  const greatestKeys = createVersionedCache<ListKey | null>(greatestKeysMax)

  /** Takes the changes of committed transactions that are not in memory yet: all at first, then those of other processes. */
  function catchUp() {
    const { changesAfter } = statements()
    let rows = changesAfter.values(lastSeq)
    if (rows.length === 0) return
    const hasMissed = rows[0]?.[0] !== lastSeq + 1
    if (hasMissed) movesVersion++
    if (hasMissed && lastSeq > 0) {
      // The server moved changes that this process has not seen, so its memory may contradict the table.
      added.clear()
      removed.clear()
      rows = changesAfter.values(0)
    }
    for (const [seq, changes] of rows) {
      // `beforeCommit` is the only writer.
      for (const entry of JSON.parse(String(changes)) as Entry[]) apply(entry, [])
      lastSeq = Number(seq)
    }
  }

  /** Writes the first changes of some lists to the table. @returns them, and how many lists have no more */
  function moveSlice(lists: readonly List[]) {
    // Another process may have changed some.
    catchUp()
    const { insert, remove } = statements()
    const moved: Array<{ from: RecentLists; owner: ListOwner; list: number; key: ListKey }> = []
    let done = 0
    movesVersion++
    for (const [owner, list] of lists) {
      for (const [from, statement] of [
        [removed, remove],
        [added, insert],
      ] as const)
        for (const key of from.page(owner, list, { after: -1 }, sliceRows - moved.length)) {
          statement.run(owner, list, key)
          moved.push({ from, owner, list, key })
        }
      if (moved.length >= sliceRows) break
      done++
    }
    return { moved, done }
  }

  const move = createBackgroundWork(async (isClosed) => {
    if (!write) return
    let until = 0
    let lists: List[] = []
    await write(async () => {
      catchUp()
      until = lastSeq
      lists = inStoredOrder([...added.all(), ...removed.all()])
    })
    while (lists.length > 0 && !isClosed()) {
      const { moved, done } = await write(async () => moveSlice(lists))
      for (const { from, owner, list, key } of moved) from.remove(owner, list, key)
      lists = lists.slice(done)
    }
    if (lists.length > 0) return
    await write(async () => {
      checkLeft(until)
      statements().deleteChanges.run(until)
    })
  })

  /** Returns the greatest key that a list may have in the table; null for none. */
  function greatestKey(list: List): ListKey | null {
    const name = list.join(' ')
    let key = greatestKeys.get(name, movesVersion)
    if (key === undefined)
      greatestKeys.set(name, movesVersion, (key = statements().greatest.get(...list)?.key ?? null))
    return key
  }

  /**
   * Checks that a start would find the entries that are left in memory: in the changes that are kept. Not if they are many,
   * as under load, because no call runs meanwhile.
   */
  function checkLeft(until: number) {
    catchUp()
    if (added.size() + removed.size() > checkedMax) return
    const kept = createRecentChanges()
    for (const [, changes] of statements().changesAfter.values(until - 1))
      for (const entry of JSON.parse(String(changes)) as Entry[]) kept.apply(entry, [])
    const check = (left: RecentLists, found: RecentLists, verb: string) => {
      for (const [owner, list] of left.all())
        for (const key of left.page(owner, list, {}, Infinity))
          if (found.add(owner, list, key))
            onBroken(
              'lists_follow_changes',
              `list ${list} of ${owner} has ${key}, which no change after ${until} ${verb}`,
            )
    }
    check(added, kept.added, 'adds')
    check(removed, kept.removed, 'removes')
  }

  /** Reads a page of the table up to `end`, without what is removed. */
  function storedPage(all: readonly List[], range: ListRange, limit: number, end?: ListKey): ListKey[] {
    const least = 'after' in range ? range.after : end
    const lists = all.filter((list) => {
      const greatest = greatestKey(list)
      return greatest !== null && (least === undefined || greatest > least)
    })
    if (lists.length === 0) return []
    for (let count = limit; ; count *= 4) {
      const rows = statements().pages(lists, range, count, end)
      const kept = rows.filter(({ owner, list, key }) => !removed.has(owner, list, key))
      // A page of removed entries alone: all requests that were pending are verified.
      if (kept.length >= limit || rows.length < count) return kept.slice(0, limit).map(({ key }) => key)
    }
  }

  const lists: Lists = {
    change({ add, remove }, owner, key) {
      // Before the first change: what others have committed comes before it.
      if (entries.length === 0) catchUp()
      const entry: Entry = [owner, key, add, remove]
      entries.push(entry)
      apply(entry, undos)
    },
    page(sources, range, limit) {
      catchUp()
      const all = sources.owners.flatMap((owner) => sources.lists.map((list): List => [owner, list]))
      const pages = all.map(([owner, list]) => added.page(owner, list, range, limit))
      const recent = mergePages(pages, range, limit)
      // A page of recent entries is full most often; then only what the table has before its last one counts.
      const end = recent.length === limit ? recent.at(-1) : undefined
      return mergePages([storedPage(all, range, limit, end), recent], range, limit)
    },
  }

  const hooks: TransactionHooks = {
    countPending: () => entries.length,
    beforeCommit() {
      if (entries.length === 0) return
      ownSeq = Number(statements().insertChanges.run(JSON.stringify(entries)).lastInsertRowid)
      if (ownSeq !== lastSeq + 1)
        onBroken('lists_follow_changes', `row ${ownSeq} follows row ${lastSeq} of the memory`)
    },
    onCommit() {
      if (entries.length === 0) return
      entries = []
      undos = []
      lastSeq = ownSeq
      if (added.size() + removed.size() >= recentMax) move.start()
    },
    onRollback() {
      for (const undo of undos.toReversed()) undo()
      entries = []
      undos = []
    },
  }

  return { lists, hooks, close: move.close }
}
