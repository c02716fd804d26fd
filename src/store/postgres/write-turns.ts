import { systemWorld } from '../../world/system.ts'

/** Runs a transaction when it is its turn. */
type TakeTurn = <T>(run: () => Promise<T>) => Promise<T>

/**
 * Creates a semaphore for transactions, which take it in the order of their arrival, so that many of them never hold every
 * connection.
 *
 * @param concurrentMax how many run at the same time
 * @param waitMaxMs after which one that waits fails as it would without a free connection
 */
export function createWriteTurns(concurrentMax: number, waitMaxMs: number): TakeTurn {
  const { timers } = systemWorld
  const waiting = new Set<() => void>()
  let running = 0

  const waitForTurn = () =>
    new Promise<void>((resolve, reject) => {
      const begin = () => {
        timers.clearTimeout(timer)
        resolve()
      }
      const timer = timers.setTimeout(() => {
        waiting.delete(begin)
        reject(Object.assign(new Error('no turn to write'), { code: 'POSTGRES_CONNECTIONS_IN_USE' }))
      }, waitMaxMs)
      timer.unref()
      waiting.add(begin)
    })

  function end(): void {
    const [next] = waiting
    if (!next) {
      running--
      return
    }
    waiting.delete(next)
    next()
  }

  return async (run) => {
    if (running < concurrentMax) running++
    else await waitForTurn()
    try {
      return await run()
    } finally {
      end()
    }
  }
}
