import type { Database as SqliteConnection } from 'bun:sqlite'
import { createBackgroundWork } from './background-work.ts'
import { ascendingKeys, descendingKeys, mergeCursors, without, type KeyCursor } from './key-cursors.ts'
import {
  createListChunkReader,
  createListChunkWriter,
  type ListOwner,
  type PrepareRead,
} from './list-chunks.ts'
import {
  createListTail,
  formatEntries,
  parseEntries,
  type ListChange,
  type ListEntry,
  type ListTail,
} from './list-tail.ts'
import type { TransactionParticipant } from './transaction-participant.ts'

export type TailLimits = {
  /**
   * Entries after which they are moved to the chunks. With more of them, fewer pages are written for each. Infinity in
   * host commands: only one process may move them.
   */
  entriesMax: number
  /** Keys that one write transaction moves. */
  sliceKeysMax: number
}

/** A slice is a millisecond or two of work, so that no call waits long for it. */
const tailLimitsDefault: TailLimits = { entriesMax: 49_152, sliceKeysMax: 250 }

/** Finding the place of a list takes as long as writing so many keys. */
const keysPerList = 20

/** A position in key order; exclusive. */
export type ListRange = { before?: string | undefined } | { after: string }

/**
 * The lagging index: finds the rows of an owner in order, on SQLite. An ordinary index on the owner would have to write
 * a page at a random place for every row.
 *
 * Each transaction that changes the lists of its rows also inserts one row into `list_changes`, which says how. Those
 * changes are held in memory (the tail). When there are many, they are sorted and moved to `list_chunks` in slices. A
 * list is its chunks and the tail, so it is complete at every moment; a crash repeats the move, which changes nothing
 * twice. Callers must load the rows and check that they exist and belong to the list.
 */
export type ListIndex = {
  /**
   * Records a change of the lists of a row's owners. Call it in the transaction that changes the row.
   *
   * @param key sorts the list; without spaces
   */
  note(change: ListChange, owners: readonly ListOwner[], key: string): void
  /**
   * Reads the keys in one or more lists of an owner, without duplicates: the greatest first, or ascending with `after`.
   *
   * @param inTransaction whether to include the changes of the open transaction, for a reader inside it
   */
  keys(owner: ListOwner, lists: readonly string[], range: ListRange, inTransaction: boolean): KeyCursor
}

/**
 * Creates the part that only reads.
 *
 * @param prepare prepares a query that sees committed data only
 */
export function createListReader(prepare: PrepareRead) {
  const chunks = createListChunkReader(prepare)
  const changesAfter = prepare('select seq, changes from list_changes where seq > ? order by seq')
  let lastSeq = 0
  /** The tail that is being moved to the chunks, with its last row of `list_changes`, and the one that gathers changes. */
  let moving: { tail: ListTail; until: number } | undefined
  let tail = createListTail()

  /** Reads committed changes that are not in memory yet: all of them at first, then those of other processes. */
  function catchUp(): void {
    let rows = changesAfter.values(lastSeq)
    if (lastSeq > 0 && rows.length > 0 && rows[0]?.[0] !== lastSeq + 1) {
      // The server moved changes that this process has not seen, so the tail may contradict the chunks.
      tail = createListTail()
      rows = changesAfter.values(0)
    }
    for (const [seq, changes] of rows) {
      for (const entry of parseEntries(String(changes))) tail.apply(entry)
      lastSeq = Number(seq)
    }
  }

  /** @param uncommitted changes of the transaction that reads */
  function keys(
    owner: ListOwner,
    lists: readonly string[],
    range: ListRange,
    uncommitted?: ListTail,
  ): KeyCursor {
    catchUp()
    const isAscending = 'after' in range
    const read = (added: readonly string[]) =>
      isAscending ? ascendingKeys(added, range.after) : descendingKeys(added, range.before)
    const sources = lists.flatMap((list) => {
      const stored = isAscending
        ? chunks.ascending(owner, list, range.after)
        : chunks.descending(owner, list, range.before)
      // A newer tail hides the keys that it removed.
      const tails = [moving?.tail, tail, uncommitted].flatMap((one) => one?.keys(owner, list) ?? [])
      return tails.reduce(
        (older, { added, removed }) => [...older, read(added)].map((next) => without(next, removed)),
        [stored],
      )
    })
    return mergeCursors(sources, isAscending)
  }

  return {
    keys,
    /** Applies the committed entries of a row of `list_changes`. */
    commit(seq: number, entries: readonly ListEntry[]): void {
      if (seq !== lastSeq + 1) return catchUp()
      for (const entry of entries) tail.apply(entry)
      lastSeq = seq
    },
    tailSize: () => tail.size(),
    /** Starts to move the tail, or goes on where a move failed. @returns it, with its last row of `list_changes` */
    beginMove(): { tail: ListTail; until: number } {
      if (!moving) {
        moving = { tail, until: lastSeq }
        tail = createListTail()
      }
      return moving
    },
    endMove: () => void (moving = undefined),
  }
}

