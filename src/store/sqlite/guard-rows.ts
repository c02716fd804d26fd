import type { Database as SqliteConnection } from 'bun:sqlite'
import type { GuardCounts, GuardRow } from '../../domain/model/guard.ts'
import { systemWorld, type World } from '../../world/system.ts'
import type { GuardRowCache } from '../engine/sqlite-state.ts'
import { lazy, type TransactionHooks } from './memory-state.ts'

/** Rows that are held back are written after this time, or when there are so many. */
const [heldBackMs, heldBackMax] = [10_000, 10_000]
/** Rows that one batch writes of them: 2 ms of work. */
const sliceRows = 500
/** Rows in memory, about 10 MB. When there are more, they are read again. */
const rowsMax = 20_000

const isNamed = (key: string) => key.includes(' ')

/**
 * Creates the cache, and the hooks by which the write queue tells it about transactions. Rows of prefixes, networks and
 * devices have random keys, so each send would read a row and write a page for each of them. They are written in rounds
 * instead, every ten seconds and in the order of their keys, so that rows of one page are written together, and often the
 * changes of a send and of its verification. The last round is written when the database is closed; a crash loses the newest
 * counts. Rows with names (countries, the pool) are written at once.
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
  /** Rows as of the last commit: those that are newer than in the table, and some others. */
  const committed = new Map<string, GuardRow>()
  /** Keys of the newer ones. */
  const heldBack = new Set<string>()
  /** Keys that the current round has yet to write, and when it began. */
  let round: string[] = []
  let roundAt = world.monotonic()
  /** Rows that the running transaction changed; undefined: deleted. */
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
    get: (key) => (changed.has(key) ? changed.get(key) : (committed.get(key) ?? read(key))),

    change(rows) {
      changes += rows.size
      for (const [key, row] of rows) {
        changed.set(key, row)
        if (isNamed(key)) put(key, row)
      }
      const now = world.monotonic()
      if (round.length === 0 && (now - roundAt >= heldBackMs || heldBack.size > heldBackMax)) {
        round = [...heldBack].toSorted()
        roundAt = now
      }
      // As many as are added at least, so that a round ends.
      writeRows(round.splice(0, Math.max(sliceRows, rows.size)))
    },

    write: () => writeRows([...heldBack, ...[...changed.keys()].filter((key) => !isNamed(key))]),
  }

  function writeRows(keys: readonly string[]): void {
    for (const key of keys) put(key, cache.get(key))
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
      for (const [key, row] of changed) {
        if (row) committed.set(key, row)
        else committed.delete(key)
        if (row && !isNamed(key)) heldBack.add(key)
        else heldBack.delete(key)
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
