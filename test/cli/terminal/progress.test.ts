import { describe, expect, test } from 'bun:test'
import { formatBytes, formatProgress } from '../../../cli/terminal/progress-text.ts'
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
