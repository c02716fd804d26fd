import { clockRollbackMinMs } from './deadlines.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

export type ClockRollbackRepair = ReturnType<typeof createClockRollbackRepair>

/** Puts what is recorded right before the first call is served. */
export function createClockRollbackRepair({ store, clock }: { store: Store; clock: Clock }) {
  return {
    /**
     * To be called before the first call is served. Whatever is recorded happened before now: a system clock that was
     * set back over a restart must neither free a rate limit early nor hold it for longer than its window, and codes,
     * locks, retries and sessions end as much earlier as the clock was set back. One that was set forward looks like a
     * server that did not run for so long.
     *
     * @returns how far back the clock was set at least, in milliseconds; 0 where it was not
     */
    repairAfterClockRollback: (): Promise<number> =>
      store.write(async (tx) => {
        const now = clock.now()
        const rollbackMs = ((await tx.deadlines.latestTimestamp(now)) ?? now) - now
        await tx.rateLimits.clampToNow(now)
        if (rollbackMs < clockRollbackMinMs) return 0
        await tx.deadlines.shiftDeadlines(rollbackMs, now)
        return rollbackMs
      }),
  }
}
