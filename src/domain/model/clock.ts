/** Source of time for the domain. Tests pass their own. */
export type Clock = {
  /** Milliseconds since the epoch; never falls while the process lives. */
  now(): number
  /** On PostgreSQL: takes over a time that the database told. @returns the time now, not before the last one */
  follow?(databaseTime: number): number
}

/** Uptime has a resolution of one second, so it can differ by that much from a clock in milliseconds. */
const uptimeToleranceMs = 2000

/** Reading the uptime is the slowest part of reading the clock, so it is cached for this long. */
const uptimeReadIntervalMs = 1

/**
 * Creates a clock that starts at wall time and follows monotonic time from then on, so that a step of the
 * system clock neither frees a rate limit early nor expires a code. Monotonic time stops while the machine is
 * suspended, which would make tokens of other machines appear to come from the future; the clock therefore
 * adds the suspended time, which it derives from the uptime.
 *
 * @param uptimeSeconds seconds since boot, time in suspend included
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

/**
 * Creates a clock that goes with the database's, which all nodes share: monotonic time from the last time that the
 * database told. It is behind by the answer's way through the network at most.
 *
 * @param databaseTime milliseconds since the epoch, just read
 */
export function databaseClock(monotonicNow: () => number, databaseTime: number): Required<Clock> {
  let offsetMs = databaseTime - monotonicNow()
  let last = databaseTime
  return {
    now() {
      last = Math.max(last, Math.floor(monotonicNow() + offsetMs))
      return last
    },
    follow(time) {
      offsetMs = time - monotonicNow()
      last = Math.max(last, time)
      return last
    },
  }
}

/** Smaller differences, from a leap second or a manual `date`, are not reported. */
const stepMinMs = 5000

/**
 * Detects steps of the system clock, which `systemClock` does not follow.
 *
 * @returns a function to call periodically: milliseconds by which the wall clock is ahead, or undefined
 *   unless that changed by more than 5 s since the last report
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
