/**
 * Creates work that is done in transactions of its own, behind the calls, one run at a time. A run that fails is repeated
 * when the work is started again, so it must lose nothing.
 *
 * @param run ends early if it finds that the work was closed
 */
export function createBackgroundWork(run: (isClosed: () => boolean) => Promise<void>) {
  let running: Promise<void> | undefined
  let isClosed = false
  return {
    /** Starts a run, if none is under way. */
    start(): void {
      if (running || isClosed) return
      running = run(() => isClosed)
        .catch(() => {})
        .finally(() => (running = undefined))
    },
    /** Resolves when the run that is under way has ended. */
    async close(): Promise<void> {
      isClosed = true
      await running
    },
  }
}
