/** The lowest bar first; `nothing` lies below it, so that none and a few are told apart. */
export type BarSet = { zero: string; bars: readonly string[] }

const blocks: BarSet = { zero: '⎽', bars: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] }

/**
 * One bar a number, the largest the highest. Where there are more numbers than columns, neighbours are added up.
 */
export function sparkline(counts: readonly number[], columns: number, { zero, bars }: BarSet = blocks) {
  const perBar = Math.ceil(counts.length / Math.max(1, columns))
  const sums: number[] = []
  // From the newest backwards: the last bar is always whole.
  for (let end = counts.length; end > 0; end -= perBar)
    sums.unshift(counts.slice(Math.max(0, end - perBar), end).reduce((sum, count) => sum + count, 0))
  const largest = Math.max(1, ...sums)
  return sums.map((sum) => (sum === 0 ? zero : bars[Math.ceil((sum / largest) * bars.length) - 1])).join('')
}
