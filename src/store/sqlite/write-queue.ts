import type { Database as SqliteConnection } from 'bun:sqlite'
import type { CallGroup, QueryExecutor } from '../engine/database.ts'
import { systemWorld, type World } from '../../world/system.ts'
import { createCommitFlusher, type DiskSync } from './disk-sync.ts'
import { canRunAgain, isAlone, takeTogether } from '../engine/repeated-calls.ts'
import { type TransactionHooks, watchForeignCommits } from './memory-state.ts'
import {
  ForeignCommitError,
  isBusy,
  isDiskFault,
  createErrorConverter,
  unavailable,
} from '../engine/errors.ts'

const batchMax = 256
const waitingMax = 10_000
const busyTimeoutMs = 3_000

type Job = {
  body: (tx: QueryExecutor) => unknown
  /** Set for a call, whose body only reads; its changes are written with those of the batch's other calls. */
  group: CallGroup | undefined
  settled: PromiseWithResolvers<unknown>
  queuedAt: number
  /** Set for a job that runs in a transaction of its own: the error of the one that it was in. */
  failure?: unknown
  outcome?: { value: unknown } | { error: unknown }
  /** Called once the job is on disk. */
  onFlushed?: (() => void) | undefined
}

export type WriteQueueHooks = {
  /** The system's by default. */
  world?: World
  /** In the order in which they are called. */
  transactionHooks?: readonly TransactionHooks[]
  /** Called right after each commit that changed rows, when readers see the changes. */
  onChanged?(): void
  /**
   * Called once when a commit fails and its outcome is unknown. The process must exit: SQLite would carry on as if nothing
   * had happened, and rejected writes may be in the file after a restart.
   */
  onDiskFault(error: unknown): void
  /** Called with the driver's code of each error for which callers are told to retry, such as `SQLITE_FULL`. */
  onUnavailable?: ((code: string) => void) | undefined
  /** Brings commits to disk. Without it, each COMMIT must do so itself. */
  disk?: DiskSync | undefined
  /**
   * Called at the beginning of a batch, inside its transaction, if another connection has committed since the last one,
   * and in the first batch. A throw rejects the batch and all later writes, as a disk fault does.
   */
  onForeignCommit?(connection: SqliteConnection): void
  /** Called before each batch. A throw rejects the writes that wait, and no later ones. */
  requireFiles?(): void
}

/**
 * Creates the write queue, which does group commit: concurrent writes share one `BEGIN IMMEDIATE … COMMIT`, and none
 * resolves before the commit is on disk. The next batch gathers while the commit goes to the disk, so no delay is
 * added, and the HTTP requests of its callers are read in the meantime.
 *
 * Calls of a group write nothing themselves: what all of them changed is written once, in the order of keys, which
 * touches fewer pages.
 *
 * By convention bodies validate before they write, and calls write nothing, so rollbacks are rare: if the changes of the
 * calls cannot be written, or a body fails after it wrote, the batch is rolled back and each of its jobs runs again in a
 * transaction of its own. A savepoint for each would make SQLite copy every page that it changes.
 *
 * Another process's lock is polled with a timer, never waited for inside SQLite, which would block the event loop.
 * Writes that have waited for three seconds are rejected with UNAVAILABLE.
 */
