import type { World } from '../world/world.ts'

/**
 * Calls of one developer that a node handles at the same time, and as many views of the ready page. With three, a developer
 * never holds all connections of a node to PostgreSQL, and a batch of SQLite has at most three of its writes.
 */
const concurrentMax = 3
/** A call that takes longer, such as one that waits for a webhook receiver, no longer counts. */
const heldMaxMs = 1000

export type CallTurns = {
  /**
   * Waits until fewer calls of the subject, such as a developer, are handled than may be. They go on in the order of their
   * arrival. `end` must follow, also after a failure.
   *
   * @returns whether it had to wait
   */
  begin(request: Request, subject: string): Promise<boolean>
  /** Lets the next call go on. Does nothing for a request that has not begun. */
  end(request: Request): void
}

/**
 * Limits the concurrent calls of each developer (bulkhead), so that a burst of calls by one developer delays no other: the
 * calls of a whole minute may come in one moment.
 */
export function createCallTurns({ timers }: Pick<World, 'timers'>): CallTurns {
  /** Functions that end the turns of calls in progress. */
  const begun = new WeakMap<Request, () => void>()
  const busy = new Map<string, { running: number; waiting: Array<() => void> }>()

  async function begin(request: Request, subject: string): Promise<boolean> {
    const calls = busy.get(subject) ?? { running: 0, waiting: [] }
    busy.set(subject, calls)
    const mustWait = calls.running >= concurrentMax
    if (!mustWait) calls.running++
    else await new Promise<void>((resolve) => calls.waiting.push(resolve))
    const letNextGo = () => {
      const next = calls.waiting.shift()
      if (next) next()
      else if (--calls.running === 0) busy.delete(subject)
    }
    const end = () => {
      timers.clearTimeout(timer)
      // In the next turn of the event loop: on SQLite calls wait for nothing, and the loop would handle all that have arrived
      // one after the other, before anything of others.
      if (begun.delete(request)) timers.setImmediate(letNextGo)
    }
    const timer = timers.setTimeout(end, heldMaxMs)
    timer.unref()
    begun.set(request, end)
    return mustWait
  }

  return { begin, end: (request) => begun.get(request)?.() }
}
