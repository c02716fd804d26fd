import { median } from '../stats.ts'
import { markdownTable } from '../table.ts'
import type { Measurements } from './measurements.ts'
import type { Samples } from './measure.ts'

/** Calls of end users: limit of their slowdown, in time and in CPU, compared with the smallest history. */
const hotCalls = ['send', 'verify', 'verify by phone']
const slowdownMax = 1.15

/** All other calls read lists: limit of their p50 in every history. */
const readMsMax = 2

/** Limits of other figures in the largest history. */
const factLimits: Readonly<Record<string, number>> = {
  'disk for a request, bytes': 650,
  'ready, ms': 100,
  'ready after a kill, ms': 100,
  'ready after a kill under load, ms': 100,
  'memory when idle, MB': 65,
  'memory after the load, MB': 200,
}

const judge = (isMet: boolean) => (isMet ? 'met' : 'not met')

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
    'goal',
    '',
  ]
  const lines = rows.map((row) => {
    const ratios = larger.flatMap((size) => [
      growthRatio(sizes[0], size, row, (sample) => sample.p50Ms),
      growthRatio(sizes[0], size, row, (sample) => sample.cpuMicros),
    ])
    return [
      row,
      ...columns.map(({ value, digits, size }) => medianOf(size, row, value).toFixed(digits)),
      ...ratios.map((ratio) => ratio.toFixed(2)),
      ...(hotCalls.includes(row)
        ? [`growth ≤ ${slowdownMax}`, judge(ratios.every((ratio) => ratio <= slowdownMax))]
        : [`p50 ≤ ${readMsMax} ms`, judge(sizes.every((size) => medianOf(size, row, readP50) <= readMsMax))]),
    ]
  })
  return markdownTable(head, lines)
}

const readP50 = ({ p50Ms }: Samples[string]) => p50Ms

const medianOf = ({ rounds }: SizeResult, row: string, value: (sample: Samples[string]) => number) =>
  median(rounds.flatMap((round) => (round[row] ? [value(round[row])] : [])))

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

/** Builds the table of the other figures. The largest size decides whether a goal is met. */
export function factsTable(sizes: readonly SizeResult[]): string {
  const rows = Object.keys(sizes[0]?.facts[0] ?? {})
  const all = new Set([...rows, ...sizes.flatMap(({ facts }) => facts.flatMap(Object.keys))])
  const lines = [...all].map((row) => {
    const values = sizes.map(({ facts }) => median(facts.flatMap((measurements) => measurements[row] ?? [])))
    const limit = factLimits[row]
    return [
      row,
      ...values.map((value) => (Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 1 : 0))),
      ...(limit === undefined ? ['', ''] : [`≤ ${limit}`, judge((values.at(-1) ?? NaN) <= limit)]),
    ]
  })
  return markdownTable(['', ...sizes.map(formatSize), 'goal', ''], lines)
}

const formatSize = ({ requests }: Pick<SizeResult, 'requests'>) =>
  requests.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 })
