import { createClockStepDetector, type Clock } from '../domain/model/clock.ts'
import { createDueWorker, type RowChanges } from '../domain/model/due-worker.ts'
import type { PurgeThrottle } from '../domain/upkeep/retention.ts'
import type { UnreadableValue } from '../store/engine/sealing.ts'
import type { Log } from '../log/log.ts'
import type { World } from '../world/world.ts'

/**
 * Runs a task periodically; runs never overlap. The interval starts at the end of a run. With `due`, a task whose work is in
 * rows runs only when a row is due or rows have changed: see `createDueWorker`.
 *
 * @param task receives a function that tells whether the task should return early because it is being stopped
 * @returns stops the task and resolves when a run in progress has ended
 */
export function startPeriodicTask(
  intervalMs: number,
  { timers }: Pick<World, 'timers'>,
  log: Log,
  task: (isStopping: () => boolean) => Promise<unknown>,
  due: { changes: RowChanges | undefined; untilDueMs?: () => Promise<number> } = { changes: undefined },
): () => Promise<void> | undefined {
  let isStopped = false
  const worker = createDueWorker({
    async runRound() {
      await task(() => isStopped)
      return false
    },
    ...due,
    after: timers.after,
    pollMs: intervalMs,
    pauseMs: intervalMs,
    onError: (error) => log.error('a periodic task failed', { error }),
  })
  worker.start()
  return () => {
    isStopped = true
    worker.stop()
    return worker.running()
  }
}

/** Limits a purge to small batches with pauses: 100 rows take a few milliseconds, during which requests wait. */
export const createPurgeThrottle = (
  { timers }: Pick<World, 'timers'>,
  isStopping: () => boolean,
): PurgeThrottle => ({
  batchSize: 100,
  async yieldToRequests() {
    await timers.sleep(10)
    return !isStopping()
  },
})

/**
 * Logs a warning when the system clock is set while the server runs. Tokens and signatures, which other systems compare
 * with their own clocks, use the new time immediately. Limits and lifetimes keep using monotonic time, since they would
 * otherwise end early or late; those of a shared database are the database's.
 *
 * @returns the check, to be called periodically
 */
export function createClockStepLogger(
  { clock, wall, isShared }: { clock: Clock; wall: Clock; isShared: boolean },
  log: Log,
): () => void {
  const stored = isShared
    ? 'times that otpd stores are those of the database'
    : 'times that otpd stores and returns follow it after a restart'
  const nextStep = createClockStepDetector(clock, wall)
  return () => {
    const aheadMs = nextStep()
    if (aheadMs === undefined) return
    log.warn(`the system clock was set; ${stored}`, { aheadSeconds: Math.round(aheadMs / 1000) })
  }
}

/** Values that are reported once each; after that many, all are forgotten. */
const reportedMax = 1_000

/** Creates a function that logs each value that cannot be decrypted once, although lists read it again and again. */
export function createUnreadableReporter(log: Log): (value: UnreadableValue) => void {
  const reported = new Set<string>()
  return ({ column, row }) => {
    const name = `${column} ${row}`
    if (reported.has(name)) return
    if (reported.size >= reportedMax) reported.clear()
    reported.add(name)
    log.error('a stored value cannot be decrypted: it was changed, or its key is missing', { column, row })
  }
}

/** Drops calls that follow another too soon, so that callers cannot flood the log. */
export function atMostEvery<A extends unknown[]>(
  ms: number,
  clock: Clock,
  call: (...args: A) => void,
): (...args: A) => void {
  let nextAt = -Infinity
  return (...args) => {
    if (clock.now() < nextAt) return
    nextAt = clock.now() + ms
    call(...args)
  }
}
