import type { Sample } from './service.ts'
import { median } from './stats.ts'

/** Measurements of one round, by row name. */
export type Round = Readonly<Record<string, Sample>>

export type Goal = {
  text: string
  rows: readonly string[]
  ratio(...samples: Sample[]): number
  /** Without a bound the ratio is only reported. */
  atLeast?: number
  atMost?: number
}

const throughputRatio = (a: Sample, b: Sample) => a.requestsPerSecond / b.requestsPerSecond
const slowdownRatio = (a: Sample, b: Sample) => b.requestsPerSecond / a.requestsPerSecond
const cpuRatio = (a: Sample, b: Sample) => a.cpuMicros / b.cpuMicros
const cpuDifference = (a: Sample, b: Sample) => a.cpuMicros - b.cpuMicros
const tailLatencyRatio = (a: Sample, b: Sample) => a.p99Ms / b.p99Ms
/** Sends and their verifications per second. */
const flowsPerSecond = (send: Sample, verify: Sample) =>
  1 / (1 / send.requestsPerSecond + 1 / verify.requestsPerSecond)
const flowThroughputRatio = (send: Sample, verify: Sample, otherSend: Sample, otherVerify: Sample) =>
  flowsPerSecond(send, verify) / flowsPerSecond(otherSend, otherVerify)

/** A goal in µs of CPU time, of all threads of the server. */
const cpuGoal = (call: string, row: string, atMost: number): Goal => ({
  text: `CPU of ${call}, µs`,
  rows: [row],
  ratio: ({ cpuMicros }) => cpuMicros,
  atMost,
})

const flowRows = (prefix: string) => [`${prefix}send`, `${prefix}verify`]

export const goals: readonly Goal[] = [
  cpuGoal('a send', 'send', 65),
  cpuGoal('a verification', 'verify', 62),
  cpuGoal('a send, guard enforced and networks given', 'guard-send', 80),
  cpuGoal('a verification, guard enforced and networks given', 'guard-verify', 75),
  cpuGoal('a send with webhooks', 'webhook-send', 160),
  cpuGoal('a verification with webhooks', 'webhook-verify', 140),
  cpuGoal('the newest page of the log, again and again', 'logs', 45),
  cpuGoal('any page of the log', 'log-pages', 120),
  cpuGoal('choosing between six providers', 'route-choice', 3),
  cpuGoal('counting an outcome of a provider', 'route-outcome', 3),
  { text: 'CPU of a send: otpd / the limit', rows: ['send', 'limit-send'], ratio: cpuRatio },
  { text: 'CPU of a verification: otpd / the limit', rows: ['verify', 'limit-verify'], ratio: cpuRatio },
  { text: 'send: otpd / the limit', rows: ['send', 'limit-send'], ratio: throughputRatio },
  { text: 'verify: otpd / the limit', rows: ['verify', 'limit-verify'], ratio: throughputRatio },
  { text: 'p99 of a send: otpd / the limit', rows: ['send', 'limit-send'], ratio: tailLatencyRatio },
  {
    text: 'p99 of a verification: otpd / the limit',
    rows: ['verify', 'limit-verify'],
    ratio: tailLatencyRatio,
  },
  {
    text: 'send and verify: otpd / better-auth',
    rows: [...flowRows(''), ...flowRows('better-auth-')],
    ratio: flowThroughputRatio,
    atLeast: 20,
  },
  {
    text: 'send and verify: otpd / better-auth with cleanup disabled',
    rows: [...flowRows(''), ...flowRows('better-auth-favourable-')],
    ratio: flowThroughputRatio,
    atLeast: 12,
  },
  {
    text: 'send and verify: otpd / PocketBase',
    rows: [...flowRows(''), ...flowRows('pocketbase-')],
    ratio: flowThroughputRatio,
  },
  {
    text: 'send, fsync +1 ms: otpd / the limit',
    rows: ['slow-send', 'slow-limit-send'],
    ratio: throughputRatio,
  },
  {
    text: 'verify, fsync +1 ms: otpd / the limit',
    rows: ['slow-verify', 'slow-limit-verify'],
    ratio: throughputRatio,
  },
  {
    text: 'p99 of a send, fsync +1 ms: otpd / the limit',
    rows: ['slow-send', 'slow-limit-send'],
    ratio: tailLatencyRatio,
  },
  {
    text: 'p99 of a verification, fsync +1 ms: otpd / the limit',
    rows: ['slow-verify', 'slow-limit-verify'],
    ratio: tailLatencyRatio,
  },
  {
    text: 'send and verify, fsync +1 ms: otpd / better-auth',
    rows: [...flowRows('slow-'), ...flowRows('slow-better-auth-')],
    ratio: flowThroughputRatio,
  },
  {
    text: 'send and verify: otpd with webhooks / without',
    rows: [...flowRows('webhook-'), ...flowRows('')],
    ratio: flowThroughputRatio,
    atLeast: 0.5,
  },
  {
    text: 'send and verify: otpd with the guard enforced / without',
    rows: [...flowRows('guard-'), ...flowRows('')],
    ratio: flowThroughputRatio,
  },
  {
    text: 'send and verify: otpd with façades / without',
    rows: [...flowRows('facades-'), ...flowRows('')],
    ratio: flowThroughputRatio,
    atLeast: 0.95,
  },
  {
    text: 'time of the newest page of the log, again and again: otpd / Elysia',
    rows: ['logs', 'page'],
    ratio: slowdownRatio,
    atMost: 3,
  },
  {
    text: 'time of any page of the log: otpd / Elysia',
    rows: ['log-pages', 'page'],
    ratio: slowdownRatio,
    atMost: 7,
  },
  { text: 'CPU of the newest page of the log: otpd / Elysia', rows: ['logs', 'page'], ratio: cpuRatio },
  { text: 'CPU of any page of the log: otpd / Elysia', rows: ['log-pages', 'page'], ratio: cpuRatio },
  { text: 'time of a summary: otpd / that page', rows: ['summary', 'page'], ratio: slowdownRatio, atMost: 3 },
  { text: 'time of 90 days: otpd / that page', rows: ['series', 'page'], ratio: slowdownRatio, atMost: 3 },
  {
    text: 'CPU of a probe on a kept connection: https − http, µs',
    rows: ['https-kept', 'http-kept'],
    ratio: cpuDifference,
    atMost: 5,
  },
  {
    text: 'CPU of a probe on a new connection: https − http, µs',
    rows: ['https-new', 'http-new'],
    ratio: cpuDifference,
  },
  {
    text: 'memory of otpd after its load, MB',
    rows: ['verify'],
    ratio: ({ memoryMegabytes }) => memoryMegabytes,
    atMost: 180,
  },
]

export type GoalResult = { goal: Goal; ratios: number[]; ratio: number; isMet: boolean }

/** Computes the ratio in each round, because the machine is the same for both rows there, and takes the median. */
export function evaluateGoal(goal: Goal, rounds: readonly Round[]): GoalResult | undefined {
  const ratios: number[] = []
  for (const round of rounds) {
    const samples = goal.rows.map((row) => round[row])
    const present = samples.filter((sample) => sample !== undefined)
    if (present.length === samples.length) ratios.push(goal.ratio(...present))
  }
  if (ratios.length === 0) return undefined
  const ratio = median(ratios)
  const isMet = ratio >= (goal.atLeast ?? -Infinity) && ratio <= (goal.atMost ?? Infinity)
  return { goal, ratios, ratio, isMet }
}
