import { describe, expect, test } from 'bun:test'
import { afterFailure, afterSuccess, refuseSpentBudget } from '../../../src/domain/limits/check-budget.ts'
import type { CheckBudget } from '../../../src/domain/model/phone-record.ts'

const hourMs = 3_600_000
const start = 1_800_000_000_000

/** Seconds to wait, or 0 if the phone's codes may be attempted. */
function waitSeconds(budget: CheckBudget | null, now: number, failuresMax = 25): number {
  const refusal = refuseSpentBudget(budget, failuresMax, now)
  if (!refusal) return 0
  expect(refusal.rejected).toMatchObject({
    code: 'RATE_LIMITED',
    reason: 'PHONE_CHECK_BUDGET',
    metadata: { failuresMax },
  })
  return refusal.rejected.retryAfterSeconds ?? 0
}

function failRepeatedly(times: number, now: number, budget: CheckBudget | null = null): CheckBudget | null {
  let failed = budget
  for (let i = 0; i < times; i++) failed = afterFailure(failed, now)
  return failed
}

describe('the check budget of a phone', () => {
  test('allows 25 failures at once and refuses the next check for exactly an hour', () => {
    expect(waitSeconds(null, start)).toBe(0)
    expect(waitSeconds(failRepeatedly(24, start), start)).toBe(0)
    const exhausted = failRepeatedly(25, start)
    expect(waitSeconds(exhausted, start)).toBe(3600)
    expect(waitSeconds(exhausted, start + 1_500)).toBe(3599)
    expect(waitSeconds(exhausted, start + hourMs - 1)).toBe(1)
    expect(waitSeconds(exhausted, start + hourMs)).toBe(0)
  })

  test('regains one failure per hour and all 25 in 25 hours', () => {
    let budget = failRepeatedly(25, start)
    for (let hour = 1; hour <= 5; hour++) {
      const now = start + hour * hourMs
      expect(waitSeconds(budget, now)).toBe(0)
      budget = failRepeatedly(1, now, budget)
      expect(waitSeconds(budget, now)).toBe(3600)
    }
    const later = start + 30 * hourMs
    expect(waitSeconds(failRepeatedly(24, later, budget), later)).toBe(0)
    expect(waitSeconds(failRepeatedly(25, later, budget), later)).toBe(3600)
  })

  test('is not refilled by a success, which ends the consecutive failures', () => {
    const budget = failRepeatedly(25, start)
    if (!budget) throw new Error('no budget')
    const succeeded = afterSuccess(budget)
    expect(succeeded).toEqual({ ...budget, consecutiveFailures: 0 })
    expect(waitSeconds(succeeded, start)).toBe(3600)
  })

  test('is locked for 24 hours by 100 consecutive failures, whatever was refilled', () => {
    let budget: CheckBudget | null = null
    for (let i = 0; i < 99; i++) budget = afterFailure(budget, start + i * hourMs)
    const hundredthFailureAt = start + 99 * hourMs
    expect(waitSeconds(budget, hundredthFailureAt)).toBe(0)
    budget = afterFailure(budget, hundredthFailureAt)
    expect(waitSeconds(budget, hundredthFailureAt)).toBe(24 * 3600)
    expect(waitSeconds(budget, hundredthFailureAt + 24 * hourMs - 1)).toBe(1)
    expect(waitSeconds(budget, hundredthFailureAt + 24 * hourMs)).toBe(0)
  })

  test('is not locked if a success interrupts 99 failures', () => {
    const budget = failRepeatedly(99, start)
    if (!budget) throw new Error('no budget')
    expect(failRepeatedly(99, start, afterSuccess(budget))?.lockedUntil).toBeNull()
  })

  test('of 0 is off, and a locked phone may try again', () => {
    expect(waitSeconds(failRepeatedly(100, start), start, 0)).toBe(0)
  })
})