/** Creates the lagging index of a database that is open for reading only. */
export function createReadonlyListIndex(prepare: PrepareRead): ListIndex {
  const { keys } = createListReader(prepare)
  return {
    keys: (owner, lists, range) => keys(owner, lists, range),
    note() {
      throw new Error('the database is open for reading only')
    },
  }
}

/**
 * Creates the lagging index, which takes part in the transactions of the write queue.
 *
 * @param write runs a body in a write transaction
 */
export function createListIndex(
  prepare: PrepareRead,
  writer: SqliteConnection,
  write: (body: () => Promise<void>) => Promise<void>,
  { entriesMax, sliceKeysMax } = tailLimitsDefault,
) {
  const reader = createListReader(prepare)
  const chunks = createListChunkWriter(writer)
  const insertChanges = writer.prepare('insert into list_changes (changes) values (?)')
  const deleteChanges = writer.prepare('delete from list_changes where seq < ?')
  /** Entries of the open transaction. */
  let entries: ListEntry[] = []
  let seq = 0

  /** Moves the tail to the chunks. The last row of `list_changes` stays, so that its number is not used again. */
  const move = createBackgroundWork(async (isClosed) => {
    const { tail, until } = reader.beginMove()
    for (const slice of slices(tail, sliceKeysMax)) {
      if (isClosed()) return
      await write(async () => {
        for (const { owner, list, added, removed } of slice) chunks.update(owner, list, added, removed)
      })
    }
    await write(async () => void deleteChanges.run(until))
    reader.endMove()
  })

  const index: ListIndex = {
    note: (change, owners, key) => void entries.push({ change, owners, key }),
    keys(owner, lists, range, inTransaction) {
      if (!inTransaction || entries.length === 0) return reader.keys(owner, lists, range)
      const uncommitted = createListTail()
      for (const entry of entries) uncommitted.apply(entry)
      return reader.keys(owner, lists, range, uncommitted)
    },
  }

  const participant: TransactionParticipant = {
    countPending: () => entries.length,
    onRollback: () => void (entries = []),
    beforeCommit() {
      if (entries.length > 0) seq = Number(insertChanges.run(formatEntries(entries)).lastInsertRowid)
    },
    onCommit() {
      if (entries.length === 0) return
      reader.commit(seq, entries)
      entries = []
      if (reader.tailSize() >= entriesMax) move.start()
    },
  }

  return {
    index,
    participant,
    close: move.close,
  }
}

type SliceItem = { owner: ListOwner; list: string; added: readonly string[]; removed: readonly string[] }

/** Cuts the changes of a tail into transactions, in the order of the stored chunks. */
function* slices(tail: ListTail, sliceKeysMax: number): Generator<SliceItem[], undefined> {
  let slice: SliceItem[] = []
  let keys = 0
  for (const { owner, list, keys: changed } of tail.all()) {
    const gone = changed.removed
    const added = gone ? changed.added.filter((key) => !gone.has(key)) : changed.added
    const removed = gone ? [...gone].toSorted() : []
    for (let i = 0, j = 0; i < added.length || j < removed.length;) {
      const room = Math.max(1, sliceKeysMax - keys - keysPerList)
      const item = { owner, list, added: added.slice(i, i + room), removed: removed.slice(j, j + room) }
      slice.push(item)
      i += item.added.length
      j += item.removed.length
      keys += item.added.length + item.removed.length + keysPerList
      if (keys < sliceKeysMax) continue
      yield slice
      slice = []
      keys = 0
    }
  }
  if (slice.length > 0) yield slice
}
