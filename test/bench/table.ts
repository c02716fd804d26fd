import type { Goal, Round, GoalResult } from './goals.ts'
import type { Sample } from './service.ts'
import { median } from './stats.ts'

export function markdownTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const formatLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const separator = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [formatLine(head), formatLine(separator), ...lines.map(formatLine)].join('\n')
}

const columns: { head: string; value(sample: Sample): number; digits: number }[] = [
  { head: 'requests/s', value: (sample) => sample.requestsPerSecond, digits: 0 },
  { head: 'p50 ms', value: (sample) => sample.p50Ms, digits: 2 },
  { head: 'p99 ms', value: (sample) => sample.p99Ms, digits: 1 },
  { head: 'CPU µs', value: (sample) => sample.cpuMicros, digits: 0 },
  { head: 'memory MB', value: (sample) => sample.memoryMegabytes, digits: 0 },
]

/** Builds the table of the medians of all rounds. @param titles titles of the rows to show, by row name */
export function figuresTable(rounds: readonly Round[], titles: Readonly<Record<string, string>>): string {
  const lines = Object.entries(titles).flatMap(([row, title]) => {
    const samples = rounds.flatMap((round) => round[row] ?? [])
    if (samples.length === 0) return []
    return [[title, ...columns.map(({ value, digits }) => format(median(samples.map(value)), digits))]]
  })
  return markdownTable(['', ...columns.map(({ head }) => head)], lines)
}

export function goalsTable(results: readonly GoalResult[]): string {
  const lines = results.map(({ goal, ratio, ratios, isMet }) => [
    goal.text,
    ratio.toFixed(2),
    `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    formatBound(goal),
    formatBound(goal) === '' ? '' : isMet ? 'met' : 'not met',
  ])
  return markdownTable(['ratio', 'median', 'rounds', 'goal', ''], lines)
}

function formatBound({ atLeast, atMost }: Goal): string {
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return atMost === undefined ? '' : `≤ ${atMost}`
}

const format = (value: number, digits: number) =>
  Number.isNaN(value)
    ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
