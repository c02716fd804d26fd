/** Counts of verifications by the seconds from the last send until the code was entered, up to and including each limit. */
const timeLimits = {
  verified5s: 5,
  verified10s: 10,
  verified20s: 20,
  verified30s: 30,
  verified60s: 60,
  verified120s: 120,
  // No code lives longer than a day.
  verifiedLater: 86_400,
} as const

export type TimeBucket = keyof typeof timeLimits

const buckets = Object.entries(timeLimits) as ReadonlyArray<[TimeBucket, number]>

/** Finds the bucket of a verification. */
export const timeBucket = (ms: number): TimeBucket =>
  buckets.find(([, seconds]) => ms <= seconds * 1000)?.[0] ?? 'verifiedLater'

/**
 * Estimates the median of a histogram, in whole seconds, as if times were spread evenly within each bucket. Null without
 * verifications.
 */
export function medianSeconds(counts: Readonly<Record<TimeBucket, number>>): number | null {
  const half = buckets.reduce((sum, [name]) => sum + counts[name], 0) / 2
  if (half <= 0) return null
  let before = 0
  let from = 0
  for (const [name, limit] of buckets) {
    const count = counts[name]
    // Beyond the last limit times are not spread evenly: most codes have expired by then.
    if (count > 0 && before + count >= half)
      return name === 'verifiedLater' ? from : Math.round(from + ((half - before) / count) * (limit - from))
    before += count
    from = limit
  }
  return from
}
