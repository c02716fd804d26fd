import type { Goal, Round, Verdict } from './goals.ts'
import type { Sample } from './service.ts'
import { median } from './stats.ts'

export function markdownTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const border = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [line(head), line(border), ...lines.map(line)].join('\n')
}

const columns: { head: string; of(sample: Sample): number; digits: number }[] = [
  { head: 'requests/s', of: (sample) => sample.requestsPerSecond, digits: 0 },
  { head: 'p50 ms', of: (sample) => sample.p50Ms, digits: 2 },
  { head: 'p99 ms', of: (sample) => sample.p99Ms, digits: 1 },
  { head: 'CPU µs', of: (sample) => sample.cpuMicros, digits: 0 },
  { head: 'memory MB', of: (sample) => sample.memoryMegabytes, digits: 0 },
]

/** The medians of all rounds, one line a row. @param titles of the rows to show, by their names */
export function figuresTable(rounds: readonly Round[], titles: Readonly<Record<string, string>>): string {
  const lines = Object.entries(titles).flatMap(([row, title]) => {
    const samples = rounds.flatMap((round) => round[row] ?? [])
    if (samples.length === 0) return []
    return [[title, ...columns.map(({ of, digits }) => format(median(samples.map(of)), digits))]]
  })
  return markdownTable(['', ...columns.map(({ head }) => head)], lines)
}

export function goalsTable(verdicts: readonly Verdict[]): string {
  const lines = verdicts.map(({ goal, ratio, ratios, met }) => [
    goal.text,
    ratio.toFixed(2),
    `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    boundOf(goal),
    boundOf(goal) === '' ? '' : met ? 'met' : 'not met',
  ])
  return markdownTable(['ratio', 'median', 'rounds', 'goal', ''], lines)
}

function boundOf({ atLeast, atMost }: Goal): string {
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return atMost === undefined ? '' : `≤ ${atMost}`
}

const format = (value: number, digits: number) =>
  Number.isNaN(value)
    ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
