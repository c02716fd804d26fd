import type { Clock } from '../model/clock.ts'
import type { RateLimit, RateState } from '../model/rate-limit.ts'
import { rateLimited, toRateState } from './rate-limit.ts'

/** The calls of one subject that are in the window: their times, oldest first. */
type Calls = { times: number[]; expiresAt: number }

/** Each call adds at most one subject, so removing two keeps the map from growing. */
const removalsPerCall = 2

/**
 * Creates a sliding-window log in the memory of this process: cheap enough for every call, but each node counts alone,
 * and a restart forgets. `chargeRateLimit` is for limits that must hold across both. It keeps eight bytes for each
 * admitted call of the last window, and nothing of subjects without one.
 */
export function createMemoryRateLimiter(clock: Clock) {
  /** In the order of the last calls. */
  const callsBySubject = new Map<string, Calls>()

  function removeIdle(now: number) {
    let removals = 0
    for (const [key, { expiresAt }] of callsBySubject) {
      if (expiresAt > now || removals++ === removalsPerCall) return
      callsBySubject.delete(key)
    }
  }

  function take(limit: RateLimit): { isAdmitted: boolean; state: RateState | undefined } {
    const now = clock.now()
    removeIdle(now)
    const key = `${limit.policy} ${limit.subject}`
    const times = callsBySubject.get(key)?.times ?? []
    forgetOld(times, now, limit.windowMs)
    const isAdmitted = times.length < limit.limit
    if (isAdmitted) {
      times.push(now)
      callsBySubject.delete(key)
      callsBySubject.set(key, { times, expiresAt: now + limit.windowMs })
    }
    // If the limit was lowered, more than one call must leave the window first.
    const expiringAt = times[Math.max(0, times.length - limit.limit)]
    return { isAdmitted, state: toRateState(limit, { used: times.length, expiringAt }, now) }
  }

  return {
    /**
     * Admits and counts a call, or refuses it. The limit holds in every window of that length.
     *
     * @returns undefined if there is no limit
     * @throws RATE_LIMITED (`reason`); a refused call does not count
     */
    charge(limit: RateLimit, reason: string): RateState | undefined {
      const { isAdmitted, state } = take(limit)
      if (state && !isAdmitted) throw rateLimited(limit, state, reason)
      return state
    },

    /** Admits and counts a call as `charge`. @returns whether it is admitted */
    admits: (limit: RateLimit): boolean => take(limit).isAdmitted,

    /** Number of subjects in memory. */
    subjects: () => callsBySubject.size,
  }
}

/** Removes the calls that have left the window, and those of a clock that has since been set back. */
function forgetOld(times: number[], now: number, windowMs: number) {
  const isInWindow = (time: number) => time > now - windowMs && time <= now
  const first = times.findIndex(isInWindow)
  times.splice(0, first === -1 ? times.length : first)
  while ((times.at(-1) ?? now) > now) times.pop()
}
