import type { Database as SqliteConnection } from 'bun:sqlite'
import type { PhoneIndex } from '../engine/sqlite-state.ts'
import { createBackgroundWork, lazy, type TransactionHooks } from './memory-state.ts'
import { systemWorld } from '../../world/system.ts'
import type { Timers } from '../../world/world.ts'

/** New records after which they are added to the table. With more of them, fewer pages are written for each. */
const newestMax = 16_384
/** Rows, about, that one write transaction adds: a millisecond of work. */
const sliceRows = 1_000

/** Name in `meta` of the key up to which the table has all records. */
const filledUntil = 'phone_index_until'
/** Name in `meta` of the greatest key that was deleted as the greatest of all. */
const lastDeleted = 'phone_key_deleted'

/** Prepares a query; its rows are arrays. */
type PrepareRead = (sql: string) => { values(...values: Array<string | number>): unknown[][] }

/** A change of the running transaction, and the key that an addition replaced in memory. */
type Change = { kind: 'add' | 'remove'; hash: string; key: number; replaced?: number | undefined }

/**
 * First 53 bits of a hash, the most that a JavaScript number holds. With ten million phones the chance that two share
 * them is 1 in 200.
 */
export function hashPrefix(hash: string): number {
  const bytes = Buffer.from(hash.slice(0, 12), 'base64url')
  return bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) >>> 3)
}

type TableRow = { prefix: number; key: number }

/**
 * Divides records into slices of the table, in its order; the rows of each are not sorted yet. The event loop goes on in the
 * meantime, because all records at once would take it twenty milliseconds.
 */
async function sortInSlices(
  records: ReadonlyArray<[hash: string, key: number]>,
  timers: Timers,
): Promise<TableRow[][]> {
  const slices = Array.from({ length: Math.ceil(records.length / sliceRows) }, (): TableRow[] => [])
  for (const [index, [hash, key]] of records.entries()) {
    if (index % sliceRows === sliceRows - 1) await timers.nextTurn()
    const prefix = hashPrefix(hash)
    slices[Math.floor((prefix / 2 ** 53) * slices.length)]?.push({ prefix, key })
  }
  return slices
}

/**
 * Creates the index, and the hooks by which the write queue tells it about transactions. An ordinary index would write a
 * page at a random place for every new phone.
 *
 * The newest records, by their full hash, are held in memory, and are read again from `phones` after a start.
 * When there are many, they are sorted and added to the table `phone_index` in slices; a crash repeats that, which changes
 * nothing twice.
 *
 * @param prepare prepares a query that sees committed data only
 * @param write runs a body in a write transaction; undefined if the database is open for reading only
 * @param limit Infinity in host commands: only one process may fill the table
 */
export function createPhoneIndex(
  prepare: PrepareRead,
  writer: SqliteConnection,
  write: ((body: () => Promise<void>) => Promise<void>) | undefined,
  limit = newestMax,
  timers = systemWorld.timers,
) {
  // Prepared at the first use: a host command may open a database that has not been migrated.
  const reads = lazy(() => ({
    newest: prepare('select key, phone_hash from phones where key > ? order by key'),
    until: prepare('select value from meta where name = ?'),
    find: prepare('select key from phone_index where hash = ?'),
  }))
  const writes = lazy(() => ({
    lastKey: writer.prepare('select max(key) from phones'),
    lastUsedKey: writer.prepare(`
      select max(
        (select ifnull(max(key), 0) from phones),
        (select ifnull(max(cast(value as integer)), 0) from meta
          where name in ('${filledUntil}', '${lastDeleted}')))`),
    noteDeleted: writer.prepare(`
      insert into meta (name, value) select '${lastDeleted}', ?1
        where ?1 > (select ifnull(max(key), 0) from phones)
      on conflict (name) do update set value = excluded.value
        where cast(excluded.value as integer) > cast(value as integer)`),
    find: writer.prepare<unknown, [number]>('select key from phone_index where hash = ?'),
    insert: writer.prepare('insert into phone_index (hash, key) values (?, ?) on conflict do nothing'),
    remove: writer.prepare('delete from phone_index where hash = ? and key = ?'),
    setUntil: writer.prepare(
      `insert into meta (name, value) values ('${filledUntil}', ?) on conflict (name) do update set value = excluded.value`,
    ),
  }))

  const newest = new Map<string, number>()
  let isCurrent = false
  /** A key is never used again: the table, or the memory of another process, may have it. */
  let nextKey: number | undefined
  /** Additions, which are among the newest, and removals, which leave them with the commit. */
  let changes: Change[] = []

  const toKey = (rows: unknown[][]) => Number(rows[0]?.[0] ?? 0)

  /** Reads the records that the table does not have: at first, and after another process has committed. */
  function catchUp() {
    if (isCurrent) return
    // Another process may have made a record again under another key, and moved it to the table.
    newest.clear()
    for (const [key, hash] of reads().newest.values(toKey(reads().until.values(filledUntil))))
      newest.set(String(hash), Number(key))
    isCurrent = true
  }

  /** Adds the newest records to the table. */
  const fill = createBackgroundWork(async (isClosed) => {
    if (!write) return
    let until = 0
    let records: Array<[hash: string, key: number]> = []
    // While no other process can add records, and with those of the jobs before this one, so that none is missing.
    await write(async () => {
      catchUp()
      until = toKey(writes().lastKey.values())
      records = [...newest]
    })
    for (const slice of await sortInSlices(records, timers)) {
      if (isClosed()) return
      slice.sort((a, b) => a.prefix - b.prefix)
      await write(async () => {
        for (const { prefix, key } of slice) writes().insert.run(prefix, key)
      })
    }
    await write(async () => void writes().setUntil.run(String(until)))
    for (const [hash, key] of records) if (newest.get(hash) === key) newest.delete(hash)
  })

  const hooks: TransactionHooks = {
    countPending: () => changes.length,
    onCommit() {
      for (const { kind, hash, key } of changes)
        if (kind === 'remove' && newest.get(hash) === key) newest.delete(hash)
      changes = []
      if (newest.size >= limit) fill.start()
    },
    onRollback() {
      for (const { kind, hash, replaced } of changes.toReversed()) {
        if (kind === 'remove') continue
        if (replaced === undefined) newest.delete(hash)
        else newest.set(hash, replaced)
      }
      changes = []
    },
    onForeignCommit() {
      isCurrent = false
      nextKey = undefined
    },
  }

  const index = (stored: (prefix: number) => unknown[][]): PhoneIndex => ({
    keys(hash) {
      catchUp()
      const recent = newest.get(hash)
      return recent === undefined ? stored(hashPrefix(hash)).map(([key]) => Number(key)) : [recent]
    },
    recentKey: (hash) => newest.get(hash),
    add(hash) {
      catchUp()
      nextKey ??= toKey(writes().lastUsedKey.values()) + 1
      const key = nextKey++
      changes.push({ kind: 'add', hash, key, replaced: newest.get(hash) })
      newest.set(hash, key)
      return key
    },
    remove(hash, key) {
      writes().remove.run(hashPrefix(hash), key)
      writes().noteDeleted.run(key)
      changes.push({ kind: 'remove', hash, key })
    },
  })

  return {
    committed: index((prefix) => reads().find.values(prefix)),
    uncommitted: index((prefix) => writes().find.values(prefix)),
    hooks,
    close: fill.close,
  }
}
