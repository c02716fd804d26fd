import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** Smaller rollbacks are ignored: no deadline is promised to the second. */
const clockRollbackMinMs = 5_000

/**
 * Repairs stored times after the system clock was set back while otpd was stopped. Call it before the first request is
 * served. Stored times are in the past by definition: a rollback must neither free a rate limit early nor extend it
 * beyond its window, so codes, locks, retries and sessions end earlier by the size of the rollback. A clock set forward
 * looks like downtime and needs no repair.
 *
 * @returns the minimum size of the rollback in milliseconds; 0 if there was none
 */
export const repairAfterClockRollback = ({
  store,
  clock,
}: {
  store: Store<'deadlines' | 'rateLimits'>
  clock: Clock
}): Promise<number> =>
  store.write(async (tx) => {
    const now = clock.now()
    const deadline = (await tx.deadlines.latestTimestamp(now)) ?? now
    const rollbackMs = Math.max(deadline, (await tx.rateLimits.latestTimestamp()) ?? now) - now
    await tx.rateLimits.clampToNow(now)
    if (rollbackMs < clockRollbackMinMs) return 0
    await tx.deadlines.shiftDeadlines(rollbackMs, now)
    return rollbackMs
  })
