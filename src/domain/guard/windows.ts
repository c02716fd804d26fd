import { dayMs, minuteMs } from '../../shared/durations.ts'
import { guardHistoryMs, pendingMs } from '../model/guard.ts'

/** Messages, and codes that were verified. Fractions, since a sliding window cuts through its oldest bucket. */
export type Counts = { unverified: number; verified: number }

/**
 * Sliding-window counter over buckets of time.
 *
 * @property counts how the store keeps it: number of the newest bucket, then for each bucket, newest first, the
 *   unverified messages and the verified codes
 */
type Window = { bucketMs: number; buckets: number; isWhole: boolean; counts: number[] }

/** The windows of a country, in the order of `GuardCountry.windows`. */
export type CountryWindows = { pending: Window; recent: Window; day: Window; history: Window }

const shapes = {
  pending: { bucketMs: pendingMs, buckets: 2, isWhole: false },
  recent: { bucketMs: 30 * minuteMs, buckets: 2, isWhole: false },
  // Counts its oldest bucket in full, so that no 24 hours have more messages than a rule allows: 24 to 30 hours.
  day: { bucketMs: dayMs / 4, buckets: 5, isWhole: true },
  history: { bucketMs: guardHistoryMs, buckets: 2, isWhole: false },
} as const

/** Opens the windows that the store keeps. A list of another form counts as empty. */
export function openWindows(stored: readonly number[][]): CountryWindows {
  const open = (name: keyof CountryWindows, index: number): Window => {
    const shape = shapes[name]
    const counts = stored[index]
    const length = 1 + 2 * shape.buckets
    return { ...shape, counts: counts?.length === length ? [...counts] : Array<number>(length).fill(0) }
  }
  return {
    pending: open('pending', 0),
    recent: open('recent', 1),
    day: open('day', 2),
    history: open('history', 3),
  }
}

export const closeWindows = ({ pending, recent, day, history }: CountryWindows): number[][] =>
  [pending, recent, day, history].map(({ counts }) => counts)

/** Adds to the bucket of `at`, if the window still has it. Counts never become negative. */
export function addTo(window: Window, at: number, now: number, change: Counts): void {
  const { bucketMs, buckets, counts } = window
  moveTo(window, Math.floor(now / bucketMs))
  const age = (counts[0] ?? 0) - Math.floor(at / bucketMs)
  if (age < 0 || age >= buckets) return
  const place = 1 + 2 * age
  counts[place] = Math.max(0, (counts[place] ?? 0) + change.unverified)
  counts[place + 1] = Math.max(0, (counts[place + 1] ?? 0) + change.verified)
}

/** Counts what the window covers. */
export function countIn(window: Window, now: number): Counts {
  const { bucketMs, buckets, isWhole, counts } = window
  moveTo(window, Math.floor(now / bucketMs))
  const remaining = isWhole ? 1 : 1 - (now % bucketMs) / bucketMs
  const total = { unverified: 0, verified: 0 }
  for (let age = 0; age < buckets; age++) {
    const weight = age === buckets - 1 ? remaining : 1
    total.unverified += weight * (counts[1 + 2 * age] ?? 0)
    total.verified += weight * (counts[2 + 2 * age] ?? 0)
  }
  return total
}

/** Makes `bucket` the newest one. Does nothing if the clock was set back: the buckets then last longer. */
function moveTo({ buckets, counts }: Window, bucket: number): void {
  const steps = Math.min(bucket - (counts[0] ?? 0), buckets)
  if (steps <= 0) return
  counts.splice(1 + 2 * (buckets - steps), 2 * steps)
  counts.splice(0, 1, bucket, ...Array<number>(2 * steps).fill(0))
}
