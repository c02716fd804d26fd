/**
 * Single-flight loop: runs rounds of work one at a time and coalesces wakes. A `wake` during a round, or
 * during `onIdle`, causes another round, so that all work that existed before the `wake` is seen by a round
 * that starts after it.
 *
 * @param runRound does the pending work; true requests another round at once. Must not reject
 * @param onIdle runs when no round is requested, for example to set a timer. Must not reject
 */
export function createCoalescingRunner(
  runRound: () => Promise<boolean>,
  onIdle: () => Promise<void> = async () => {},
) {
  let isRequested = false
  let running: Promise<void> | undefined

  async function run() {
    while (isRequested) {
      isRequested = false
      if (await runRound()) isRequested = true
      if (!isRequested) await onIdle()
    }
    // In the same tick as the check of `isRequested`: a wake between the two would be lost.
    running = undefined
  }

  return {
    /** Requests a round. Cheap to call often. */
    wake(): void {
      isRequested = true
      // Deferred by a tick: a round that calls `wake` synchronously must find `running` set.
      running ??= Promise.resolve().then(run)
    },

    /** The current run, or undefined when idle. */
    running: () => running,
  }
}
