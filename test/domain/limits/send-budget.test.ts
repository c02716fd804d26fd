import { describe, expect, test } from 'bun:test'
import { afterSend, checkSendBudget } from '../../../src/domain/limits/send-budget.ts'
import { isRejected } from '../../../src/domain/model/rejected.ts'

const minuteMs = 60_000
const start = 1_800_000_000_000

/** Charges a send to a new phone: true if over the budget, seconds to wait if refused. */
function newPhone() {
  let sends: number[] = []
  return (now: number, mode: 'monitor' | 'enforce' = 'enforce') => {
    const isExceeded = checkSendBudget(mode, sends, now)
    if (isRejected(isExceeded)) {
      expect(isExceeded.rejected).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_SEND_BUDGET' })
      return isExceeded.rejected.retryAfterSeconds
    }
    sends = afterSend(sends, now)
    return isExceeded
  }
}

describe('the send budget of a phone', () => {
  test('in enforce mode refuses the sixth send in 10 minutes and says exactly for how long', () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) expect(send(start + i * 1000)).toBe(false)
    expect(send(start + 5_000)).toBe(595)
    expect(send(start + 10 * minuteMs - 1)).toBe(1)
    expect(send(start + 10 * minuteMs)).toBe(false)
    expect(send(start + 10 * minuteMs)).toBe(1)
  })

  test('in enforce mode refuses the twenty-first send of a day', () => {
    const send = newPhone()
    for (let i = 0; i < 20; i++) expect(send(start + i * 3 * minuteMs)).toBe(false)
    expect(send(start + 60 * minuteMs)).toBe(23 * 3600)
    expect(send(start + 24 * 60 * minuteMs)).toBe(false)
  })

  test('does not count refused sends', () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) send(start)
    for (let i = 0; i < 50; i++) expect(send(start + 1)).toBe(600)
    expect(send(start + 10 * minuteMs)).toBe(false)
  })

  test('in monitor mode keeps counting and reports each send over the budget', () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) expect(send(start, 'monitor')).toBe(false)
    for (let i = 0; i < 5; i++) expect(send(start + 1, 'monitor')).toBe(true)
    expect(send(start + 10 * minuteMs, 'monitor')).toBe(true)
    expect(send(start + 20 * minuteMs, 'monitor')).toBe(false)
  })

  test('switched from monitor to enforce waits until enough sends have left the window', () => {
    const send = newPhone()
    for (let i = 0; i < 8; i++) send(start + i * minuteMs, 'monitor')
    // Eight sends at minutes 0 to 7: the fourth of them must be 10 minutes old.
    expect(send(start + 8 * minuteMs)).toBe(5 * 60)
  })

  test('is not blocked by the times of a clock that ran days ahead', () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) send(start + 2 * 24 * 60 * minuteMs)
    expect(send(start)).toBe(false)
  })

  test('keeps the times of the twenty newest sends', () => {
    let sends: number[] = []
    for (let i = 0; i < 100; i++) sends = afterSend(sends, start + i)
    expect(sends).toEqual(Array.from({ length: 20 }, (_, i) => start + 80 + i))
  })
})
