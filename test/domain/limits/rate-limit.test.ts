import { expect, test } from 'bun:test'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { admit, chargeRateLimit, peekRateLimit } from '../../../src/domain/limits/rate-limit.ts'
import type { RateLimit, StoredPolicy } from '../../../src/domain/model/rate-limit.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const windowMs = 60_000
const policy = 'otp-send'
const minute = (subject: string, limit: number): RateLimit<StoredPolicy> => ({
  policy,
  subject,
  limit,
  windowMs,
})

/** Seconds to wait, or undefined if the call was admitted. */
async function tryAdmit(
  tx: Stores,
  limit: RateLimit<StoredPolicy>,
  now: number,
): Promise<number | undefined> {
  try {
    await chargeRateLimit(tx, limit, now, 'APP_RATE')
    return undefined
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    expect(error.code).toBe('RATE_LIMITED')
    return error.retryAfterSeconds
  }
}

let subjects = 0

const start = 1_800_000_000_000
describeEachDatabase('a rate limit', (database, kind) => {
  const write = <T>(body: (tx: Stores) => Promise<T>) =>
    createStore(database(), { keys: testKeys }).write(body)
  const newSubject = async () => {
    const subject = `subject ${subjects++}`
    await registerShortIds(database(), subject)
    return subject
  }
  /** Forgets them, and rolls that back. */
  const countAdmissions = async (subject: string) => {
    let admissions = 0
    const undone = write(async (tx) => {
      admissions = await tx.rateLimits.forget(subject)
      throw new Error('undone')
    })
    await undone.catch(() => undefined)
    return admissions
  }

  test('reports the remaining calls and when it resets', async () => {
    const limit = minute(await newSubject(), 3)
    const states = await write(async (tx) => [
      await peekRateLimit(tx, limit, start),
      await chargeRateLimit(tx, limit, start, 'APP_RATE'),
      await chargeRateLimit(tx, limit, start + 10_000, 'APP_RATE'),
      await peekRateLimit(tx, limit, start + 10_500),
      await chargeRateLimit(tx, limit, start + 20_000, 'APP_RATE'),
      await peekRateLimit(tx, limit, start + 60_000),
    ])
    const limitFields = { policy, limit: 3, windowSeconds: 60 }
    expect(states).toEqual([
      { ...limitFields, remaining: 3, resetSeconds: 60 },
      { ...limitFields, remaining: 2, resetSeconds: 60 },
      { ...limitFields, remaining: 1, resetSeconds: 50 },
      { ...limitFields, remaining: 1, resetSeconds: 50 },
      { ...limitFields, remaining: 0, resetSeconds: 40 },
      { ...limitFields, remaining: 1, resetSeconds: 10 },
    ])
  })

  test('names policy and numbers when it refuses, and writes nothing', async () => {
    const limit = minute(await newSubject(), 1)
    await write((tx) => chargeRateLimit(tx, limit, start, 'APP_RATE'))
    const refused = write((tx) => chargeRateLimit(tx, limit, start + 1, 'APP_RATE'))
    expect(refused).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      reason: 'APP_RATE',
      retryAfterSeconds: 60,
      metadata: { policy, limit: 1, windowSeconds: 60 },
      rate: { remaining: 0, resetSeconds: 60 },
    })
    await refused.catch(() => undefined)
    expect(await countAdmissions(limit.subject)).toBe(1)
  })

  test('of 0 admits everything and keeps no log', async () => {
    const limit = minute(await newSubject(), 0)
    expect(await write((tx) => chargeRateLimit(tx, limit, start, 'APP_RATE'))).toBeUndefined()
    expect(await write((tx) => peekRateLimit(tx, limit, start))).toBeUndefined()
    expect(await countAdmissions(limit.subject)).toBe(0)
  })

  test('counts each subject and each policy separately', async () => {
    const [one, other] = [minute(await newSubject(), 1), minute(await newSubject(), 1)]
    await write(async (tx) => {
      expect(await tryAdmit(tx, one, start)).toBeUndefined()
      expect(await tryAdmit(tx, other, start)).toBeUndefined()
      expect(await tryAdmit(tx, { ...one, policy: 'otp-verify' }, start)).toBeUndefined()
      expect(await tryAdmit(tx, one, start)).toBe(60)
    })
  })

  // On PGlite and PostgreSQL each call costs a round trip.
  const limitMax = kind === 'SQLite' ? 10_000 : 200

  test(`of ${limitMax} admits exactly that many per window, again in the next one, and keeps the log of one window`, async () => {
    const limit = minute(await newSubject(), limitMax)
    for (const at of [start, start + windowMs]) {
      const admitted = await write(async (tx) => {
        let count = 0
        while ((await tryAdmit(tx, limit, at)) === undefined) count++
        return count
      })
      expect(admitted).toBe(limitMax)
    }
    expect(await countAdmissions(limit.subject)).toBeLessThanOrEqual(limitMax + 8)
  }, 300_000)

  test('is not blocked by the log of a clock that ran hours ahead', async () => {
    const limit = minute(await newSubject(), 1)
    await write((tx) => chargeRateLimit(tx, limit, start + 7_200_000, 'APP_RATE'))
    expect((await write((tx) => peekRateLimit(tx, limit, start)))?.remaining).toBe(1)
    expect(await write((tx) => tryAdmit(tx, limit, start))).toBeUndefined()
    expect(await write((tx) => tryAdmit(tx, limit, start))).toBe(60)
  })

  test('that was lowered admits again when enough calls have left the window', async () => {
    const limit = minute(await newSubject(), 5)
    for (let i = 0; i < 5; i++) {
      await write((tx) => chargeRateLimit(tx, limit, start + i * 10_000, 'APP_RATE'))
    }
    const lowered = { ...limit, limit: 2 }
    expect(await write((tx) => tryAdmit(tx, lowered, start + 40_000))).toBe(50)
    expect(await write((tx) => tryAdmit(tx, lowered, start + 90_000))).toBeUndefined()
  })

  test('forgets a subject under every policy, and no other subject', async () => {
    const [forgotten, kept] = [minute(await newSubject(), 1), minute(await newSubject(), 1)]
    await write(async (tx) => {
      for (const limit of [forgotten, kept]) {
        await chargeRateLimit(tx, limit, start, 'APP_RATE')
        await chargeRateLimit(tx, { ...limit, policy: 'otp-verify' }, start, 'APP_RATE')
      }
    })
    expect(await write((tx) => tx.rateLimits.forget(forgotten.subject))).toBe(2)
    expect(await write((tx) => tryAdmit(tx, forgotten, start))).toBeUndefined()
    expect(await write((tx) => tryAdmit(tx, kept, start))).toBe(60)
  })

  test('is read without being charged, in the transaction of a call and afterwards', async () => {
    const store = createStore(database(), { keys: testKeys })
    const limit = minute(await newSubject(), 3)
    const peeked: unknown[] = []
    await store.write(async (tx) => {
      await chargeRateLimit(tx, limit, start, 'APP_RATE')
      peeked.push((await peekRateLimit(tx, limit, start))?.remaining)
    })
    peeked.push((await peekRateLimit(store.read, limit, start))?.remaining)
    expect(peeked).toEqual([2, 2])
  })

  test('counts an admission for a minute to the millisecond', async () => {
    const limit = minute(await newSubject(), 1)
    const at = (now: number) => write((tx) => tryAdmit(tx, limit, now))
    expect(await at(start)).toBeUndefined()
    expect(await at(start + windowMs - 1)).toBe(1)
    expect(await at(start + windowMs)).toBeUndefined()
  })

  test('appends to its log in the order of time, although a clock is a little behind', () => {
    const newest = { at: start + 5, seq: 7 }
    const usage = { used: 1, newest, expiringAt: undefined, hasLater: false }
    expect(admit(minute('app_1', 3), usage, start, 'APP_RATE')).toMatchObject({
      changes: [{ admission: { at: start + 5, seq: 8 } }],
    })
  })

  test('decides without a promise', async () => {
    const limit = minute(await newSubject(), 1)
    const usage = await write(async (tx) => tx.rateLimits.usage(limit, start))
    const result = admit(limit, usage, start, 'APP_RATE')
    expect(result).not.toHaveProperty('then')
    expect(result).toMatchObject({
      changes: [{ admission: { policy, subject: limit.subject, at: start, seq: 1 } }],
      rate: { remaining: 0 },
    })
  })
})
