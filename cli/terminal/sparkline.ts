/** Bars, lowest first. `zero` is lower still, so that zero differs from a small count. */
export type BarSet = { zero: string; bars: readonly string[] }

const blocks: BarSet = { zero: '·', bars: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] }

/**
 * Draws one bar per number, scaled to the largest. If there are more numbers than columns, neighbours are summed.
 */
export function sparkline(counts: readonly number[], columns: number, { zero, bars }: BarSet = blocks) {
  const perBar = Math.ceil(counts.length / Math.max(1, columns))
  const sums: number[] = []
  // From the newest backwards, so that the last bar always sums a full group.
  for (let end = counts.length; end > 0; end -= perBar)
    sums.unshift(counts.slice(Math.max(0, end - perBar), end).reduce((sum, count) => sum + count, 0))
  const largest = Math.max(1, ...sums)
  return sums.map((sum) => (sum === 0 ? zero : bars[Math.ceil((sum / largest) * bars.length) - 1])).join('')
}
