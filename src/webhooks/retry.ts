import { hourMs, minuteMs, secondMs } from '../shared/durations.ts'

/** Delays between attempts; the first attempt is made immediately. */
const retryScheduleMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  10 * hourMs,
]

/**
 * Fraction of each delay, in both directions, so that a recovering receiver does not get all retries at once.
 */
const jitter = 0.2

/**
 * Delay before the next attempt, from a fixed backoff schedule with jitter.
 *
 * @param failures failed attempts of this delivery so far, including this one
 * @param requestedMs the receiver's `Retry-After`; honored between one and two times the scheduled delay
 * @param random returns a number in [0, 1)
 * @returns milliseconds; null after the last attempt
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

/**
 * Parses `Retry-After` (RFC 9110 §10.2.3): seconds or a date.
 *
 * @returns milliseconds from now; null if unreadable
 */
export function readRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  if (/^\d{1,9}$/.test(value)) return Number(value) * secondMs
  const date = /^[A-Z][a-z]{2,8},? .{10,40}$/.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}
