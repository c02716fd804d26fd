import type { Database as SqliteConnection } from 'bun:sqlite'
import { storedPolicies } from '../../domain/model/rate-limit.ts'
import type { NewAdmission, RateLimit, StoredPolicy, Usage } from '../../domain/model/rate-limit.ts'
import { lazy, type TransactionHooks } from './memory-state.ts'
import { lowerBound } from '../engine/key-order.ts'
import type { World } from '../../world/world.ts'

/** Batches between two deletions of expired rows, and the rows that one deletes. More rows than batches: it catches up. */
const pruneEvery = 32
const prunedRows = 64
/** Expired admissions that a limiter keeps at least, so that few arrays are moved. */
const expiredKept = 64

/** A change of the running batch. `at` is undefined if all admissions are forgotten. */
type Change = { key: number; at: number | undefined; replaced: readonly number[] }

/**
 * Creates the sliding-window log of admissions on SQLite: in memory, because one row per call would be half of what a
 * call writes. The table `admission_batches` is the redo log from which the memory is rebuilt: one row for each batch
 * of transactions, replayed at the first use and after another process has committed. Changes of the running batch are in
 * the memory at once, also for readers, and are undone if it is rolled back.
 *
 * `entries` is a JSON array: a base time, then a pair of numbers for each change. The first is the short id of the
 * subject × 4 + the place of the policy in `storedPolicies`, the second the time of the admission less the base. It
 * replaces admissions of that subject and policy that are later. A negative first number forgets all of them.
 *
 * @param toNumber converts the id of a subject to its short id, 0 if there is none
 */
