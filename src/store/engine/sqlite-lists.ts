import type { Database as SqliteConnection } from 'bun:sqlite'
import { createBackgroundWork } from './background-work.ts'
import { lazy } from './lazy.ts'
import {
  createListPages,
  mergePages,
  type ListKey,
  type ListOwner,
  type ListRange,
  type ListSources,
} from './sqlite-list-pages.ts'
import { createRecentLists } from './sqlite-recent-lists.ts'
import type { TransactionParticipant } from './sqlite-transaction-participant.ts'
import type { World } from '../../world/world.ts'

/** Numbers of the lists that gain or lose a row: see list-numbers.ts. */
export type ListChange = { readonly add: readonly number[]; readonly remove: readonly number[] }

export type ListLimits = {
  /**
   * Entries after which they are moved to the file. With more of them, fewer pages are written for each. Infinity in host
   * commands: only one process may move them.
   */
  recentMax: number
  /** Entries that one write transaction moves: a millisecond of work, so that no call waits long for it. */
  sliceRows: number
}

export const listLimitsDefault: ListLimits = { recentMax: 200_000, sliceRows: 500 }

/**
 * Finds the rows of an owner in order, on SQLite: the table `lists`, which is filled in bulk. An ordinary index on the owner
 * would have to write a page at a random place for every row.
 *
 * New entries are held in memory, and thousands of them are moved to the table at once, in its order. Each transaction that
 * changes lists also inserts one row into `list_changes`, from which a process adds the entries that are not in the table:
 * after its start, or after another process has committed. A list is complete at every moment.
 */
export type Lists = {
  /**
   * Changes lists of an owner. Call it in the transaction that changes the row.
   *
   * @param key finds the row, and sorts the list
   */
  change(change: ListChange, owner: ListOwner, key: ListKey): void
  /**
   * Reads the keys in any of the lists of any of the owners, without duplicates: the greatest first, or ascending with
   * `after`. Also those that the open transaction added.
   */
  page(sources: ListSources, range: ListRange, limit: number): ListKey[]
}

/** A change of the lists of an owner, as `list_changes` has it. */
type Entry = [owner: ListOwner, key: ListKey, add: readonly number[], remove: readonly number[]]

/**
 * Creates the lists of a connection, which take part in its transactions.
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
    insert: connection.prepare('insert or ignore into lists (owner, list, key) values (?, ?, ?)'),
    remove: connection.prepare('delete from lists where owner = ? and list = ? and key = ?'),
    changesAfter: connection.prepare('select seq, changes from list_changes where seq > ? order by seq'),
    insertChanges: connection.prepare('insert into list_changes (changes) values (?)'),
    // The last row stays, so that its number is not used again.
    deleteChanges: connection.prepare('delete from list_changes where seq < ?'),
  }))
  const recent = createRecentLists()
  /** The last row of `list_changes` whose entries are in memory or in the table. */
  let lastSeq = 0
  /** Changes of the open transaction, and what they changed in memory. */
  let entries: Entry[] = []
  let applied: Entry[] = []
  let ownSeq = 0

  /** @returns the lists that it changed */
  function apply([owner, key, add, remove]: Entry): Entry {
    const added = add.filter((list) => recent.add(owner, list, key))
    return [owner, key, added, remove.filter((list) => recent.remove(owner, list, key))]
  }

  /** Adds the entries of committed transactions that are not in memory yet: all at first, then those of other processes. */
  function catchUp() {
    const { changesAfter } = statements()
    let rows = changesAfter.values(lastSeq)
    if (rows.length === 0) return
    if (lastSeq > 0 && rows[0]?.[0] !== lastSeq + 1) {
      // The server moved changes that this process has not seen, so its memory may contradict the table.
      recent.clear()
      rows = changesAfter.values(0)
    }
    for (const [seq, changes] of rows) {
      // `beforeCommit` is the only writer.
      for (const entry of JSON.parse(String(changes)) as Entry[]) apply(entry)
      lastSeq = Number(seq)
    }
  }

  /** Undoes the changes of the open transaction, the last one first. */
  function undo() {
    for (const [owner, key, added, removed] of applied.toReversed()) {
      for (const list of removed) recent.add(owner, list, key)
      for (const list of added) recent.remove(owner, list, key)
    }
    entries = []
    applied = []
  }

  /** Writes the first entries of some lists to the table. @returns them, and whether the first list has more */
  function moveSlice(lists: ReadonlyArray<[ListOwner, number]>) {
    // Another process may have removed some.
    catchUp()
    const moved: Array<[ListOwner, number, ListKey]> = []
    let done = 0
    for (const [owner, list] of lists) {
      const keys = recent.page(owner, list, { after: -1 }, sliceRows - moved.length)
      for (const key of keys) {
        statements().insert.run(owner, list, key)
        moved.push([owner, list, key])
      }
      if (moved.length >= sliceRows) break
      done++
    }
    return { moved, done }
  }

  const move = createBackgroundWork(async (isClosed) => {
    if (!write) return
    let until = 0
    let lists: Array<[ListOwner, number]> = []
    await write(async () => {
      catchUp()
      until = lastSeq
      lists = recent.all()
    })
    while (lists.length > 0 && !isClosed()) {
      const { moved, done } = await write(async () => moveSlice(lists))
      for (const [owner, list, key] of moved) recent.remove(owner, list, key)
      lists = lists.slice(done)
    }
    if (lists.length > 0) return
    await write(async () => {
      checkLeft(until)
      statements().deleteChanges.run(until)
    })
  })

  /** Checks that a start would find the entries that are left in memory: in the changes that are kept. */
  function checkLeft(until: number) {
    catchUp()
    const kept = createRecentLists()
    for (const [, changes] of statements().changesAfter.values(until - 1))
      for (const [owner, key, add, remove] of JSON.parse(String(changes)) as Entry[]) {
        for (const list of add) kept.add(owner, list, key)
        for (const list of remove) kept.remove(owner, list, key)
      }
    for (const [owner, list] of recent.all())
      for (const key of recent.page(owner, list, {}, Infinity))
        if (kept.add(owner, list, key))
          onBroken(
            'lists_follow_changes',
            `list ${list} of ${owner} has ${key}, which no change after ${until} adds`,
          )
  }

  const lists: Lists = {
    change(change, owner, key) {
      // Before the first change: what others have committed comes before it.
      if (entries.length === 0) catchUp()
      const entry: Entry = [owner, key, change.add, change.remove]
      for (const list of change.remove) statements().remove.run(owner, list, key)
      entries.push(entry)
      applied.push(apply(entry))
    },
    page(sources, range, limit) {
      catchUp()
      const stored = statements().pages(sources, range, limit)
      const pages = sources.owners.flatMap((owner) =>
        sources.lists.map((list) => recent.page(owner, list, range, limit)),
      )
      return mergePages([stored, ...pages], range, limit)
    },
  }

  const participant: TransactionParticipant = {
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
      applied = []
      lastSeq = ownSeq
      if (recent.size() >= recentMax) move.start()
    },
    onRollback: undo,
  }

  return { lists, participant, close: move.close }
}
