import { expect, test } from 'bun:test'
import { count } from 'drizzle-orm'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { chargeRateLimit, peekRateLimit } from '../../../src/domain/limits/rate-limit.ts'
import type { RateLimit } from '../../../src/domain/model/rate-limit.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const windowMs = 60_000
const minute = (subject: string, limit: number): RateLimit => ({ policy: 'test', subject, limit, windowMs })

/** Seconds to wait, or undefined if the call was admitted. */
async function tryAdmit(tx: Stores, limit: RateLimit, now: number): Promise<number | undefined> {
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
const newSubject = () => `subject ${subjects++}`

const start = 1_800_000_000_000
describeEachDatabase('a rate limit', (database, kind) => {
  const write = <T>(body: (tx: Stores) => Promise<T>) =>
    createStore(database(), { keys: testKeys }).write(body)
  const rows = async () => {
    const { rateAdmissions } = database().tables
    const [row] = await database().read.select({ count: count() }).from(rateAdmissions)
    return row?.count ?? 0
  }

  test('reports the remaining calls and when it resets', async () => {
    const limit = minute(newSubject(), 3)
    const states = await write(async (tx) => [
      await peekRateLimit(tx, limit, start),
      await chargeRateLimit(tx, limit, start, 'APP_RATE'),
      await chargeRateLimit(tx, limit, start + 10_000, 'APP_RATE'),
      await peekRateLimit(tx, limit, start + 10_500),
      await chargeRateLimit(tx, limit, start + 20_000, 'APP_RATE'),
      await peekRateLimit(tx, limit, start + 60_000),
    ])
    const limitFields = { policy: 'test', limit: 3, windowSeconds: 60 }
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
    const limit = minute(newSubject(), 1)
    await write((tx) => chargeRateLimit(tx, limit, start, 'APP_RATE'))
    const before = await rows()
    const refused = write((tx) => chargeRateLimit(tx, limit, start + 1, 'APP_RATE'))
    expect(refused).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      reason: 'APP_RATE',
      retryAfterSeconds: 60,
      metadata: { policy: 'test', limit: 1, windowSeconds: 60 },
      rate: { remaining: 0, resetSeconds: 60 },
    })
    await refused.catch(() => undefined)
    expect(await rows()).toBe(before)
  })

  test('of 0 admits everything and keeps no log', async () => {
    const limit = minute(newSubject(), 0)
    const before = await rows()
    expect(await write((tx) => chargeRateLimit(tx, limit, start, 'APP_RATE'))).toBeUndefined()
    expect(await write((tx) => peekRateLimit(tx, limit, start))).toBeUndefined()
    expect(await rows()).toBe(before)
  })

  test('counts each subject and each policy separately', async () => {
    const [one, other] = [minute(newSubject(), 1), minute(newSubject(), 1)]
    await write(async (tx) => {
      expect(await tryAdmit(tx, one, start)).toBeUndefined()
      expect(await tryAdmit(tx, other, start)).toBeUndefined()
      expect(await tryAdmit(tx, { ...one, policy: 'another' }, start)).toBeUndefined()
      expect(await tryAdmit(tx, one, start)).toBe(60)
    })
  })

  // On PGlite and PostgreSQL each call costs a round trip.
  const limitMax = kind === 'SQLite' ? 10_000 : 200

  test(`of ${limitMax} admits exactly that many per window, again in the next one, and keeps the log of one window`, async () => {
    const limit = minute(newSubject(), limitMax)
    const before = await rows()
    for (const at of [start, start + windowMs]) {
      const admitted = await write(async (tx) => {
        let count = 0
        while ((await tryAdmit(tx, limit, at)) === undefined) count++
        return count
      })
      expect(admitted).toBe(limitMax)
    }
    expect((await rows()) - before).toBeLessThanOrEqual(limitMax + 8)
  }, 300_000)

  test('is not blocked by the log of a clock that ran hours ahead', async () => {
    const limit = minute(newSubject(), 1)
    await write((tx) => chargeRateLimit(tx, limit, start + 7_200_000, 'APP_RATE'))
    expect((await write((tx) => peekRateLimit(tx, limit, start)))?.remaining).toBe(1)
    expect(await write((tx) => tryAdmit(tx, limit, start))).toBeUndefined()
    expect(await write((tx) => tryAdmit(tx, limit, start))).toBe(60)
  })
})
