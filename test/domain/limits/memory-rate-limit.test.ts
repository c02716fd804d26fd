import { expect, test } from 'bun:test'
import { createMemoryRateLimiter } from '../../../src/domain/limits/memory-rate-limit.ts'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { testClock } from '../../helpers/clock.ts'

const limit = (subject: string, max: number) => ({ policy: 'console', subject, limit: max, windowMs: 60_000 })

/** Makes a call. @returns the state of the limit, or the seconds to wait if it is refused */
function charge(limiter: ReturnType<typeof createMemoryRateLimiter>, max: number, subject = 'dev_a') {
  try {
    return limiter.charge(limit(subject, max), 'CONSOLE_RATE')
  } catch (error) {
    if (error instanceof ServiceError) return error.retryAfterSeconds
    throw error
  }
}

test('admits as many calls in every window as the limit, and tells when the next one passes', () => {
  const clock = testClock()
  const limiter = createMemoryRateLimiter(clock)
  const admitted: number[] = []
  for (let step = 0; step < 2000; step++) {
    if (typeof charge(limiter, 10) === 'object') admitted.push(clock.now())
    clock.advance(137)
  }
  admitted.forEach((time, n) => expect((admitted[n + 10] ?? Infinity) - time).toBeGreaterThanOrEqual(60_000))
  expect(admitted.length).toBeGreaterThan(40)

  clock.advance(60_000)
  expect(charge(limiter, 2)).toEqual({
    policy: 'console',
    limit: 2,
    windowSeconds: 60,
    remaining: 1,
    resetSeconds: 60,
  })
  clock.advance(20_000)
  expect(charge(limiter, 2)).toMatchObject({ remaining: 0, resetSeconds: 40 })
  expect(charge(limiter, 2)).toBe(40)
  // A lowered limit: two calls must leave.
  expect(charge(limiter, 1)).toBe(60)
  clock.advance(40_000)
  expect(charge(limiter, 2)).toMatchObject({ remaining: 0 })
})

test('a refused call does not count, and 0 is no limit', () => {
  const clock = testClock()
  const limiter = createMemoryRateLimiter(clock)
  expect(charge(limiter, 1)).toMatchObject({ remaining: 0 })
  for (let n = 0; n < 100; n++) expect(charge(limiter, 1)).toBe(60)
  clock.advance(60_000)
  expect(charge(limiter, 1)).toMatchObject({ remaining: 0 })
  for (let n = 0; n < 100; n++) expect(charge(limiter, 0)).toBeUndefined()
})

test('subjects do not share a limit, and idle ones leave the memory', () => {
  const clock = testClock()
  const limiter = createMemoryRateLimiter(clock)
  for (let n = 0; n < 1000; n++) expect(charge(limiter, 1, `dev_${n}`)).toMatchObject({ remaining: 0 })
  expect(limiter.subjects()).toBe(1000)
  clock.advance(60_000)
  for (let n = 0; n < 600; n++) charge(limiter, 10_000, 'dev_a')
  expect(limiter.subjects()).toBe(1)
})

test('a clock that is set back does not stop a subject', () => {
  const clock = testClock()
  const limiter = createMemoryRateLimiter(clock)
  expect(charge(limiter, 1)).toMatchObject({ remaining: 0 })
  clock.advance(-3_600_000)
  expect(charge(limiter, 1)).toMatchObject({ remaining: 0 })
  expect(charge(limiter, 1)).toBe(60)
})
