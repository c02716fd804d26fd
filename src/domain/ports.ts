/** What the rules need from the outside world. Tests pass their own. */

export type Clock = {
  /** Milliseconds since the epoch; never falls while the process lives. */
  now(): number
}

/** An uptime in whole seconds wavers by one against a clock of milliseconds. */
const uptimeErrorMs = 2000

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
  const offset = wallNow() - monotonicNow()
  const awakeSince = uptimeSeconds() * 1000 - monotonicNow()
  let sleptMs = 0
  return {
    now() {
      const monotonic = monotonicNow()
      const behindMs = uptimeSeconds() * 1000 - monotonic - awakeSince - sleptMs
      if (behindMs > uptimeErrorMs) sleptMs += behindMs
      return Math.floor(offset + monotonic + sleptMs)
    },
  }
}

/** Fills the array with bytes that nobody can predict. */
export type Random = (bytes: Uint8Array<ArrayBuffer>) => unknown
