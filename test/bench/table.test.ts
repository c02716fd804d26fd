import { describe, expect, test } from 'bun:test'
import { evaluateGoal, type Goal, type Round } from './goals.ts'
import type { Sample } from './service.ts'
import { figuresTable, goalsTable } from './table.ts'

const sample = (requestsPerSecond: number, p99Ms = 10): Sample => ({
  responses: 1,
  requestsPerSecond,
  p50Ms: 1.234,
  p99Ms,
  cpuMicros: 41.6,
  memoryMegabytes: 120.2,
  otherCores: 0,
})

const goal: Goal = {
  text: 'a / b',
  rows: ['a', 'b'],
  ratio: (a, b) => a.requestsPerSecond / b.requestsPerSecond,
  atLeast: 0.7,
}
// The ratio of the medians, 800 / 200, would differ.
const rounds: Round[] = [
  { a: sample(1000), b: sample(10_000) },
  { a: sample(300), b: sample(200) },
  { a: sample(800), b: sample(100) },
]

describe('a goal', () => {
  test('is judged by the median of the ratios of each round', () => {
    const result = evaluateGoal(goal, rounds)
    expect(result?.ratios).toEqual([0.1, 1.5, 8])
    expect(result?.ratio).toBe(1.5)
    expect(result?.isMet).toBe(true)
  })

  test.each([
    [{ atLeast: 1.5 }, true],
    [{ atLeast: 1.6 }, false],
    [{ atMost: 1.5 }, true],
    [{ atMost: 1.4 }, false],
    [{}, true],
  ])('of %p is met: %p', (bound, isMet) => {
    const { text, rows, ratio } = goal
    expect(evaluateGoal({ text, rows, ratio, ...bound }, rounds)?.isMet).toBe(isMet)
  })

  test('is omitted if one of its rows was not measured', () => {
    expect(evaluateGoal(goal, [{ a: sample(1) }])).toBeUndefined()
  })
})

describe('the table', () => {
  test('shows the medians of the rows that were measured, in the order of the titles', () => {
    const rows = { b: 'other', none: 'not measured', a: 'mine' }
    expect(figuresTable(rounds, rows).split('\n')).toEqual([
      '|  | requests/s | p50 ms | p99 ms | CPU µs | memory MB |',
      '| --- | ---: | ---: | ---: | ---: | ---: |',
      '| other | 200 | 1.23 | 10.0 | 42 | 120 |',
      '| mine | 800 | 1.23 | 10.0 | 42 | 120 |',
    ])
  })

  test('shows a dash for a missing figure', () => {
    expect(figuresTable([{ a: sample(1000, NaN) }], { a: 'mine' })).toContain('| mine | 1,000 | 1.23 | – |')
  })

  test('shows whether each goal is met, and shows a ratio without a bound', () => {
    const { text, rows, ratio } = goal
    const results = [goal, { ...goal, atLeast: 2 }, { text, rows, ratio }, { text, rows, ratio, atMost: 1 }]
    const lines = goalsTable(results.flatMap((one) => evaluateGoal(one, rounds) ?? [])).split('\n')
    expect(lines.slice(2)).toEqual([
      '| a / b | 1.50 | 0.10 to 8.00 | ≥ 0.7 | met |',
      '| a / b | 1.50 | 0.10 to 8.00 | ≥ 2 | not met |',
      '| a / b | 1.50 | 0.10 to 8.00 |  |  |',
      '| a / b | 1.50 | 0.10 to 8.00 | ≤ 1 | not met |',
    ])
  })
})
