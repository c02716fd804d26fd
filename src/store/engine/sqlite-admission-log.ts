import type { Database as SqliteConnection } from 'bun:sqlite'
import type { Admissions } from '../../domain/model/rate-limit.ts'
import { storedPolicies, type NewAdmission, type StoredPolicy } from '../../domain/model/rate-limit.ts'
import {
  admissionAt,
  count,
  countUntil,
  dropExpired,
  emptyWindow,
  timeAt,
  total,
  type PendingWindow,
  type Window,
} from './sqlite-admission-window.ts'
import { lazy } from './lazy.ts'
import type { TransactionParticipant } from './sqlite-transaction-participant.ts'
import type { World } from '../../world/world.ts'

/** Batches between two deletions of expired rows, and the rows that one deletes. More rows than batches: it catches up. */
const pruneEvery = 32
const prunedRows = 64

/** A change of the running batch. `at` is undefined if all admissions are forgotten. */
type Change = { key: number; at: number | undefined; expiredUntil: number }

/** Finds the admissions of a limiter: with the changes of the running batch, or only what is committed. */
export type AdmissionView = (subject: string, policy: StoredPolicy) => Admissions

export type AdmissionLog = ReturnType<typeof createAdmissionLog>

/**
 * Creates the sliding-window log of admissions on SQLite: in memory, because one row per call would be half of what a
 * call writes. The table `admission_batches` is the redo log from which the memory is rebuilt: one row for each batch
 * of transactions, replayed at the first use and after another process has committed.
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
  const windows = new Map<number, Window>()
  let pending = new Map<number, PendingWindow>()
  let changes: Change[] = []
  /** Newest row that `windows` contains, and the one that the running batch has written. */
  let replayedSeq = 0
  let writtenSeq = 0
  let isCurrent = false
  let batches = 0
  let sweepUntil = -Infinity

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
        const at = key < 0 ? undefined : base + (numbers[i + 1] ?? 0)
        applyChange({ key: Math.abs(key), at, expiredUntil: -Infinity })
      }
      applyPending()
      replayedSeq = seq
    }
    isCurrent = true
  }

  const toKey = (subject: string, policy: StoredPolicy) =>
    toNumber(subject) * 4 + storedPolicies.indexOf(policy)

  function note(change: Change) {
    changes.push(change)
    applyChange(change)
  }

  function applyChange({ key, at, expiredUntil }: Change) {
    let window = pending.get(key)
    if (!window) pending.set(key, (window = { kept: count(windows.get(key)), added: [], expiredUntil }))
    const { added } = window
    if (at === undefined) {
      window.kept = 0
      window.added = []
      return
    }
    while ((added.at(-1) ?? at) > at) added.pop()
    if (added.length === 0) {
      const committed = windows.get(key) ?? emptyWindow
      while (window.kept > 0 && timeAt(committed, window.kept - 1) > at) window.kept--
    }
    added.push(at)
    window.expiredUntil = expiredUntil
  }

  /** Takes the pending changes over into `windows`. */
  function applyPending() {
    for (const [key, { kept, added, expiredUntil }] of pending) {
      let window = windows.get(key)
      if (!window) windows.set(key, (window = { times: [], head: 0, firstSeq: 1 }))
      window.times.length = window.head + kept
      for (const at of added) window.times.push(at)
      dropExpired(window, expiredUntil)
      if (count(window) === 0) windows.delete(key)
    }
    pending.clear()
  }

  const view =
    (changesOf: (key: number) => PendingWindow | undefined): AdmissionView =>
    (subject, policy) => {
      catchUp()
      const key = toKey(subject, policy)
      const window = windows.get(key) ?? emptyWindow
      const changes = changesOf(key)
      return {
        newest: (until) => admissionAt(window, changes, countUntil(window, changes, until) - 1),
        oldestAfter: (after, skip) => admissionAt(window, changes, countUntil(window, changes, after) + skip),
      }
    }

  const participant: TransactionParticipant = {
    countPending: () => changes.length,

    beforeCommit() {
      if (changes.length === 0) return
      let base = 0
      let expiredUntil = -Infinity
      for (const change of changes) {
        base = Math.max(base, change.at ?? 0)
        expiredUntil = Math.max(expiredUntil, change.expiredUntil)
      }
      const entries = [base]
      for (const { key, at } of changes)
        entries.push(at === undefined ? -key : key, at === undefined ? 0 : at - base)
      writtenSeq = Number(statements().append.run(base, JSON.stringify(entries)).lastInsertRowid)
      if (writtenSeq !== replayedSeq + 1)
        onBroken('limiter_follows_rows', `row ${writtenSeq} follows row ${replayedSeq} of the memory`)
      if (batches++ % pruneEvery === 0) statements().prune.run(expiredUntil, prunedRows)
    },

    onCommit() {
      if (changes.length > 0) {
        changes = []
        applyPending()
        replayedSeq = writtenSeq
      }
      if (sweepUntil === -Infinity) return
      for (const [key, window] of windows) {
        dropExpired(window, sweepUntil)
        if (count(window) === 0) windows.delete(key)
      }
      sweepUntil = -Infinity
    },

    onRollback() {
      changes = []
      pending = new Map()
      sweepUntil = -Infinity
    },

    onForeignCommit() {
      isCurrent = false
    },
  }

  return {
    participant,
    committed: view(() => undefined),
    /** For the running batch. */
    uncommitted: view((key) => pending.get(key)),

    insert({ subject, policy, at, expiredUntil }: NewAdmission) {
      catchUp()
      if (toNumber(subject) === 0) throw new Error(`an admission (${policy}) has an unknown subject`)
      note({ key: toKey(subject, policy), at, expiredUntil })
    },

    /** Lists all committed admissions. `subject` is a short id, `policy` its place in `storedPolicies`. */
    listCommitted(): Array<{ subject: number; policy: number; at: number; seq: number }> {
      catchUp()
      return [...windows].flatMap(([key, { times, head, firstSeq }]) =>
        times.slice(head).map((at, index) => ({
          subject: Math.floor(key / 4),
          policy: key % 4,
          at,
          seq: firstSeq + head + index,
        })),
      )
    },

    forget(subject: string): number {
      catchUp()
      let forgotten = 0
      for (const policy of storedPolicies) {
        const key = toKey(subject, policy)
        const admissions = total(windows.get(key), pending.get(key))
        if (admissions > 0) note({ key, at: undefined, expiredUntil: -Infinity })
        forgotten += admissions
      }
      return forgotten
    },

    latestTimestamp(): number | undefined {
      catchUp()
      let latest: number | undefined
      for (const { times } of windows.values()) latest = Math.max(latest ?? 0, times.at(-1) ?? 0)
      return latest
    },

    /** As many admissions at `now` replace the later ones of each window. */
    clampToNow(now: number) {
      catchUp()
      for (const key of new Set([...windows.keys(), ...pending.keys()])) {
        const [window, changes] = [windows.get(key) ?? emptyWindow, pending.get(key)]
        const later = total(window, changes) - countUntil(window, changes, now)
        for (let i = 0; i < later; i++) note({ key, at: now, expiredUntil: -Infinity })
      }
      statements().clamp.run(now)
    },

    deleteOldest(until: number, batchSize: number): boolean {
      catchUp()
      sweepUntil = until
      return statements().prune.run(until, batchSize).changes === batchSize
    },
  }
}
