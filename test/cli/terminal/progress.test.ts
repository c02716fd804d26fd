import { describe, expect, test } from 'bun:test'
import { formatEstimate, formatProgress } from '../../../cli/terminal/progress-text.ts'
import { formatBytes } from '../../../cli/terminal/text.ts'
import { createEstimate } from '../../../src/shared/progress-estimate.ts'
import { createProgress } from '../../../cli/terminal/progress.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'
import { createOutput } from '../../../cli/terminal/output.ts'

const copying = { step: 'copying', unit: 'bytes', elapsedMs: 5000 } as const

describe('progress', () => {
  test('shows what is done, the rate and the time that is left', () => {
    const state = { ...copying, done: 2_500_000_000, total: 10_000_000_000 }
    expect(formatProgress(state, 100)).toBe(
      '[#####...............]  25%  2.5 GB of 10 GB, 500 MB/s, 15 s left  copying',
    )
    expect(formatProgress(state, null)).toBe('copying:  25%  2.5 GB of 10 GB, 500 MB/s, 15 s left')
    expect(formatProgress({ ...state, unit: 'rows' }, 200)).toContain('2,500,000,000 of 10,000,000,000 rows')
  })

  test.each([20, 40, 60])('fits %d columns', (columns) =>
    expect(formatProgress({ ...copying, done: 1, total: 1000 }, columns).length).toBeLessThan(columns),
  )

  test('shows the time so far of a step whose end is not known', () => {
    const state = { step: 'checking', elapsedMs: 61_000, done: null, total: null }
    expect(formatProgress(state, 80)).toBe('checking, 1 min 1 s so far')
    expect(formatProgress({ ...state, total: 7e9 }, 80)).toBe('checking (7.0 GB), 1 min 1 s so far')
  })

  test('estimates the whole from shares, also in a step that tells nothing', () => {
    let now = 7
    const estimate = createEstimate(
      () => now,
      () => 50,
    )
    expect(estimate.read()).toBeUndefined()
    estimate.onStep({ step: 'checking', share: { from: 0, to: 0.2 } })
    now += 5_000
    expect(estimate.read()).toEqual({ step: 'checking', percent: 0, remainingMs: null })
    now += 5_000
    estimate.onStep({ step: 'copying', file: '/copy', total: 100, share: { from: 0.2, to: 0.4 } })
    now += 5_000
    expect(estimate.read()).toMatchObject({
      step: 'copying',
      percent: 30,
      remainingMs: expect.closeTo(35_000),
    })
    now += 5_000
    estimate.onStep({ step: 'migrating', share: { from: 0.4, to: 1 } })
    now += 10_000
    const state = estimate.read() ?? { step: '', percent: 0, remainingMs: 0 }
    expect(state.percent).toBe(60)
    expect(formatEstimate(state, null)).toBe('60%, about 20 s left: migrating')
    expect(formatEstimate(state, 100)).toBe('[############........]  60%, about 20 s left  migrating')
    now += 1_000_000
    expect(estimate.read()?.percent).toBe(97)
  })

  test('estimates only what is left of an upgrade whose copy is there', () => {
    let now = 0
    const estimate = createEstimate(
      () => now,
      () => null,
    )
    estimate.onStep({ step: 'authenticating', done: 1, total: 2, share: { from: 0.4, to: 0.5 } })
    now += 1_000
    expect(estimate.read()?.remainingMs).toBeCloseTo(11_000)
  })

  test('ends with everything done', () =>
    expect(formatProgress({ ...copying, done: 7, total: 7 }, 80)).toContain('] 100%  7 B of 7 B'))

  test.each([
    [999, '999 B'],
    [1000, '1.0 KB'],
    [45_600_000, '46 MB'],
    [7_100_000_000, '7.1 GB'],
  ])('formats %d bytes', (bytes, text) => expect(formatBytes(bytes)).toBe(text))

  test('is one object for each step with --json, without the path of a file', () => {
    let stderr = ''
    const io = { ...processIo(), writeError: (text: string) => void (stderr += text) }
    const { onStep, end } = createProgress({ io, output: createOutput(io, { json: true }) })
    onStep({ step: 'copying', file: '/secret', total: 9, unit: 'bytes' })
    onStep({ step: 'hashing', done: 1, total: 9 })
    onStep({ step: 'hashing', done: 2, total: 9 })
    end()
    expect(
      stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { step: 'copying', total: 9, unit: 'bytes' },
      { step: 'hashing', done: 1, total: 9 },
    ])
  })
})
