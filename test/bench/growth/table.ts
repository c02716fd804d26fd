import { median } from '../stats.ts'
import { markdownTable } from '../table.ts'
import type { Measurements } from './measurements.ts'
import type { Samples } from './measure.ts'

/** Limit: slowdown of a call compared with the smallest history. */
export const slowdownMax = 1.3

export type SizeResult = { requests: number; rounds: readonly Samples[]; facts: readonly Measurements[] }

const figures = [
  { head: 'p50 ms', value: (sample: Samples[string]) => sample.p50Ms, digits: 2 },
  { head: 'p99 ms', value: (sample: Samples[string]) => sample.p99Ms, digits: 1 },
  { head: 'CPU µs', value: (sample: Samples[string]) => sample.cpuMicros, digits: 0 },
]

/**
 * Builds the table of the medians of all rounds, and how many times slower each size is than the first: the median of
 * the ratios within each round.
 */
export function callsTable(sizes: readonly SizeResult[]): string {
  const rows = Object.keys(sizes[0]?.rounds[0] ?? {})
  const columns = figures.flatMap((figure) => sizes.map((size) => ({ ...figure, size })))
  const larger = sizes.slice(1)
  const head = [
    'call',
    ...columns.map((column) => `${column.head}, ${formatSize(column.size)}`),
    ...larger.flatMap((size) => [`time, ${formatSize(size)}`, `CPU, ${formatSize(size)}`]),
    `≤ ${slowdownMax}`,
  ]
  const lines = rows.map((row) => {
    const ratios = larger.flatMap((size) => [
      growthRatio(sizes[0], size, row, (sample) => sample.p50Ms),
      growthRatio(sizes[0], size, row, (sample) => sample.cpuMicros),
    ])
    return [
      row,
      ...columns.map(({ value, digits, size }) =>
        median(size.rounds.flatMap((round) => (round[row] ? [value(round[row])] : []))).toFixed(digits),
      ),
      ...ratios.map((ratio) => ratio.toFixed(2)),
      ratios.every((ratio) => ratio <= slowdownMax) ? 'met' : 'not met',
    ]
  })
  return markdownTable(head, lines)
}

/** Returns the median ratio between the larger and the smaller history, computed within each round. */
export function growthRatio(
  first: SizeResult | undefined,
  size: SizeResult,
  row: string,
  value: (sample: Samples[string]) => number,
): number {
  return median(
    size.rounds.flatMap((round, index) => {
      const base = first?.rounds[index]?.[row]
      const sample = round[row]
      return base && sample ? [value(sample) / value(base)] : []
    }),
  )
}

export function factsTable(sizes: readonly SizeResult[]): string {
  const rows = Object.keys(sizes[0]?.facts[0] ?? {})
  const all = new Set([...rows, ...sizes.flatMap(({ facts }) => facts.flatMap(Object.keys))])
  const lines = [...all].map((row) => [
    row,
    ...sizes.map(({ facts }) => {
      const value = median(facts.flatMap((measurements) => measurements[row] ?? []))
      return Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 1 : 0)
    }),
  ])
  return markdownTable(['', ...sizes.map(formatSize)], lines)
}

const formatSize = ({ requests }: Pick<SizeResult, 'requests'>) =>
  requests.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 })
