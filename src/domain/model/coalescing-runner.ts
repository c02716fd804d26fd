/**
 * Runs rounds of work one at a time. A `wake` during a round, or during the rest that follows the last one, makes
 * another round follow, so that whatever was there before the `wake` is seen by a round that begins after it.
 *
 * @param runRound does what waits; true asks for another round at once. Must not reject
 * @param onIdle runs once nothing asks for a round, such as setting a timer. Must not reject
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
    // In the same step as the look at `asked`: a wake between the two would be lost.
    running = undefined
  }

  return {
    /** Costs nothing where it is called often. */
    wake(): void {
      isRequested = true
      // Not at once: a round that wakes the pump in its first step must find it running.
      running ??= Promise.resolve().then(run)
    },

    /** The run under way, or undefined while nothing runs. */
    running: () => running,
  }
}
