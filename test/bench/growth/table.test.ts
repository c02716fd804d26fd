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

test('a call that takes at most 1.3 times as long meets its goal', () => {
  const line = callsTable([small, large]).split('\n')[2]
  expect(line).toBe('| send | 2.00 | 6.00 | 10.0 | 10.0 | 100 | 125 | 1.20 | 1.25 | met |')
})

test('a call that works more than 1.3 times as much does not', () => {
  const slower = { ...large, rounds: large.rounds.map(() => ({ send: sample(1, 131) })) }
  expect(callsTable([small, slower])).toEndWith('not met |')
})

test('other figures are medians, and a size that lacks one has a dash', () => {
  expect(factsTable([small, { ...large, facts: [] }]).split('\n')).toEqual([
    '|  | 10K | 1M |',
    '| --- | ---: | ---: |',
    '| ready, ms | 50 | – |',
  ])
})
