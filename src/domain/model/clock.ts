/** What the rules need from the outside world. Tests pass their own. */

export type Clock = {
  /** Milliseconds since the epoch; never falls while the process lives. */
  now(): number
}

/** An uptime in whole seconds wavers by one against a clock of milliseconds. */
const uptimeToleranceMs = 2000

/** Asking the machine takes longer than all else of reading the clock. */
const uptimeReadIntervalMs = 1

/**
 * A clock that follows the wall at its start and monotonic time from then on, so that a step of the system
 * clock neither frees a rate limit early nor expires a code. While a machine sleeps monotonic time stands still, and
 * other people's does not: their tokens would come from the future. So it is moved on by what its uptime tells of sleep.
 *
 * @param uptimeSeconds since the machine's start, sleep included
 */
export function systemClock(
  wallNow: () => number,
  monotonicNow: () => number,
  uptimeSeconds: () => number,
): Clock {
  const wallOffsetMs = wallNow() - monotonicNow()
  const uptimeOffsetMs = uptimeSeconds() * 1000 - monotonicNow()
  let sleptMs = 0
  let uptimeReadAt = monotonicNow()
  return {
    now() {
      const monotonic = monotonicNow()
      if (monotonic - uptimeReadAt >= uptimeReadIntervalMs) {
        uptimeReadAt = monotonic
        const behindMs = uptimeSeconds() * 1000 - monotonic - uptimeOffsetMs - sleptMs
        if (behindMs > uptimeToleranceMs) sleptMs += behindMs
      }
      return Math.floor(wallOffsetMs + monotonic + sleptMs)
    },
  }
}

/** How far the two may be apart: what a careful administrator's `date` or a leap second may do. */
const stepMinMs = 5000

/**
 * Watches the system's clock for steps, which `systemClock` does not follow.
 *
 * @returns to be called now and then; how far the wall is ahead of the clock where that has changed since it was last
 *   told, by more than five seconds
 */
export function createClockStepDetector(clock: Clock, wallClock: Clock): () => number | undefined {
  let lastReportedMs = 0
  return () => {
    const aheadMs = wallClock.now() - clock.now()
    if (Math.abs(aheadMs - lastReportedMs) <= stepMinMs) return undefined
    lastReportedMs = Math.abs(aheadMs) <= stepMinMs ? 0 : aheadMs
    return aheadMs
  }
}
