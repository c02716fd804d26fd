import type { Database as SqliteConnection } from 'bun:sqlite'
import { createBackgroundWork } from './background-work.ts'
import { lazy } from './lazy.ts'
import type { PrepareRead } from './list-chunks.ts'
import type { TransactionParticipant } from './transaction-participant.ts'

/** New records after which they are added to the table. With more of them, fewer pages are written for each. */
const tailMax = 16_384
/** Rows that one write transaction adds: a millisecond of work. */
const sliceRows = 1_000

/** Name in `meta` of the key up to which the table has all records. */
const filledUntil = 'phone_index_until'

/**
 * Finds the records of phones by their hashes, on SQLite. An ordinary index would write a page at a random place for
 * every new phone.
 *
 * The newest records, by their full hash, are held in memory (the tail), and are read again from `phones` after a start.
 * When there are many, they are sorted and added to the table `phone_index` in slices; a crash repeats that, which
 * changes nothing twice. A key that is found is only a hint: callers must compare the hash of its record, which may have
 * been deleted, or may be another phone's.
 */
export type PhoneIndex = {
  /** Lists the keys under which the record of a hash may be: almost always one, or none. */
  keys(hash: string): Generator<number, undefined>
  /** Adds a record that the running transaction inserts. @returns its key, which no other record had */
  add(hash: string): number
  /** Removes a record that the running transaction deletes. */
  remove(hash: string, key: number): void
}

/**
 * First 53 bits of a hash, the most that a JavaScript number holds. With ten million phones the chance that two share
 * them is 1 in 200.
 */
export function hashPrefix(hash: string): number {
  const bytes = Buffer.from(hash.slice(0, 12), 'base64url')
  return bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) >>> 3)
}

/**
 * Creates the index, and the participant by which the write queue tells it about transactions.
 *
 * @param prepare prepares a query that sees committed data only
 * @param write runs a body in a write transaction; undefined if the database is open for reading only
 * @param limit Infinity in host commands: only one process may fill the table
 */
export function createPhoneIndex(
  prepare: PrepareRead,
  writer: SqliteConnection,
  write: ((body: () => Promise<void>) => Promise<void>) | undefined,
  limit = tailMax,
) {
  // Prepared at the first use: a host command may open a database that has not been migrated.
  const reads = lazy(() => ({
    newest: prepare('select key, phone_hash from phones where key > ? order by key'),
    until: prepare('select value from meta where name = ?'),
    find: prepare('select key from phone_index where hash = ?'),
  }))
  const writes = lazy(() => ({
    lastKey: writer.prepare('select max(key) from phones'),
    find: writer.prepare<unknown, [number]>('select key from phone_index where hash = ?'),
    insert: writer.prepare('insert into phone_index (hash, key) values (?, ?) on conflict do nothing'),
    remove: writer.prepare('delete from phone_index where hash = ? and key = ?'),
    setUntil: writer.prepare(
      `insert into meta (name, value) values ('${filledUntil}', ?) on conflict (name) do update set value = excluded.value`,
    ),
  }))

  const tail = new Map<string, number>()
  let isCurrent = false
  /** A key is never used again: the table, or the memory of another process, may still have it. */
  let nextKey: number | undefined
  /** Records that the running transaction deleted. */
  let removed: Array<{ hash: string; key: number }> = []

  const readLastKey = () => Number(writes().lastKey.values()[0]?.[0] ?? 0)
  const readUntil = () => Number(reads().until.values(filledUntil)[0]?.[0] ?? 0)

  /** Reads the records that the table does not have: at first, and after another process has committed. */
  function catchUp() {
    if (isCurrent) return
    for (const [key, hash] of reads().newest.values(readUntil())) tail.set(String(hash), Number(key))
    isCurrent = true
  }

  /** Adds the tail to the table. */
  const fill = createBackgroundWork(async (isClosed) => {
    if (!write) return
    let until = 0
    let rows: Array<{ prefix: number; hash: string; key: number }> = []
    // While no other process can add records, so that the tail has all of them.
    await write(async () => {
      catchUp()
      until = readLastKey()
      rows = [...tail].map(([hash, key]) => ({ prefix: hashPrefix(hash), hash, key }))
    })
    rows = rows.toSorted((a, b) => a.prefix - b.prefix)
    for (let start = 0; start < rows.length; start += sliceRows) {
      if (isClosed()) return
      const slice = rows.slice(start, start + sliceRows)
      await write(async () => {
        for (const { prefix, key } of slice) writes().insert.run(prefix, key)
      })
    }
    await write(async () => void writes().setUntil.run(String(until)))
    for (const { hash, key } of rows) if (tail.get(hash) === key) tail.delete(hash)
  })

  const participant: TransactionParticipant = {
    onCommit() {
      for (const { hash, key } of removed) if (tail.get(hash) === key) tail.delete(hash)
      removed = []
      if (tail.size >= limit) fill.start()
    },
    onRollback() {
      removed = []
    },
    onForeignCommit() {
      isCurrent = false
      nextKey = undefined
    },
  }

  const index = (stored: (prefix: number) => unknown[][]): PhoneIndex => ({
    *keys(hash) {
      catchUp()
      const newest = tail.get(hash)
      if (newest !== undefined) yield newest
      for (const [key] of stored(hashPrefix(hash))) yield Number(key)
      return undefined
    },
    add(hash) {
      catchUp()
      nextKey ??= Math.max(readLastKey(), readUntil()) + 1
      const key = nextKey++
      tail.set(hash, key)
      return key
    },
    remove(hash, key) {
      writes().remove.run(hashPrefix(hash), key)
      removed.push({ hash, key })
    },
  })

  return {
    committed: index((prefix) => reads().find.values(prefix)),
    uncommitted: index((prefix) => writes().find.values(prefix)),
    participant,
    close: fill.close,
  }
}
