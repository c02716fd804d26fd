import { createClockStepDetector, type Clock } from '../domain/model/clock.ts'
import type { PurgeThrottle } from '../domain/upkeep/retention.ts'
import type { Log } from '../log/log.ts'

/**
 * Repeats a task, never two at a time.
 *
 * @param task is told whether to come to its end
 * @returns ends it, after the one that runs
 */
export function startPeriodicTask(
  intervalMs: number,
  log: Log,
  task: (isStopping: () => boolean) => Promise<unknown>,
): () => Promise<void> | undefined {
  let running: Promise<void> | undefined
  let isStopped = false
  const start = () => (running = run())
  let timer = setTimeout(start, intervalMs)
  async function run() {
    try {
      await task(() => isStopped)
    } catch (error) {
      log.error('a periodic task failed', { error })
    }
    if (!isStopped) timer = setTimeout(start, intervalMs)
  }
  return () => {
    isStopped = true
    clearTimeout(timer)
    return running
  }
}

/** Little at a time and with pauses: 100 rows take some milliseconds, and calls wait for them. */
export const createPurgeThrottle = (isStopping: () => boolean): PurgeThrottle => ({
  batchSize: 100,
  async yieldToRequests() {
    await new Promise((resolve) => setTimeout(resolve, 10))
    return !isStopping()
  },
})

/**
 * Tells the log when the system clock is set while the server runs. Tokens and signatures, which others compare with
 * clocks of their own, go by the new time at once; limits and lifetimes would end early or late if they did, too.
 *
 * @returns to be called now and then
 */
export function createClockStepLogger(clock: Clock, wallClock: Clock, log: Log): () => void {
  const nextStep = createClockStepDetector(clock, wallClock)
  return () => {
    const aheadMs = nextStep()
    if (aheadMs === undefined) return
    log.warn(
      'the system clock was set. The times that otpd stores and answers follow it when it is started anew.',
      { aheadSeconds: Math.round(aheadMs / 1000) },
    )
  }
}
