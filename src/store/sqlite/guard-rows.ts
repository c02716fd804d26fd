import type { Database as SqliteConnection } from 'bun:sqlite'
import type { GuardCounts, GuardRow } from '../../domain/model/guard.ts'
import { systemWorld, type World } from '../../world/system.ts'
import { compareKeys, inKeyOrder } from '../engine/key-order.ts'
import type { GuardRowCache } from '../engine/sqlite-state.ts'
import { lazy } from './lazy.ts'
import type { TransactionHooks } from './transaction-hooks.ts'

/** Rows are held back for this time, and so many of them. */
const [heldBackMs, heldBackMax] = [10_000, 10_000]
/** Rows that one batch writes of them: 2 ms of work. */
const sliceRows = 500
/** Rows in memory, about 10 MB. When there are more, they are read again. */
const rowsMax = 20_000

const isNamed = (key: string) => key.includes(' ')

/**
 * Creates the cache, and the hooks by which the write queue tells it about transactions. Rows of prefixes, networks and
 * devices have random keys, so each send would read a row and write a page for each of them. They are written ten seconds
 * later instead, often together with what the verification of the code changed, or when the database is closed: a crash
 * loses their newest counts. Rows with names (countries, the pool) are written at once.
 *
 * @param runWrite runs a body in a write transaction
 */
export function createGuardRows(
  writer: SqliteConnection,
  runWrite: (body: () => Promise<void>) => Promise<void>,
  world: Pick<World, 'monotonic'> = systemWorld,
) {
  // Prepared at the first use: a host command may open a database that has not been migrated.
  const statements = lazy(() => ({
    find: writer.prepare<Omit<GuardRow, 'windows'> & { windows: string }, [string]>(
      'select windows, alerted_at as alertedAt, until from guard_usage where subject = ?',
    ),
    put: writer.prepare(`
      insert into guard_usage (subject, windows, alerted_at, until) values (?, ?, ?, ?)
      on conflict (subject) do update
        set windows = excluded.windows, alerted_at = excluded.alerted_at, until = excluded.until`),
  }))
  /** Rows as of the last commit; undefined: there is none. */
  const committed = new Map<string, GuardRow | undefined>()
  /** Keys of those that are newer than in the table, oldest first, and since when. */
  const heldBack = new Map<string, number>()
  /** Rows that the running transaction changed. */
  let changed = new Map<string, GuardRow | undefined>()
  /** Counts its changes. */
  let changes = 0
  /** Keys of the rows that were held back and that it writes. */
  let written: string[] = []

  function read(key: string): GuardRow | undefined {
    const row = statements().find.get(key)
    return row ? { ...row, windows: JSON.parse(row.windows) as GuardCounts } : undefined
  }

  const put = (key: string, row: GuardRow | undefined) =>
    row && statements().put.run(key, JSON.stringify(row.windows), row.alertedAt, row.until)

  const cache: GuardRowCache = {
    get(key) {
      if (changed.has(key)) return changed.get(key)
      if (!committed.has(key)) committed.set(key, read(key))
      return committed.get(key)
    },

    change(rows) {
      changes += rows.size
      for (const [key, row] of inKeyOrder(rows)) {
        changed.set(key, row)
        if (isNamed(key)) put(key, row)
      }
      const until = world.monotonic() - heldBackMs
      const keys: string[] = []
      for (const [key, since] of heldBack) {
        const isDue = since <= until || heldBack.size - keys.length > heldBackMax
        if (!isDue || keys.length === sliceRows) break
        keys.push(key)
      }
      writeRows(keys)
    },

    write: () => writeRows([...heldBack.keys(), ...[...changed.keys()].filter((key) => !isNamed(key))]),
  }

  function writeRows(keys: readonly string[]): void {
    for (const key of keys.toSorted(compareKeys)) put(key, cache.get(key))
    written.push(...keys)
  }

  function forgetRows(): void {
    for (const key of committed.keys()) if (!heldBack.has(key)) committed.delete(key)
  }

  function end() {
    changed = new Map()
    changes = 0
    written = []
  }

  const hooks: TransactionHooks = {
    countPending: () => changes,
    onCommit() {
      for (const key of written) heldBack.delete(key)
      const now = world.monotonic()
      for (const [key, row] of changed) {
        committed.set(key, row)
        if (!isNamed(key) && !heldBack.has(key)) heldBack.set(key, now)
      }
      if (committed.size > rowsMax) forgetRows()
      end()
    },
    onRollback: end,
    onForeignCommit: forgetRows,
  }

  return {
    cache,
    hooks,
    async close() {
      if (heldBack.size > 0) await runWrite(async () => cache.write())
    },
  }
}
