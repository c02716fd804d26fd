import { expect, test } from 'bun:test'
import {
  chargeSendBudget,
  requireSendBudget,
  type SendBudgetMode,
} from '../../../src/domain/limits/send-budget.ts'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'

const minuteMs = 60_000
const start = 1_800_000_000_000

describeEachDatabase('the send budget of a phone', (database) => {
  let subjects = 0
  const charge = async (tx: Stores, mode: SendBudgetMode, subject: string, now: number) => {
    const budget = await requireSendBudget(tx, mode, subject, now)
    if (budget) await chargeSendBudget(tx, budget, now)
    return budget?.isExceeded ?? false
  }
  /** Charges a send to a new phone: true if over the budget, seconds to wait if refused. */
  const newPhone = () => {
    const subject = `app:phone ${subjects++}`
    return async (now: number, mode: SendBudgetMode = 'enforce') => {
      try {
        return await createStore(database()).write((tx) => charge(tx, mode, subject, now))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        expect(error).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_SEND_BUDGET' })
        return error.retryAfterSeconds
      }
    }
  }

  test('in enforce mode refuses the sixth send in 10 minutes and says exactly for how long', async () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) expect(await send(start + i * 1000)).toBe(false)
    expect(await send(start + 5_000)).toBe(595)
    expect(await send(start + 10 * minuteMs - 1)).toBe(1)
    expect(await send(start + 10 * minuteMs)).toBe(false)
    expect(await send(start + 10 * minuteMs)).toBe(1)
  })

  test('in enforce mode refuses the twenty-first send of a day', async () => {
    const send = newPhone()
    for (let i = 0; i < 20; i++) expect(await send(start + i * 3 * minuteMs)).toBe(false)
    expect(await send(start + 60 * minuteMs)).toBe(23 * 3600)
    expect(await send(start + 24 * 60 * minuteMs)).toBe(false)
  })

  test('does not count refused sends', async () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) await send(start)
    for (let i = 0; i < 50; i++) expect(await send(start + 1)).toBe(600)
    expect(await send(start + 10 * minuteMs)).toBe(false)
  })

  test('in monitor mode keeps counting and reports each send over the budget', async () => {
    const send = newPhone()
    for (let i = 0; i < 5; i++) expect(await send(start, 'monitor')).toBe(false)
    for (let i = 0; i < 5; i++) expect(await send(start + 1, 'monitor')).toBe(true)
    expect(await send(start + 10 * minuteMs, 'monitor')).toBe(true)
    expect(await send(start + 20 * minuteMs, 'monitor')).toBe(false)
  })

  test('switched from monitor to enforce waits until enough sends have left the window', async () => {
    const send = newPhone()
    for (let i = 0; i < 8; i++) await send(start + i * minuteMs, 'monitor')
    // Eight sends at minutes 0 to 7: the fourth of them must be 10 minutes old.
    expect(await send(start + 8 * minuteMs)).toBe(5 * 60)
  })

  test('that is off neither counts nor refuses', async () => {
    const send = newPhone()
    for (let i = 0; i < 10; i++) expect(await send(start, 'off')).toBe(false)
    expect(await send(start)).toBe(false)
  })

  test('is separate for each phone', async () => {
    const [one, other] = [newPhone(), newPhone()]
    for (let i = 0; i < 5; i++) await one(start)
    expect(await one(start)).toBe(600)
    expect(await other(start)).toBe(false)
  })
})
