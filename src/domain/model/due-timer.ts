import { hourMs } from '../../shared/durations.ts'

/** Reports commits that changed rows. */
export type RowChanges = {
  /**
   * Calls a listener right after each commit, before it is on disk. The listener must be quick.
   *
   * @param listener `isForeign`: another process committed, perhaps a while ago
   * @returns ends the calls
   */
  subscribe(listener: (isForeign: boolean) => unknown): () => void
}

/**
 * Leaves out the commits of this process, for work that starts without them.
 *
 * @param isUrgent false: a worker wakes for them as for commits of this process, so within its interval
 */
export const onlyForeign = (changes: RowChanges, isUrgent = true): RowChanges => ({
  subscribe: (listener) => changes.subscribe((isForeign) => isForeign && listener(isUrgent)),
})

/** Calls a function once, after that many milliseconds. @returns cancels it */
export type After = (ms: number, call: () => void) => () => void

/** A safety net: no worker sleeps longer. */
const sleepMsMax = hourMs

/**
 * Wakes a worker whose work is in rows that become due. After a round the worker calls `rearm`: it sleeps until the first row
 * is due, and reads nothing until then unless rows change. A commit wakes it within `pollMs`, which gathers the changes of a
 * busy server.
 *
 * @param needs.untilDueMs reads how long it takes until the first row is due; infinite if there is none
 * @param needs.changes undefined if other processes change rows unnoticed (PostgreSQL): the worker wakes every `pollMs`
 * @param needs.pauseMs shortest pause between two rounds when a row is due; 0 by default
 * @param needs.onError called when `untilDueMs` fails; it is repeated after `pollMs`
 */
export function createDueTimer(needs: {
  wake(): void
  untilDueMs(): Promise<number>
  after: After
  changes: RowChanges | undefined
  pollMs: number
  pauseMs?: number
  onError(error: unknown): void
}) {
  const { wake, untilDueMs, after, changes, pollMs, pauseMs = 0, onError } = needs
  let cancel = () => {}
  /** Whether the worker is about to wake because of a change, or at work. */
  let isSoon = false
  /** How soon the worker must wake, also if no row is due. */
  let withinMs = pollMs
  let isStarted = false
  let unsubscribe = () => {}

  function arm(ms: number) {
    cancel()
    isSoon = ms <= pollMs
    cancel = after(ms, wake)
  }

  function onChange(isForeign: boolean) {
    withinMs = Math.min(withinMs, isForeign ? 0 : pollMs)
    // One of another process has waited long enough.
    if (isForeign || !isSoon) arm(withinMs)
  }

  return {
    /** Starts to wake the worker, the first time after `pollMs` unless `rearm` is called before. */
    start(): void {
      isStarted = true
      if (changes) unsubscribe = changes.subscribe(onChange)
      arm(pollMs)
    },

    /** Sets the timer after a round. Never rejects. */
    async rearm(): Promise<void> {
      if (!isStarted) return
      if (!changes && pauseMs >= pollMs) return arm(pollMs)
      // Before the read: it sees the changes until now.
      withinMs = changes ? sleepMsMax : pollMs
      let dueInMs = pollMs
      try {
        dueInMs = await untilDueMs()
      } catch (error) {
        onError(error)
      }
      // A row that is due and was left waits for capacity, or for another process.
      if (isStarted) arm(Math.min(withinMs, dueInMs > 0 ? Math.max(dueInMs, pauseMs) : pollMs))
    },

    /** Sets the timer after a round that failed. */
    retry(): void {
      if (isStarted) arm(pollMs)
    },

    stop(): void {
      isStarted = false
      unsubscribe()
      cancel()
    },
  }
}
