import type { Database as SqliteConnection } from 'bun:sqlite'
import type { GuardRow } from '../../domain/model/guard.ts'
import { systemWorld, type World } from '../../world/system.ts'
import { inKeyOrder } from './key-order.ts'
import { lazy } from './lazy.ts'
import type { TransactionParticipant } from './transaction-participant.ts'

/** After this time, or with so many of them, the next batch writes the rows that are held back: 10 ms at most. */
const [writeEveryMs, heldBackMax] = [10_000, 2_000]
/** Rows in memory, about 10 MB. When there are more, they are written and read again. */
const rowsMax = 20_000

/**
 * Write-behind cache of the guard's rows, on SQLite. Rows of prefixes, networks and devices have random keys, so each send
 * would read a row and write a page for each of them. They are written every ten seconds instead, together with what the
 * verification of the code changed, and when the database is closed: a crash loses their newest counts. Rows with names (countries, the pool) are written at once.
 */
export type GuardRowCache = {
  get(key: string): GuardRow | undefined
  /** Changes rows within the running transaction; undefined: the row was deleted from the table. */
  change(rows: ReadonlyMap<string, GuardRow | undefined>): void
  /** Writes the rows that are held back, within the running transaction. */
  write(): void
}

const isNamed = (key: string) => key.includes(' ')

/**
 * Creates the cache, and the participant by which the write queue tells it about transactions.
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
    find: writer.prepare<unknown, [string]>(
      'select windows, alerted_at, until from guard_usage where subject = ?',
    ),
    put: writer.prepare(`
      insert into guard_usage (subject, windows, alerted_at, until) values (?, ?, ?, ?)
      on conflict (subject) do update
        set windows = excluded.windows, alerted_at = excluded.alerted_at, until = excluded.until`),
  }))
  /** Rows as of the last commit; undefined: there is none. */
  const committed = new Map<string, GuardRow | undefined>()
  /** Keys of those that are newer than in the table. */
  const heldBack = new Set<string>()
  /** Rows that the running transaction changed. */
  let changed = new Map<string, GuardRow | undefined>()
  /** Counts its changes. */
  let changes = 0
  /** Whether the running transaction writes everything that is held back. */
  let isWriting = false
  let writtenAt = world.monotonic()

  function read(key: string): GuardRow | undefined {
    const [row] = statements().find.values(key)
    if (!row) return undefined
    const [windows, alertedAt, until] = row as [string, number, number]
    return { windows: JSON.parse(windows) as number[][], alertedAt, until }
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
      const isLate = world.monotonic() - writtenAt > writeEveryMs
      if (isLate || heldBack.size > heldBackMax || committed.size > rowsMax) cache.write()
    },

    write() {
      const rows = new Map([...heldBack].map((key) => [key, committed.get(key)]))
      for (const [key, row] of changed) if (!isNamed(key)) rows.set(key, row)
      for (const [key, row] of inKeyOrder(rows)) put(key, row)
      isWriting = true
    },
  }

  function end() {
    changed = new Map()
    changes = 0
    isWriting = false
  }

  const participant: TransactionParticipant = {
    countPending: () => changes,
    onCommit() {
      for (const [key, row] of changed) {
        committed.set(key, row)
        if (!isNamed(key)) heldBack.add(key)
      }
      if (isWriting) {
        heldBack.clear()
        writtenAt = world.monotonic()
        if (committed.size > rowsMax) committed.clear()
      }
      end()
    },
    onRollback: end,
    onForeignCommit() {
      for (const key of committed.keys()) if (!heldBack.has(key)) committed.delete(key)
    },
  }

  return {
    cache,
    participant,
    async close() {
      if (heldBack.size > 0) await runWrite(async () => cache.write())
    },
  }
}
