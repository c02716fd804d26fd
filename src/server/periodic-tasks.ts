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
