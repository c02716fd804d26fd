import { expect } from 'bun:test'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { chargeRateLimit } from '../../../src/domain/limits/rate-limit.ts'
import type { RateLimit, StoredPolicy } from '../../../src/domain/model/rate-limit.ts'
import type { Store, Stores } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import { defineProperty } from '../property.ts'

import * as fc from 'fast-check'
import { testKeys } from '../../helpers/keys.ts'

const windowMs = 60_000
const start = 1_800_000_000_000
const subject = 'somebody'
const createLimit = (limit: number): RateLimit<StoredPolicy> => ({
  policy: 'otp-send',
  subject,
  limit,
  windowMs,
})

/** Gaps between calls: mostly short, sometimes a whole window. */
const gap = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 8_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 59_999, 60_000, 60_001) },
)

/** Returns the seconds to wait, or undefined if the call was admitted. */
async function tryAdmit(tx: Stores, limit: number, now: number): Promise<number | undefined> {
  try {
    await chargeRateLimit(tx, createLimit(limit), now, 'APP_RATE')
    return undefined
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    expect(error.code).toBe('RATE_LIMITED')
    return error.retryAfterSeconds
  }
}

async function openStore() {
  const opened = await openTestSqlite()
  await registerShortIds(opened.database, subject)
  return { store: createStore(opened.database, { keys: testKeys }), close: opened.dispose }
}

/** Runs the body in a transaction, and deletes the subject's admissions at its end. */
const inTransaction = (store: Store, body: (tx: Stores) => Promise<void>) =>
  store.write(async (tx) => {
    await body(tx)
    await tx.rateLimits.forget(subject)
  })

export const rateLimitProperties = [
  defineProperty(
    'a rate limit admits a call exactly if fewer than N were admitted in the last 60 seconds, and Retry-After is exact',
    400,
    async () => {
      const { store, close } = await openStore()
      const change = fc.record({ gap, limit: fc.option(fc.integer({ min: 1, max: 12 }), { freq: 8 }) })
      const property = fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(change, { minLength: 1, maxLength: 80 }),
        (firstLimit, steps) =>
          inTransaction(store, async (tx) => {
            const admitted: number[] = []
            let now = start
            let limit = firstLimit
            for (const step of steps) {
              now += step.gap
              limit = step.limit ?? limit
              const recent = admitted.filter((at) => at > now - windowMs)
              const waitSeconds = await tryAdmit(tx, limit, now)
              expect(waitSeconds === undefined).toBe(recent.length < limit)
              if (waitSeconds === undefined) admitted.push(now)
              else {
                const freeAt = (recent[recent.length - limit] ?? 0) + windowMs
                expect(waitSeconds).toBe(Math.ceil((freeAt - now) / 1000))
              }
            }
          }),
      )
      return { property, close }
    },
  ),

  defineProperty(
    'if the clock is set back across restarts, no real window has more than N calls, and no wait exceeds 60 s',
    400,
    async () => {
      const { store, close } = await openStore()
      const step = fc.record({
        gap,
        setBackMs: fc.option(fc.integer({ min: 0, max: 10 * windowMs }), { freq: 6 }),
      })
      const property = fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(step, { minLength: 1, maxLength: 80 }),
        (limit, steps) =>
          inTransaction(store, async (tx) => {
            const admitted: number[] = []
            let real = start
            let offset = 0
            for (const { gap: gapMs, setBackMs } of steps) {
              real += gapMs
              if (setBackMs !== null) {
                offset -= setBackMs
                await tx.rateLimits.clampToNow(real + offset)
              }
              const waitSeconds = await tryAdmit(tx, limit, real + offset)
              if (waitSeconds === undefined) admitted.push(real)
              else expect(waitSeconds).toBeLessThanOrEqual(60)
              const recent = admitted.filter((at) => at > real - windowMs)
              expect(recent.length).toBeLessThanOrEqual(limit)
            }
          }),
      )
      return { property, close }
    },
  ),
]
