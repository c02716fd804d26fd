import { expect, test } from 'bun:test'
import type { Sample } from '../service.ts'
import { callsTable, factsTable, growthRatio, type SizeResult } from './table.ts'

const sample = (p50Ms: number, cpuMicros: number): Sample => ({
  responses: 1,
  requestsPerSecond: 1,
  p50Ms,
  p99Ms: 10,
  cpuMicros,
  memoryMegabytes: 100,
  otherCores: 0,
})

const small: SizeResult = {
  requests: 10_000,
  rounds: [{ send: sample(1, 100) }, { send: sample(10, 100) }, { send: sample(2, 100) }],
  facts: [{ 'ready, ms': 40 }, { 'ready, ms': 60 }],
}
const large: SizeResult = {
  requests: 1_000_000,
  rounds: [{ send: sample(1.2, 120) }, { send: sample(11, 125) }, { send: sample(6, 500) }],
  facts: [{ 'ready, ms': 70 }],
}

test('growth is computed within a round, in which both sizes had the same machine conditions', () => {
  // The ratio of the medians would be 3.
  expect(growthRatio(small, large, 'send', ({ p50Ms }) => p50Ms)).toBeCloseTo(1.2)
  expect(growthRatio(small, large, 'send', ({ cpuMicros }) => cpuMicros)).toBeCloseTo(1.25)
})

const callLines = (...sizes: SizeResult[]) => callsTable(sizes).split('\n').slice(2)

test('a call of end users meets its goal if it grows by at most 15 percent', () => {
  const line = '| send | 2.00 | 6.00 | 10.0 | 10.0 | 100 | 125 | 1.20 | 1.25 | growth ≤ 1.15 | not met |'
  expect(callLines(small, large)).toEqual([line])
  const same = { ...large, rounds: small.rounds.map(() => ({ send: sample(1, 114) })) }
  const first = { ...small, rounds: same.rounds.map(() => ({ send: sample(1, 100) })) }
  expect(callLines(first, same)[0]).toEndWith('| growth ≤ 1.15 | met |')
  const slower = { ...same, rounds: same.rounds.map(() => ({ send: sample(1, 116) })) }
  expect(callLines(first, slower)[0]).toEndWith('| growth ≤ 1.15 | not met |')
})

test('a list meets its goal if it takes at most 2 ms in every history', () => {
  const withList = (size: SizeResult, p50Ms: number) => ({ ...size, rounds: [{ users: sample(p50Ms, 1) }] })
  expect(callLines(withList(small, 0.1), withList(large, 2))[0]).toEndWith('| p50 ≤ 2 ms | met |')
  expect(callLines(withList(small, 2.1), withList(large, 1))[0]).toEndWith('| p50 ≤ 2 ms | not met |')
})

test('other figures are medians, judged by the largest size, and a size that lacks one has a dash', () => {
  const rest = [{ 'backup, s': 3 }]
  expect(factsTable([small, { ...large, facts: [...large.facts, ...rest] }]).split('\n')).toEqual([
    '|  | 10K | 1M | goal |  |',
    '| --- | ---: | ---: | ---: | ---: |',
    '| ready, ms | 50 | 70 | ≤ 100 | met |',
    '| backup, s | – | 3.0 |  |  |',
  ])
  expect(factsTable([small, { ...large, facts: [{ 'ready, ms': 101 }] }])).toEndWith('| ≤ 100 | not met |')
})
