const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** What comes after the first attempt, which is made at once. */
const retryScheduleMs = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour]

/** Of every wait, both ways, so that a receiver that was away is not met by all that failed at one moment. */
const jitter = 0.2

/**
 * How long to wait after a failed attempt.
 *
 * @param failures how many there were of this delivery, this one included
 * @param requestedMs what the receiver asked for: heeded from one to two times the planned wait
 * @param random from 0 up to 1
 * @returns milliseconds; null where that was the last attempt
 */
export function retryDelayMs(
  failures: number,
  requestedMs: number | null,
  random: () => number,
): number | null {
  const step = retryScheduleMs[failures - 1]
  if (step === undefined) return null
  const planned = Math.round(step * (1 - jitter + 2 * jitter * random()))
  return requestedMs === null ? planned : Math.max(planned, step, Math.min(requestedMs, 2 * step))
}

/** Reads a `Retry-After` (RFC 9110 §10.2.3): seconds, or a date. @returns milliseconds from now; null where unreadable */
export function readRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  if (/^\d{1,9}$/.test(value)) return Number(value) * second
  const date = /^[A-Z][a-z]{2,8},? .{10,40}$/.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}
