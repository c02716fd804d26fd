import type { Database as SqliteConnection } from 'bun:sqlite'
import type { Builders } from './database.ts'
import { isBusy, isDiskFault, storeError, unavailable } from './errors.ts'

const batchMax = 256
const waitingMax = 10_000
const busyPatienceMs = 3_000

/** A job failed and has left something behind. */
const mustRunApart = Symbol()

type Job = {
  body: (tx: Builders) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  queuedAt: number
  outcome: { value: unknown } | { error: unknown } | undefined
}

/**
 * Group commit: the writes that wait together share one `BEGIN IMMEDIATE … COMMIT`, and none is answered before the
 * commit is on the disk. While one commit waits for the disk the next batch gathers, so that no delay has to be added.
 *
 * A savepoint would have SQLite copy every page that its job touches. Whoever refuses a call does so before he writes, so
 * that hardly anything is ever to be undone: where a job fails after it wrote, the batch is undone as a whole and run
 * again, then with a savepoint for each.
 *
 * The lock of another process is waited for with a timer and never inside SQLite, which would hold up the whole
 * event loop. After three seconds the writes that waited are refused with UNAVAILABLE.
 *
 * @param on.beforeCommit called before each commit
 * @param on.onDiskFault called once when a commit failed in a way that leaves its outcome unknown; the process must end
 */
export function createWriteQueue(
  connection: SqliteConnection,
  tx: Builders,
  { beforeCommit, onDiskFault }: { beforeCommit(): void; onDiskFault(error: unknown): void },
) {
  const begin = connection.prepare('BEGIN IMMEDIATE')
  const commit = connection.prepare('COMMIT')
  const rollback = connection.prepare('ROLLBACK')
  const savepoint = connection.prepare('SAVEPOINT job')
  const release = connection.prepare('RELEASE job')
  const undo = connection.prepare('ROLLBACK TO job')
  const changes = connection.prepare<{ count: number }, []>('SELECT total_changes() AS count')
  const countChanges = () => changes.get()?.count

  let waiting: Job[] = []
  let scheduled = false
  let idle: Array<() => void> = []
  let broken = false
  /** The next batch has savepoints. */
  let apart = false

  function write<T>(body: (tx: Builders) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (broken || waiting.length >= waitingMax) {
      reject(unavailable(broken ? 'DISK_FAULT' : 'WRITE_QUEUE_FULL'))
      return promise
    }
    // A job of any type is run and resolved by the same code; what goes in as T comes out as T.
    waiting.push({
      body,
      resolve: resolve as (value: unknown) => void,
      reject,
      queuedAt: performance.now(),
      outcome: undefined,
    })
    schedule()
    return promise
  }

  function schedule() {
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }

  async function flush() {
    if (!beginBatch()) return
    const batch = waiting.splice(0, batchMax)
    // Fires only if a body awaited something that takes a turn of the event loop.
    let turnEnded = false
    const turn = setImmediate(() => (turnEnded = true))
    const lost = await runBatch(batch)
    clearImmediate(turn)
    if (lost === mustRunApart) runAgain(batch)
    else if (lost !== undefined) failBatch(batch, lost)
    else if (turnEnded) failBatch(batch, new Error('a write awaited something other than its transaction'))
    else commitBatch(batch)
    scheduled = false
    if (waiting.length > 0) schedule()
    else for (const done of idle.splice(0)) done()
  }

  function beginBatch(): boolean {
    try {
      begin.run()
      return true
    } catch (error) {
      if (isBusy(error)) {
        const patienceEnds = performance.now() - busyPatienceMs
        const expired = waiting.filter((job) => job.queuedAt < patienceEnds)
        waiting = waiting.filter((job) => job.queuedAt >= patienceEnds)
        for (const job of expired) job.reject(storeError(error))
      } else {
        for (const job of waiting.splice(0)) job.reject(storeError(error))
        if (isDiskFault(error)) breakDown(error)
      }
      if (waiting.length > 0) setTimeout(flush, 3 + Math.random() * 7)
      else {
        scheduled = false
        for (const done of idle.splice(0)) done()
      }
      return false
    }
  }

  /** Returns the error that ended the whole transaction, if one did. */
  async function runBatch(batch: Job[]): Promise<unknown> {
    const savepoints = apart
    apart = false
    for (const job of batch) {
      if (savepoints) savepoint.run()
      const before = savepoints || countChanges()
      try {
        job.outcome = { value: await job.body(tx) }
      } catch (error) {
        // A full disk or a failed read undoes the transaction as a whole, the neighbours' part with it.
        if (!connection.inTransaction) return error
        if (savepoints) undo.run()
        else if (countChanges() !== before) return mustRunApart
        job.outcome = { error }
      }
      if (savepoints) release.run()
    }
    return undefined
  }

  /** Whoever waits for the lock meanwhile may get it, so that these wait for it again. */
  function runAgain(batch: Job[]) {
    rollback.run()
    apart = true
    waiting.unshift(...batch)
  }

  function commitBatch(batch: Job[]) {
    try {
      beforeCommit()
      commit.run()
    } catch (error) {
      failBatch(batch, error)
      return
    }
    for (const job of batch) {
      if (job.outcome && 'value' in job.outcome) job.resolve(job.outcome.value)
      else job.reject(storeError(job.outcome?.error))
    }
  }

  function failBatch(batch: Job[], error: unknown) {
    if (connection.inTransaction) rollback.run()
    const refused = storeError(error)
    for (const job of batch) job.reject(refused)
    if (isDiskFault(error)) breakDown(error)
  }

  /** Nothing may be acknowledged any more: a later commit can succeed although earlier data never reached the disk. */
  function breakDown(error: unknown) {
    broken = true
    for (const job of waiting.splice(0)) job.reject(storeError(error))
    onDiskFault(error)
  }

  /** Resolves when nothing waits any more. */
  function drain(): Promise<void> {
    if (!scheduled && waiting.length === 0) return Promise.resolve()
    return new Promise((resolve) => idle.push(resolve))
  }

  return { write, drain }
}
