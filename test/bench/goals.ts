import type { Sample } from './service.ts'
import { median } from './stats.ts'

/** What one round measured, by the name of the row. */
export type Round = Readonly<Record<string, Sample>>

export type Goal = {
  text: string
  rows: readonly string[]
  ratio(...samples: Sample[]): number
  atLeast?: number
  atMost?: number
}

const rate = (a: Sample, b: Sample) => a.requestsPerSecond / b.requestsPerSecond
const tail = (a: Sample, b: Sample) => a.p99Ms / b.p99Ms

export const goals: readonly Goal[] = [
  { text: 'send / limit, requests/s', rows: ['send', 'limit-send'], ratio: rate, atLeast: 0.7 },
  { text: 'verify / limit, requests/s', rows: ['verify', 'limit-verify'], ratio: rate, atLeast: 0.55 },
  { text: 'send / limit, p99', rows: ['send', 'limit-send'], ratio: tail, atMost: 2 },
  { text: 'verify / limit, p99', rows: ['verify', 'limit-verify'], ratio: tail, atMost: 2 },
]

export type Verdict = { goal: Goal; ratios: number[]; ratio: number; met: boolean }

/** The ratio is taken within each round, where the machine was the same for both, and then the median of them. */
export function judge(goal: Goal, rounds: readonly Round[]): Verdict | undefined {
  const ratios: number[] = []
  for (const round of rounds) {
    const samples = goal.rows.map((row) => round[row])
    const present = samples.filter((sample) => sample !== undefined)
    if (present.length === samples.length) ratios.push(goal.ratio(...present))
  }
  if (ratios.length === 0) return undefined
  const ratio = median(ratios)
  const met = ratio >= (goal.atLeast ?? -Infinity) && ratio <= (goal.atMost ?? Infinity)
  return { goal, ratios, ratio, met }
}
