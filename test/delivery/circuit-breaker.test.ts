import { describe, expect, test } from 'bun:test'
import { createCircuitBreaker } from '../../src/delivery/circuit-breaker.ts'
import { createFailure } from '../../src/delivery/kit/failures.ts'
import { accepted, refused, uncertain } from '../../src/delivery/kit/provider.ts'

describe('a circuit breaker', () => {
  const down = refused(createFailure('provider_down', null))
  const fail = (breaker: ReturnType<typeof createCircuitBreaker>, now: number, times = 1) => {
    for (let count = 0; count < times; count++) breaker.recordOutcome(down, now)
  }

  test('opens after five failures in a row, with a backoff that doubles up to five minutes', () => {
    const breaker = createCircuitBreaker()
    let now = 0
    fail(breaker, now, 4)
    expect(breaker.openState(now)).toBeUndefined()
    const backoffSeconds: number[] = []
    for (let round = 0; round < 8; round++) {
      breaker.beginSend(now)
      fail(breaker, now)
      const untilMs = breaker.openState(now)?.openUntilMs ?? 0
      backoffSeconds.push((untilMs - now) / 1000)
      now = untilMs
    }
    expect(backoffSeconds).toEqual([5, 10, 20, 40, 80, 160, 300, 300])
  })

  test('stays closed if only the phone number had too many messages', () => {
    const breaker = createCircuitBreaker()
    breaker.recordOutcome(refused(createFailure('throttled', null, { at: 'number' })), 0)
    expect(breaker.openState(0)).toBeUndefined()
    breaker.recordOutcome(refused(createFailure('throttled', null)), 0)
    expect(breaker.openState(0)).toBeDefined()
  })

  test('half-opens for one probe after the backoff', () => {
    const breaker = createCircuitBreaker()
    fail(breaker, 0, 5)
    expect(breaker.openState(5_000)).toBeUndefined()
    breaker.beginSend(5_000)
    expect(breaker.openState(5_000)).toBeDefined()
    expect(breaker.recordOutcome(accepted(null), 5_001)).toBe('closed')
    expect(breaker.openState(5_001)).toBeUndefined()
    // Closed is not half-open: sends are not held back while one is under way.
    breaker.beginSend(5_002)
    expect(breaker.openState(5_002)).toBeUndefined()
    expect(breaker.recordOutcome(accepted(null), 5_003)).toBeUndefined()
  })

  test('keeps its backoff when sends fail that were in flight when it opened', () => {
    const breaker = createCircuitBreaker()
    fail(breaker, 0, 5)
    fail(breaker, 1_000, 20)
    expect(breaker.openState(1_000)?.openUntilMs).toBe(5_000)
    breaker.beginSend(5_000)
    fail(breaker, 5_000)
    expect(breaker.openState(5_000)?.openUntilMs).toBe(15_000)
  })

  test('counts uncertain outcomes, and resets with a success', () => {
    const breaker = createCircuitBreaker()
    for (let count = 0; count < 4; count++) breaker.recordOutcome(uncertain(null), 0)
    breaker.recordOutcome(accepted(null), 0)
    breaker.recordOutcome(uncertain(null), 0)
    expect(breaker.openState(0)).toBeUndefined()
  })

  test.each(['invalid_number', 'content_blocked', 'geo_blocked', 'unknown'] as const)(
    'does not count %s against the provider',
    (failure) => {
      const breaker = createCircuitBreaker()
      for (let count = 0; count < 10; count++) breaker.recordOutcome(refused(createFailure(failure, null)), 0)
      expect(breaker.openState(0)).toBeUndefined()
    },
  )

  test('opens for the pause that a provider asks for, at most five minutes', () => {
    const breaker = createCircuitBreaker()
    breaker.recordOutcome(refused(createFailure('throttled', null, { retryAfterSeconds: 7 })), 0)
    expect(breaker.openState(0)?.openUntilMs).toBe(7_000)
    breaker.recordOutcome(refused(createFailure('throttled', null, { retryAfterSeconds: 9_999 })), 10_000)
    expect(breaker.openState(10_000)?.openUntilMs).toBe(310_000)
    breaker.recordOutcome(refused(createFailure('throttled', null)), 400_000)
    expect(breaker.openState(400_000)?.openUntilMs).toBe(401_000)
  })

  test('keeps the longest pause that a provider asks for', () => {
    const breaker = createCircuitBreaker()
    const throttled = (seconds?: number) =>
      refused(createFailure('throttled', null, seconds === undefined ? {} : { retryAfterSeconds: seconds }))
    expect(breaker.recordOutcome(throttled(60), 0)).toBe('open')
    for (const late of [throttled(), throttled(10), accepted('m1'), refused(createFailure('unknown', null))])
      expect(breaker.recordOutcome(late, 1_000)).toBeUndefined()
    expect(breaker.openState(1_000)?.openUntilMs).toBe(60_000)
    expect(breaker.recordOutcome(throttled(120), 2_000)).toBe('open')
    expect(breaker.openState(2_000)?.openUntilMs).toBe(122_000)
    expect(breaker.recordOutcome(accepted('m2'), 122_000)).toBe('closed')
  })
})
