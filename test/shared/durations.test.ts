import { expect, test } from 'bun:test'
import { dayMs, hourMs, minuteMs, secondMs } from '../../src/shared/durations.ts'

test('durations are in milliseconds', () => {
  expect({ secondMs, minuteMs, hourMs, dayMs }).toEqual({
    secondMs: 1000,
    minuteMs: 60_000,
    hourMs: 3_600_000,
    dayMs: 86_400_000,
  })
})
