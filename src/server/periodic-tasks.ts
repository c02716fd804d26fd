import type { Pace } from '../domain/upkeep/retention.ts'
import type { Log } from '../log/log.ts'

/**
 * Repeats a task, never two at a time.
 *
 * @param task is told whether to come to its end
 * @returns ends it, after the one that runs
 */
export function every(
  ms: number,
  log: Log,
  task: (hasEnded: () => boolean) => Promise<unknown>,
): () => Promise<void> | undefined {
  let running: Promise<void> | undefined
  let ended = false
  const start = () => (running = run())
  let timer = setTimeout(start, ms)
  async function run() {
    try {
      await task(() => ended)
    } catch (error) {
      log.error('a periodic task failed', { error })
    }
    if (!ended) timer = setTimeout(start, ms)
  }
  return () => {
    ended = true
    clearTimeout(timer)
    return running
  }
}

/** Little at a time and with pauses: 100 rows take some milliseconds, and calls wait for them. */
export const purgePace = (hasEnded: () => boolean): Pace => ({
  chunk: 100,
  async goOn() {
    await new Promise((resolve) => setTimeout(resolve, 10))
    return !hasEnded()
  },
})