export function createWriteQueue(connection: SqliteConnection, tx: QueryExecutor, hooks: WriteQueueHooks) {
  const { world = systemWorld, transactionHooks = [], onDiskFault, disk } = hooks
  const toCallerError = createErrorConverter(hooks.onUnavailable)
  const begin = connection.prepare('BEGIN IMMEDIATE')
  const commit = connection.prepare('COMMIT')
  const rollback = connection.prepare('ROLLBACK')
  const changes = connection.prepare<{ count: number }, []>('SELECT total_changes() AS count')
  const countChangedRows = () => changes.get()?.count ?? 0
  /** Counts the changes of the transaction, also those that are in memory until it commits. */
  const countChanges = () =>
    transactionHooks.reduce((sum, { countPending }) => sum + (countPending?.() ?? 0), countChangedRows())
  const flusher = createCommitFlusher<Job>(disk, {
    settle(jobs) {
      for (const job of jobs) {
        if (job.outcome && 'value' in job.outcome) job.settled.resolve(job.outcome.value)
        else job.settled.reject(toCallerError(job.outcome?.error))
        job.onFlushed?.()
      }
    },
    fail(jobs, error) {
      for (const job of jobs) job.settled.reject(toCallerError(error))
      failPermanently(error)
    },
  })
  const foreignCommits = watchForeignCommits(connection, transactionHooks, hooks.onForeignCommit)

  let waiting: Job[] = []
  /** Whether a batch is scheduled or running. */
  let isActive = false
  let idleWaiters: Array<() => void> = []
  let isPoisoned = false

  const write = <T>(body: (tx: QueryExecutor) => Promise<T>) => enqueue<T>(body, undefined)

  /** See `Database.group`. */
  function group<C>(bind: (tx: QueryExecutor) => CallGroup<C>) {
    const calls = bind(tx)
    // Calls of all types are run by the same code; a call's R resolves its own promise only.
    return <R>(call: C) => enqueue<R>(() => calls.decide(call), calls as CallGroup)
  }

  function enqueue<T>(body: Job['body'], group: CallGroup | undefined): Promise<T> {
    const settled = Promise.withResolvers<T>()
    if (isPoisoned || waiting.length >= waitingMax) {
      settled.reject(unavailable(isPoisoned ? 'DISK_FAULT' : 'WRITE_QUEUE_FULL'))
      return settled.promise
    }
    // Jobs of all types are run by the same code; a body's T resolves this job's promise only.
    const job = {
      body,
      group,
      settled: settled as PromiseWithResolvers<unknown>,
      queuedAt: world.monotonic(),
    }
    waiting.push(job)
    schedule()
    return settled.promise
  }

  function schedule() {
    if (isActive) return
    isActive = true
    world.timers.setImmediate(runNextBatch)
  }

  async function runNextBatch() {
    if (flusher.isFull()) await flusher.wait()
    if (!beginBatch()) return
    const batch = takeTogether(waiting, batchMax)
    await runBatch(batch)
    isActive = false
    if (waiting.length > 0) schedule()
    else notifyIdle()
  }

  function notifyIdle() {
    for (const resolveIdle of idleWaiters.splice(0)) resolveIdle()
  }

  /** Begins the transaction of a batch. @returns false if it cannot begin now; a retry is scheduled if jobs wait */
  function beginBatch(): boolean {
    try {
      hooks.requireFiles?.()
      begin.run()
      foreignCommits.noteInTransaction()
      return true
    } catch (error) {
      if (isBusy(error)) {
        const oldestQueuedAt = world.monotonic() - busyTimeoutMs
        const expired = waiting.filter((job) => job.queuedAt < oldestQueuedAt)
        waiting = waiting.filter((job) => job.queuedAt >= oldestQueuedAt)
        for (const job of expired) job.settled.reject(toCallerError(error))
      } else {
        if (connection.inTransaction) rollback.run()
        for (const job of waiting.splice(0)) job.settled.reject(toCallerError(error))
        if (isDiskFault(error) || error instanceof ForeignCommitError) failPermanently(error)
      }
      if (waiting.length > 0) world.timers.setTimeout(runNextBatch, 3 + world.randomNumber() * 7)
      else {
        isActive = false
        notifyIdle()
      }
      return false
    }
  }

  /** Runs the jobs of a batch in the open transaction, and ends it. */
  async function runBatch(batch: Job[]): Promise<void> {
    // A body that waits for anything but `tx` lets the event loop turn while it holds the write lock: the whole batch
    // fails, so that tests find it.
    let hasTurnEnded = false
    const turnTimer = world.timers.setImmediate(() => (hasTurnEnded = true))
    const changedRowsBefore = countChangedRows()
    let hasRun = false
    let hasChanged = false
    try {
      await runJobs(batch)
      hasRun = true
      if (hasTurnEnded) throw new Error('a write awaited something other than its transaction')
      for (const one of transactionHooks) one.beforeCommit?.()
      hasChanged = countChangedRows() !== changedRowsBefore
      commit.run()
    } catch (error) {
      // A full disk or a failed read ends the whole transaction.
      return failBatch(batch, error, !hasRun && connection.inTransaction && canRunAgain(batch, error))
    } finally {
      world.timers.clearImmediate(turnTimer)
    }
    await endBatch(batch, hasChanged)
  }

  /**
   * Runs the bodies, one after the other; then the calls, each on what those before it decided; then writes what the calls
   * changed. Keeps each one's outcome.
   *
   * @throws the error of a job that left something behind, or that ended the transaction
   */
  async function runJobs(batch: Job[]): Promise<void> {
    const groups = new Set<CallGroup>()
    for (const job of batch)
      if (job.group) groups.add(job.group)
      else await runBody(job)
    for (const job of batch) if (job.group) runCall(job, job.group)
    for (const group of groups) await group.write()
  }

  async function runBody(job: Job): Promise<void> {
    const changesBefore = countChanges()
    try {
      job.outcome = { value: await job.body(tx) }
    } catch (error) {
      if (!connection.inTransaction || countChanges() !== changesBefore) throw error
      job.outcome = { error }
    }
  }

  function runCall(job: Job, group: CallGroup): void {
    if (isAlone(job)) group.prepareAlone(job.failure)
    try {
      job.outcome = { value: job.body(tx) }
    } catch (error) {
      if (!connection.inTransaction || canRunAgain([job], error)) throw error
      job.outcome = { error }
    }
  }

  function endCalls(batch: Job[], isCommitted: boolean) {
    const lastCalls = new Map(batch.map((job) => [job.group, job]))
    for (const [group, job] of lastCalls) job.onFlushed = group?.end(isCommitted)
  }

  /** Ends a batch whose transaction is committed. */
  async function endBatch(batch: Job[], hasChanged: boolean): Promise<void> {
    // Readers see the changes now, so memory must have them too.
    for (const one of transactionHooks) one.onCommit?.()
    endCalls(batch, true)
    flusher.add(batch, hasChanged)
    if (!hasChanged) return
    hooks.onChanged?.()
    if (!disk?.isCheckpointDue(batch.length)) return
    await flusher.wait()
    if (!isPoisoned) await disk.makeCheckpoint()
  }

  /**
   * Rolls back. The jobs may run again, each in a transaction of its own; another process may take the lock before, so they
   * wait for it again.
   */
  function failBatch(batch: Job[], error: unknown, runsAgain: boolean): void {
    if (connection.inTransaction) rollback.run()
    for (const one of transactionHooks) one.onRollback?.()
    endCalls(batch, false)
    if (runsAgain) {
      for (const job of batch) job.failure = error ?? new Error('a job failed')
      waiting.unshift(...batch)
      return
    }
    const callerError = toCallerError(error)
    for (const job of batch) job.settled.reject(callerError)
    if (isDiskFault(error)) failPermanently(error)
  }

  /** Rejects all further writes: a later commit could succeed although earlier data never reached the disk. */
  function failPermanently(error: unknown) {
    isPoisoned = true
    for (const job of waiting.splice(0)) job.settled.reject(toCallerError(error))
    onDiskFault(error)
  }

  /** Resolves when the queue is empty and all commits are on disk. */
  async function drain(): Promise<void> {
    if (isActive || waiting.length > 0) await new Promise<void>((resolve) => idleWaiters.push(resolve))
    await flusher.wait()
  }

  return {
    write,
    group,
    drain,
    whenDurable: flusher.whenDurable,
    noticeForeignCommits: foreignCommits.notice,
  }
}
