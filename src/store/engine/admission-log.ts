import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  storedPolicies,
  type Admission,
  type NewAdmission,
  type StoredPolicy,
} from '../../domain/model/rate-limit.ts'
import type { TransactionParticipant } from './transaction-participant.ts'

/** Batches between two deletions of expired rows, and the rows that one deletes. More rows than batches: it catches up. */
const pruneEvery = 32
const prunedRows = 64

/** Admissions of one subject and policy. The running batch appends to `times`; the others are committed. */
type Window = {
  /** Oldest first. Those before `head` are deleted. */
  times: number[]
  head: number
  /** Sequence number of `times[0]`. */
  firstSeq: number
  committedLength: number
  /** Committed `times`, if the running batch does not only append. */
  committedTimes: number[] | undefined
}

/** Reads the log: with the changes of the running batch, or only what is committed. */
export type AdmissionView = {
  newest(subject: string, policy: StoredPolicy, until: number): Admission | undefined
  oldestAfter(subject: string, policy: StoredPolicy, after: number, skip: number): Admission | undefined
}

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
export function createAdmissionLog(connection: SqliteConnection, toNumber: (subject: string) => number) {
  const windows = new Map<number, Window>()
  /** Changes of the running batch, as pairs of a key and a time. A negative key forgets all admissions. */
  let changes: number[] = []
  let changesBeforeJob = 0
  /** Keys of the windows that the running batch changed. */
  const changedKeys = new Set<number>()
  /** Admissions up to this time leave memory when the batch ends; all windows are looked through if a sweep is due. */
  let expiredUntil = -Infinity
  let isSweepDue = false
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
      const [base = 0, ...pairs]: number[] = JSON.parse(entries)
      for (let i = 0; i < pairs.length; i += 2) applyChange(pairs[i] ?? 0, base + (pairs[i + 1] ?? 0))
      replayedSeq = seq
    }
    commitWindows()
    isCurrent = true
  }

  const toKey = (subject: string, policy: StoredPolicy) =>
    toNumber(subject) * 4 + storedPolicies.indexOf(policy)

  function note(key: number, at: number) {
    changes.push(key, at)
    applyChange(key, at)
  }

  function applyChange(signedKey: number, at: number) {
    const key = Math.abs(signedKey)
    let window = windows.get(key)
    if (!window) windows.set(key, (window = newWindow()))
    changedKeys.add(key)
    const { times } = window
    if (signedKey < 0) truncate(window, window.head)
    else if ((times.at(-1) ?? 0) > at)
      truncate(window, window.head + countUntil(times, window.head, times.length, at))
    if (signedKey > 0) times.push(at)
  }

  function commitWindows() {
    for (const key of changedKeys) {
      const window = windows.get(key)
      if (!window) continue
      window.committedTimes = undefined
      window.committedLength = window.times.length
      deleteExpired(key, window)
    }
    changedKeys.clear()
  }

  function rollBackWindows() {
    for (const key of changedKeys) {
      const window = windows.get(key)
      if (!window) continue
      if (window.committedTimes) window.times = window.committedTimes
      window.committedTimes = undefined
      window.times.length = window.committedLength
      if (count(window) === 0) windows.delete(key)
    }
    changedKeys.clear()
  }

  function deleteExpired(key: number, window: Window) {
    const { times } = window
    while (window.head < times.length && (times[window.head] ?? 0) <= expiredUntil) window.head++
    if (window.head === times.length) windows.delete(key)
    if (window.head < 64 || window.head * 2 < times.length) return
    times.splice(0, window.head)
    window.firstSeq += window.head
    window.committedLength -= window.head
    window.head = 0
  }

  const view = (isCommitted: boolean): AdmissionView => {
    function find(
      subject: string,
      policy: StoredPolicy,
      until: number,
      offset: number,
    ): Admission | undefined {
      catchUp()
      const window = windows.get(toKey(subject, policy))
      if (!window) return undefined
      const { head, firstSeq } = window
      const times = (isCommitted && window.committedTimes) || window.times
      const end = isCommitted ? window.committedLength : times.length
      const index = head + countUntil(times, head, end, until) + offset
      const at = times[index]
      return at === undefined || index < head || index >= end ? undefined : { at, seq: firstSeq + index }
    }
    return {
      newest: (subject, policy, until) => find(subject, policy, until, -1),
      oldestAfter: find,
    }
  }

  const participant: TransactionParticipant = {
    onJob() {
      changesBeforeJob = changes.length
    },

    onJobRollback() {
      if (changes.length === changesBeforeJob) return
      const kept = changes.slice(0, changesBeforeJob)
      rollBackWindows()
      changes = []
      for (let i = 0; i < kept.length; i += 2) note(kept[i] ?? 0, kept[i + 1] ?? 0)
    },

    beforeCommit() {
      if (changes.length === 0) return
      let base = 0
      for (let i = 1; i < changes.length; i += 2) base = Math.max(base, changes[i] ?? 0)
      const entries = [base, ...changes.map((value, i) => (i % 2 === 0 ? value : value - base))]
      writtenSeq = Number(statements().append.run(base, JSON.stringify(entries)).lastInsertRowid)
      if (batches++ % pruneEvery === 0) statements().prune.run(expiredUntil, prunedRows)
    },

    onCommit() {
      if (changes.length > 0) {
        changes = []
        replayedSeq = writtenSeq
        commitWindows()
      }
      if (isSweepDue) for (const [key, window] of windows) deleteExpired(key, window)
      isSweepDue = false
      expiredUntil = -Infinity
    },

    onRollback() {
      changes = []
      rollBackWindows()
      isSweepDue = false
      expiredUntil = -Infinity
    },

    onForeignCommit() {
      isCurrent = false
    },
  }

  return {
    participant,
    committed: view(true),
    /** For the running batch. */
    uncommitted: view(false),

    insert(admission: NewAdmission) {
      catchUp()
      const { subject, policy, at } = admission
      const key = toKey(subject, policy)
      if (key < storedPolicies.length) throw new Error(`an admission (${policy}) has an unknown subject`)
      expiredUntil = Math.max(expiredUntil, admission.expiredUntil)
      note(key, at)
    },

    forget(subject: string): number {
      catchUp()
      let forgotten = 0
      for (const policy of storedPolicies) {
        const key = toKey(subject, policy)
        const admissions = count(windows.get(key))
        if (admissions > 0) note(-key, 0)
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
      for (const [key, { times, head }] of windows) {
        const later = times.length - head - countUntil(times, head, times.length, now)
        for (let i = 0; i < later; i++) note(key, now)
      }
      statements().clamp.run(now)
    },

    deleteOldest(until: number, batchSize: number): boolean {
      catchUp()
      expiredUntil = Math.max(expiredUntil, until)
      isSweepDue = true
      return statements().prune.run(until, batchSize).changes === batchSize
    },
  }
}

const newWindow = (): Window => ({
  times: [],
  head: 0,
  firstSeq: 1,
  committedLength: 0,
  committedTimes: undefined,
})

const count = (window: Window | undefined) => (window ? window.times.length - window.head : 0)

/** Removes the newest admissions, and keeps those that are committed for the others and for a rollback. */
function truncate(window: Window, length: number): void {
  if (length < window.committedLength) window.committedTimes ??= window.times.slice(0, window.committedLength)
  window.times.length = length
}

/** Counts the times from `start` to `end` that are not later than `until`, by binary search. */
function countUntil(times: readonly number[], start: number, end: number, until: number): number {
  let low = start
  let high = end
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) > until) high = middle
    else low = middle + 1
  }
  return low - start
}

function lazy<T>(create: () => T): () => T {
  let value: T | undefined
  return () => (value ??= create())
}
