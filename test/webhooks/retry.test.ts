import { describe, expect, test } from 'bun:test'
import { readRetryAfter, retryDelayMs } from '../../src/webhooks/retry.ts'

const plannedSeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
const middle = () => 0.5

describe('the wait after a failure', () => {
  test.each(plannedSeconds.map((seconds, index) => [index + 1, seconds] as const))(
    'number %i is %i s, 20 %% more or less',
    (failures, seconds) => {
      expect(retryDelayMs(failures, null, middle)).toBe(seconds * 1000)
      expect(retryDelayMs(failures, null, () => 0)).toBe(seconds * 800)
      const longest = retryDelayMs(failures, null, () => 1 - Number.EPSILON) ?? 0
      expect(longest).toBeGreaterThan(seconds * 1_190)
      expect(longest).toBeLessThanOrEqual(seconds * 1_200)
    },
  )

  test('number 8 is none: that was the last attempt', () => {
    expect(retryDelayMs(8, null, middle)).toBeNull()
    expect(retryDelayMs(8, 60_000, middle)).toBeNull()
  })

  test.each([
    [0, 300_000],
    [299_000, 300_000],
    [450_000, 450_000],
    [600_000, 600_000],
    [86_400_000, 600_000],
  ])(
    'that the receiver requested as %i ms is limited to between the scheduled delay and its double',
    (requestedMs, waited) => {
      expect(retryDelayMs(2, requestedMs, middle)).toBe(waited)
      expect(retryDelayMs(2, requestedMs, () => 0)).toBe(waited)
    },
  )
})

test('a receiver that asks for less cannot shorten a wait that is spread', () => {
  for (const requestedMs of [0, 299_000]) expect(retryDelayMs(2, requestedMs, () => 1)).toBe(360_000)
})

describe('Retry-After', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')

  test.each([
    ['0', 0],
    ['120', 120_000],
    ['Fri, 20 Nov 2026 12:01:30 GMT', 90_000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
    ['Friday, 20-Nov-26 12:01:30 GMT', 90_000],
  ])('is read: %s', (value, ms) => {
    expect(readRetryAfter(value, now)).toBe(ms)
  })

  test.each([undefined, '', '-1', '1.5', '1e3', 'soon', '12345678901', 'Fri, 99 Xyz 2026 12:00:00 GMT'])(
    'is ignored if it is invalid: %p',
    (value) => {
      expect(readRetryAfter(value, now)).toBeNull()
    },
  )
})
