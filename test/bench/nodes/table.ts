import { median } from '../stats.ts'
import { markdownTable } from '../table.ts'
import type { NodeSample } from './measure.ts'

export type Kind = 'send' | 'verify'

/** One measurement: bare rows, nodes with one or many applications, or one caller. */
export type Row = {
  load: 'bare' | 'many' | 'one' | 'caller'
  kind: Kind
  /** Added to each round trip. */
  delayMs: number
  /** 0 for bare rows. */
  nodes: number
}

export type Result = Row & NodeSample

const titles: Readonly<Record<Row['load'], string>> = {
  bare: 'bare rows',
  many: '64 applications',
  one: '1 application',
  caller: '1 caller',
}

const columns: Array<{ head: string; value(sample: NodeSample): number; digits: number }> = [
  { head: 'calls/s', value: (sample) => sample.requestsPerSecond, digits: 0 },
  { head: 'p50 ms', value: (sample) => sample.p50Ms, digits: 1 },
  { head: 'p99 ms', value: (sample) => sample.p99Ms, digits: 1 },
  { head: 'node µs', value: (sample) => sample.nodeMicros, digits: 0 },
  { head: 'database µs', value: (sample) => sample.databaseMicros, digits: 0 },
  { head: 'round trips', value: (sample) => sample.roundTrips, digits: 2 },
  { head: 'statements', value: (sample) => sample.statements, digits: 2 },
  { head: 'calls a group', value: (sample) => 1 / sample.transactions, digits: 1 },
]

const keyOf = ({ load, kind, delayMs, nodes }: Row) => [nodes, delayMs, kind, load].join(' ')

/** Builds the table of the medians of all rounds. */
export function nodesTable(results: readonly Result[]): string {
  const lines = [...Map.groupBy(results, keyOf).values()].flatMap((samples) => {
    const [first] = samples
    if (!first) return []
    const { load, kind, delayMs, nodes } = first
    const figures = columns.map(({ value, digits }) => format(median(samples.map(value)), digits))
    return [[`${titles[load]}: ${kind}`, load === 'bare' ? '' : String(nodes), `+${delayMs} ms`, ...figures]]
  })
  return markdownTable(['', 'nodes', 'delay', ...columns.map(({ head }) => head)], lines)
}

const format = (value: number, digits: number) =>
  Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : ''

export type NodesGoal = {
  text: string
  /** Computes the figure from the samples of one round. NaN if one is missing. */
  figure(find: (row: Row) => NodeSample | undefined): number
} & ({ atLeast: number } | { atMost: number })

type Find = Parameters<NodesGoal['figure']>[0]

const rateRatio = (find: Find, row: Row, base: Row) =>
  (find(row)?.requestsPerSecond ?? NaN) / (find(base)?.requestsPerSecond ?? NaN)

const kinds: readonly Kind[] = ['send', 'verify']

/** Goals of one node, as bare rows are written by one process. */
export const nodesGoals: readonly NodesGoal[] = [
  ...kinds.flatMap((kind): NodesGoal[] => [
    ...[
      { delayMs: 0, atLeast: 0.25 },
      { delayMs: 1, atLeast: 0.5 },
    ].map(({ delayMs, atLeast }) => ({
      text: `${kind}, +${delayMs} ms: a node / bare rows`,
      figure: (find: Find) =>
        rateRatio(find, { load: 'many', kind, delayMs, nodes: 1 }, { load: 'bare', kind, delayMs, nodes: 0 }),
      atLeast,
    })),
    ...[0, 1].map((delayMs) => ({
      text: `${kind}, +${delayMs} ms: 1 application / 64 applications`,
      figure: (find: Find) =>
        rateRatio(find, { load: 'one', kind, delayMs, nodes: 1 }, { load: 'many', kind, delayMs, nodes: 1 }),
      atLeast: 0.8,
    })),
  ]),
  {
    text: 'CPU of the database for a send, +0 ms, µs',
    figure: (find) => find({ load: 'many', kind: 'send', delayMs: 0, nodes: 1 })?.databaseMicros ?? NaN,
    atMost: 80,
  },
  {
    text: 'a send of a single caller, +5 ms, p50 in ms',
    figure: (find) => find({ load: 'caller', kind: 'send', delayMs: 5, nodes: 1 })?.p50Ms ?? NaN,
    atMost: 15,
  },
]

/** Builds the table of goals: the median of the figures of each round. Goals that were not measured are left out. */
export function nodesGoalsTable(rounds: ReadonlyArray<readonly Result[]>): string {
  const lines = nodesGoals.flatMap((goal) => {
    const figures = rounds
      .map((round) => goal.figure((row) => round.find((result) => keyOf(result) === keyOf(row))))
      .filter((figure) => !Number.isNaN(figure))
    if (figures.length === 0) return []
    const figure = median(figures)
    const isMet = 'atLeast' in goal ? figure >= goal.atLeast : figure <= goal.atMost
    const bound = 'atLeast' in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`
    return [[goal.text, figure.toFixed(2), bound, isMet ? 'met' : 'not met']]
  })
  return markdownTable(['', 'median', 'goal', ''], lines)
}
