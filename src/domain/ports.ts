/** What the rules need from the outside world. Tests pass their own. */

export type Clock = {
  /** Milliseconds since the epoch; never falls while the process lives. */
  now(): number
}

/**
 * A clock that follows the wall at its start and monotonic time from then on, so that a step of the system
 * clock neither frees a rate limit early nor expires a code.
 */
export function systemClock(wallNow: () => number, monotonicNow: () => number): Clock {
  const offset = wallNow() - monotonicNow()
  return { now: () => Math.floor(offset + monotonicNow()) }
}

/** Fills the array with bytes that nobody can predict. */
export type Random = (bytes: Uint8Array<ArrayBuffer>) => unknown
