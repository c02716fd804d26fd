/** Returns the middle value, or the mean of the two middle ones. NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  const upper = sorted[Math.floor(half)] ?? NaN
  return Number.isInteger(half) ? ((sorted[half - 1] ?? NaN) + upper) / 2 : upper
}

/** Returns the smallest value that at least this share of the values does not exceed (nearest rank). @param sorted ascending */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const rank = Math.ceil(sorted.length * share)
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] ?? NaN
}
