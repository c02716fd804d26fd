import type { Database as SqliteConnection } from 'bun:sqlite'
import type { GuardCounts, GuardRow } from '../../domain/model/guard.ts'
import { systemWorld, type World } from '../../world/system.ts'
import type { GuardRowCache } from '../engine/sqlite-state.ts'
import { lazy, type TransactionHooks } from './memory-state.ts'

/** Rows in memory, about 10 MB. A round of writes begins at half of them, and takes as many as are added meanwhile. */
const rowsMax = 20_000
/** Time after which one begins at the latest. */
const roundMs = 10_000
/** Rows that one batch writes of them: 2 ms of work. */
const sliceRows = 500

/** A row in memory. It is newer than in the table if it is held back. */
type CachedRow = { row: GuardRow; isHeldBack: boolean }

const isNamed = (key: string) => key.includes(' ')

/**
 * Creates the cache, and the hooks by which the write queue tells it about transactions. Rows of prefixes, networks and
 * devices have random keys, so each send would read a row and write a page for each of them. They are written in rounds
 * instead, with a call every ten seconds and in the order of their keys, so that rows of one page are written together, and
 * often the changes of a send and of its verification. The last round is written when the database is closed; a crash loses
 * the newest counts. Rows with names (countries, the pool) are written at once.
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
  const cached = new Map<string, CachedRow>()
  /** Keys that the current round has yet to write, and when it began. */
  let round: string[] = []
  let roundAt = world.monotonic()
  /** Entries that the running transaction replaced, as they were; undefined: there was none. */
  let replaced: Array<[string, CachedRow | undefined]> = []

  function read(key: string): GuardRow | undefined {
    const row = statements().find.get(key)
    return row ? { ...row, windows: JSON.parse(row.windows) as GuardCounts } : undefined
  }

  const put = (key: string, row: GuardRow) =>
    statements().put.run(key, JSON.stringify(row.windows), row.alertedAt, row.until)

  function replace(key: string, entry: CachedRow | undefined): void {
    replaced.push([key, cached.get(key)])
    if (entry) cached.set(key, entry)
    else cached.delete(key)
  }

  const cache: GuardRowCache = {
    get: (key) => cached.get(key)?.row ?? read(key),

    change(rows) {
      const now = world.monotonic()
      if (round.length === 0 && (now - roundAt >= roundMs || cached.size > rowsMax / 2)) {
        forgetRows()
        round = [...cached.keys()].toSorted()
        roundAt = now
      }
      for (const [key, row] of rows) {
        const isHeldBack = !isNamed(key)
        replace(key, row && { row, isHeldBack })
        if (row && !isHeldBack) put(key, row)
      }
      // As many as are added at least, so that a round ends.
      writeRows(round.splice(0, Math.max(sliceRows, rows.size)))
    },

    write: () => writeRows([...cached.keys()]),
  }

  /** Writes those of the rows that are held back. */
  function writeRows(keys: readonly string[]): void {
    for (const key of keys) {
      const entry = cached.get(key)
      if (!entry?.isHeldBack) continue
      put(key, entry.row)
      replace(key, { ...entry, isHeldBack: false })
    }
  }

  /** Forgets the rows that are in the table too. */
  function forgetRows(): void {
    for (const [key, { isHeldBack }] of cached) if (!isHeldBack) cached.delete(key)
  }

  const hooks: TransactionHooks = {
    countPending: () => replaced.length,
    onCommit: () => void (replaced = []),
    onRollback() {
      for (const [key, entry] of replaced.splice(0).toReversed())
        if (entry) cached.set(key, entry)
        else cached.delete(key)
    },
    onForeignCommit: forgetRows,
  }

  return {
    cache,
    hooks,
    async close() {
      if (cached.size > 0) await runWrite(async () => cache.write())
    },
  }
}