export function createAdmissionLog(
  connection: SqliteConnection,
  toNumber: (subject: string) => number,
  { onBroken }: Pick<World, 'onBroken'>,
) {
  /** Times of the admissions by limiter, oldest first. Some of them have expired. */
  const windows = new Map<number, number[]>()
  let changes: Change[] = []
  /** Time until which rows may be deleted, by the admissions of the running batch. */
  let expiredUntil = -Infinity
  /** Newest row that `windows` contains, and the one that the running batch has written. */
  let replayedSeq = 0
  let writtenSeq = 0
  let isCurrent = false
  let batches = 0

  // Prepared at the first use: a host command may open the database for something else.
  const statements = lazy(() => ({
    // `at` never falls, so that expired rows are the oldest ones, and a row that forgets outlives what it forgets.
    append: connection.prepare<unknown, [number, string]>(`
      insert into admission_batches (at, entries) values (
        max(?1, coalesce((select at from admission_batches order by seq desc limit 1), 0)), ?2)`),
    // Never the newest row, whose `seq` the next one continues.
    prune: connection.prepare<unknown, [number, number]>(`
      delete from admission_batches where at <= ?1 and seq in (
        select seq from admission_batches where seq < (select max(seq) from admission_batches)
        order by seq limit ?2)`),
    clamp: connection.prepare<unknown, [number]>('update admission_batches set at = ?1 where at > ?1'),
    readAfter: connection.prepare<{ seq: number; entries: string }, [number]>(
      'select seq, entries from admission_batches where seq > ? order by seq',
    ),
  }))

  /** Replays the rows that are not in memory yet. */
  function catchUp() {
    if (isCurrent) return
    for (const { seq, entries } of statements().readAfter.iterate(replayedSeq)) {
      const [base = 0, ...numbers]: number[] = JSON.parse(entries)
      for (let i = 0; i + 1 < numbers.length; i += 2) {
        const key = numbers[i] ?? 0
        apply(Math.abs(key), key < 0 ? undefined : base + (numbers[i + 1] ?? 0))
      }
      replayedSeq = seq
    }
    isCurrent = true
  }

  const toKey = (subject: string, policy: StoredPolicy) =>
    toNumber(subject) * 4 + storedPolicies.indexOf(policy)

  function timesOf(key: number): number[] {
    let times = windows.get(key)
    if (!times) windows.set(key, (times = []))
    return times
  }

  /** Adds an admission, which replaces later ones; without a time, forgets all. @returns the times of those that go */
  function apply(key: number, at: number | undefined): number[] {
    const times = timesOf(key)
    const replaced = times.splice(at === undefined ? 0 : countUntil(times, at))
    if (at !== undefined) times.push(at)
    return replaced
  }

  const change = (key: number, at: number | undefined) =>
    void changes.push({ key, at, replaced: apply(key, at) })

  /** Forgets the changes of a batch: its transaction has ended. */
  function end() {
    changes = []
    expiredUntil = -Infinity
  }

  function dropExpired(key: number, until: number) {
    const times = timesOf(key)
    const expired = countUntil(times, until)
    if (expired === times.length) windows.delete(key)
    else if (expired >= expiredKept && expired * 2 >= times.length) times.splice(0, expired)
  }

  const hooks: TransactionHooks = {
    countPending: () => changes.length,

    beforeCommit() {
      if (changes.length === 0) return
      const base = changes.reduce((latest, { at = 0 }) => Math.max(latest, at), 0)
      const pairs = changes.flatMap(({ key, at }) => (at === undefined ? [-key, 0] : [key, at - base]))
      writtenSeq = Number(statements().append.run(base, JSON.stringify([base, ...pairs])).lastInsertRowid)
      if (writtenSeq !== replayedSeq + 1)
        onBroken('limiter_follows_rows', `row ${writtenSeq} follows row ${replayedSeq} of the memory`)
      if (batches++ % pruneEvery === 0) statements().prune.run(expiredUntil, prunedRows)
    },

    onCommit() {
      if (changes.length === 0) return
      replayedSeq = writtenSeq
      end()
    },

    onRollback() {
      for (const { key, at, replaced } of changes.toReversed()) {
        const times = timesOf(key)
        if (at !== undefined) times.pop()
        times.push(...replaced)
      }
      end()
    },

    onForeignCommit() {
      isCurrent = false
    },
  }

  return {
    hooks,

    usage({ subject, policy, limit, windowMs }: RateLimit<StoredPolicy>, now: number): Usage {
      catchUp()
      const times = windows.get(toKey(subject, policy)) ?? []
      // An admission from a clock that ran far ahead must not block the subject until that time.
      const hasLater = (times.at(-1) ?? 0) > now + windowMs
      const end = hasLater ? countUntil(times, now) : times.length
      const start = countUntil(times, now - windowMs)
      const used = Math.max(0, end - start)
      const at = times[end - 1]
      // If the limit was lowered, more than one admission must leave the window first.
      const expiringAt = used > 0 ? times[start + Math.max(0, used - limit)] : undefined
      return { used, newest: at === undefined ? undefined : { at, seq: end }, expiringAt, hasLater }
    },

    insert(admissions: readonly NewAdmission[]) {
      catchUp()
      for (const { subject, policy, at, expiredUntil: until } of admissions) {
        if (toNumber(subject) === 0) throw new Error(`an admission (${policy}) has an unknown subject`)
        const key = toKey(subject, policy)
        dropExpired(key, until)
        change(key, at)
        expiredUntil = Math.max(expiredUntil, until)
      }
    },

    /** Lists all admissions. `subject` is a short id, `policy` its place in `storedPolicies`. */
    list(): Array<{ subject: number; policy: number; at: number; seq: number }> {
      catchUp()
      return [...windows].flatMap(([key, times]) =>
        times.map((at, index) => ({ subject: Math.floor(key / 4), policy: key % 4, at, seq: index + 1 })),
      )
    },

    async forget(subject: string) {
      catchUp()
      let forgotten = 0
      for (const policy of storedPolicies) {
        const key = toKey(subject, policy)
        const count = windows.get(key)?.length ?? 0
        if (count > 0) change(key, undefined)
        forgotten += count
      }
      return forgotten
    },

    async latestTimestamp() {
      catchUp()
      let latest: number | undefined
      for (const times of windows.values()) latest = Math.max(latest ?? 0, times.at(-1) ?? 0)
      return latest
    },

    /** As many admissions at `now` replace the later ones of each window. */
    async clampToNow(now: number) {
      catchUp()
      for (const [key, times] of windows) {
        const later = times.length - countUntil(times, now)
        for (let i = 0; i < later; i++) change(key, now)
      }
      statements().clamp.run(now)
    },

    async deleteOldest(until: number, batchSize: number) {
      catchUp()
      for (const key of windows.keys()) dropExpired(key, until)
      return statements().prune.run(until, batchSize).changes === batchSize
    },
  }
}

/** Counts the times, in whole milliseconds, up to one: most often all of them, because that one is now. */
const countUntil = (times: readonly number[], until: number) =>
  (times.at(-1) ?? until) <= until ? times.length : lowerBound(times, until + 1, (time) => time)
