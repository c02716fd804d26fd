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
 * Creates a worker whose work is in rows that become due. It does its work in rounds, one at a time (single-flight). Calls of
 * `wake` are coalesced: one during a round causes another, so that a round that starts after it sees all the work.
 *
 * Between rounds the worker sleeps until the first row is due, and reads nothing unless rows change. A commit wakes it within
 * `pollMs`, which gathers the changes of a busy server.
 *
 * @param needs.runRound does the pending work; true requests another round at once. After an error it runs again in `pollMs`
 * @param needs.untilDueMs reads how long it takes until the first row is due; infinite, as by default, if there is none
 * @param needs.changes undefined if other processes change rows unnoticed (PostgreSQL): the worker wakes every `pollMs`
 * @param needs.pauseMs shortest pause between two rounds when a row is due; 0 by default
 * @param needs.onError called when `runRound` or `untilDueMs` fails
 */
export function createDueWorker(needs: {
  runRound(): Promise<boolean>
  untilDueMs?: () => Promise<number>
  after: After
  changes: RowChanges | undefined
  pollMs: number
  pauseMs?: number
  onError(error: unknown): void
}) {
  const { runRound, untilDueMs = async () => Infinity, after, changes, pollMs, pauseMs = 0, onError } = needs
  let cancel = () => {}
  /** Whether the worker is about to wake because of a change, or at work. */
  let isSoon = false
  /** How soon the worker must wake, also if no row is due. */
  let withinMs = pollMs
  let isStarted = false
  let isRequested = false
  let running: Promise<void> | undefined
  let unsubscribe = () => {}

  function wake() {
    isRequested = true
    // Deferred by a tick: a round that calls `wake` synchronously must find `running` set.
    running ??= Promise.resolve().then(run)
  }

  async function run() {
    while (isRequested) {
      isRequested = false
      try {
        if (await runRound()) isRequested = true
        else if (!isRequested) await rearm()
      } catch (error) {
        onError(error)
        if (isStarted) arm(pollMs)
      }
    }
    // In the same tick as the check of `isRequested`: a wake between the two would be lost.
    running = undefined
  }

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

  /** Sets the timer after a round. Never rejects. */
  async function rearm(): Promise<void> {
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
  }

  return {
    /** Starts the timer: the first round runs after `pollMs`, unless `wake` is called before. */
    start(): void {
      isStarted = true
      if (changes) unsubscribe = changes.subscribe(onChange)
      arm(pollMs)
    },

    /** Requests a round, also before `start`. Cheap to call often. */
    wake,

    /** The current run, or undefined when idle. */
    running: () => running,

    /** Stops the timer. A run in progress goes on. */
    stop(): void {
      isStarted = false
      unsubscribe()
      cancel()
    },
  }
}
