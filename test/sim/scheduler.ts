const nextMacrotask = globalThis.setImmediate

/** A call at a time of the simulation. */
export type Scheduled = { at: number; order: number; call: (() => void) | undefined }

export type Scheduler = ReturnType<typeof createScheduler>

/**
 * Runs calls in the order of their simulated times; those of one time in the order in which they were scheduled. Between two
 * calls all promises settle, so that nothing depends on how fast the machine is.
 *
 * @param startAt milliseconds since the epoch
 */
export function createScheduler(startAt: number) {
  const heap: Scheduled[] = []
  /** Work of other threads, such as a signature: it is awaited before the next call, and takes no simulated time. */
  const outside: Array<{ work: Promise<unknown>; deliver: () => void }> = []
  let now = startAt
  let order = 0
  let calls = 0
  const state = { isEnded: false }

  const isBefore = (a: Scheduled, b: Scheduled) => a.at < b.at || (a.at === b.at && a.order < b.order)

  function push(one: Scheduled) {
    heap.push(one)
    let index = heap.length - 1
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (!parent || !isBefore(one, parent)) break
      heap[index] = parent
      index = above
    }
    heap[index] = one
  }

  function pop(): Scheduled | undefined {
    const [first] = heap
    const last = heap.pop()
    if (!first || !last || heap.length === 0) return first
    let index = 0
    for (;;) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      const isRight = left !== undefined && right !== undefined && isBefore(right, left)
      const child = isRight ? right : left
      if (!child || !isBefore(child, last)) break
      heap[index] = child
      index = isRight ? 2 * index + 2 : 2 * index + 1
    }
    heap[index] = last
    return first
  }

  /** Lets all promises settle, and delivers the results of other threads in the order in which they were asked for. */
  async function settle(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => void nextMacrotask(resolve))
      if (outside.length === 0) return
      const done = outside.splice(0)
      await Promise.allSettled(done.map(({ work }) => work))
      for (const { deliver } of done) deliver()
    }
  }

  return {
    now: () => now,
    /** Number of calls that were run. */
    calls: () => calls,

    /** Schedules a call. @returns cancels it */
    after(ms: number, call: () => void): () => void {
      const one: Scheduled = { at: now + Math.max(0, ms), order: order++, call }
      push(one)
      return () => void (one.call = undefined)
    },

    /** Awaits the work of another thread before anything else happens. */
    outside<T>(work: Promise<T>): Promise<T> {
      const result = Promise.withResolvers<T>()
      outside.push({ work, deliver: () => void work.then(result.resolve, result.reject) })
      return result.promise
    },

    /** Runs all calls until a time. */
    async runUntil(until: number): Promise<void> {
      await settle()
      while (!state.isEnded) {
        const next = heap[0]
        if (!next || next.at > until) break
        pop()
        const { call } = next
        if (!call) continue
        now = Math.max(now, next.at)
        calls++
        call()
        await settle()
      }
      if (!state.isEnded) now = Math.max(now, until)
    },

    /** Runs no further call. */
    end: () => void (state.isEnded = true),
  }
}
