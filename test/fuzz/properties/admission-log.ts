import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { admit, measure } from '../../../src/domain/limits/rate-limit.ts'
import type { RateLimit, RateState, StoredPolicy } from '../../../src/domain/model/rate-limit.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { openSqlite } from '../../../src/store/engine/sqlite.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { defineProperty } from '../property.ts'

const windowMs = 60_000
const subjects = ['app_one', 'app_two']

/** The plain log: every admission as a row, which nothing deletes but `forget`. */
type Rows = Record<string, number[]>
const rowKey = ({ subject, policy }: Pick<RateLimit, 'subject' | 'policy'>) => `${policy} ${subject}`

type Outcome = RateState | 'refused' | 'forgotten'

/** `isForgetting` forgets the subject instead of charging it. */
type Call = { limit: RateLimit<StoredPolicy>; at: number; isForgetting: boolean }

function runOnRows(rows: Rows, { limit, at: now, isForgetting }: Call): Outcome {
  if (isForgetting) {
    forgetRows(rows, limit.subject)
    return 'forgotten'
  }
  const times = (rows[rowKey(limit)] ??= [])
  const recent = times.filter((at) => at > now - windowMs)
  if (recent.length >= limit.limit) return 'refused'
  times.push(Math.max(now, times.at(-1) ?? 0))
  return {
    policy: limit.policy,
    limit: limit.limit,
    windowSeconds: 60,
    remaining: limit.limit - recent.length - 1,
    resetSeconds: Math.max(1, Math.ceil(((recent[0] ?? now) + windowMs - now) / 1000)),
  }
}

function forgetRows(rows: Rows, subject: string): void {
  for (const key of Object.keys(rows)) if (key.endsWith(` ${subject}`)) delete rows[key]
}

async function run(tx: Stores, { limit, at: now, isForgetting }: Call): Promise<Outcome> {
  if (isForgetting) {
    await tx.rateLimits.forget(limit.subject)
    return 'forgotten'
  }
  const result = admit(limit, await measure(tx, limit, now), now, 'APP_RATE')
  if (result.refused) return 'refused'
  if (result.admission) await tx.rateLimits.insert(result.admission)
  return result.state ?? 'refused'
}

const subject = fc.constantFrom(...subjects)
const call = fc.record({
  subject,
  isForgetting: fc.integer({ min: 0, max: 9 }).map((number) => number === 9),
  policy: fc.constantFrom<StoredPolicy>('otp-send', 'otp-send', 'webhook-test'),
  limit: fc.integer({ min: 1, max: 4 }),
  gap: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 20 }).map((seconds) => seconds * 500) },
    { weight: 2, arbitrary: fc.constantFrom(0, 1, 49_000, 58_000, 59_999, 60_000, 60_001, 200_000) },
  ),
})
/** `throws` fails alone, `throwsAfterRow` makes the batch run again with savepoints, `waits` fails the whole batch. */
const job = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  end: fc.oneof(
    { weight: 12, arbitrary: fc.constant('commits' as const) },
    { weight: 2, arbitrary: fc.constant('throws' as const) },
    { weight: 2, arbitrary: fc.constant('throwsAfterRow' as const) },
    { weight: 1, arbitrary: fc.constant('waits' as const) },
  ),
})
const step = fc.oneof(
  { weight: 6, arbitrary: fc.array(job, { minLength: 1, maxLength: 4 }).map((jobs) => ({ jobs })) },
  { weight: 2, arbitrary: fc.constant({ restart: true as const }) },
  { weight: 2, arbitrary: subject.map((forgotten) => ({ forgotten })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 100 }).map((pruned) => ({ pruned })) },
)

export const admissionLogProperties = [
  defineProperty(
    'the admission log in memory answers as rows do, with failing jobs and batches, restarts and other processes',
    60,
    async () => {
      const opened = await openTestSqlite()
      await registerShortIds(opened.database, ...subjects)
      const openProcess = () => {
        const database = openSqlite(opened.path, { onDiskFault: () => {} })
        return { database, store: createStore(database, { keys: testKeys }) }
      }
      let own = openProcess()
      const other = openProcess()
      let start = 1_800_000_000_000

      const property = fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
        async (steps) => {
          let rows: Rows = {}
          start += 10_000_000
          let now = start
          for (const one of steps) {
            if ('jobs' in one) {
              const before = structuredClone(rows)
              const expected: Array<Outcome[] | undefined> = []
              const writes: Array<Promise<Outcome[]>> = []
              for (const { calls, end } of one.jobs) {
                const undone = structuredClone(rows)
                const timed = calls.map(({ gap, isForgetting, ...limit }) => ({
                  at: (now += gap),
                  isForgetting,
                  limit: { ...limit, windowMs },
                }))
                const outcomes = timed.map((one) => runOnRows(rows, one))
                expected.push(end === 'commits' ? outcomes : undefined)
                if (end !== 'commits') rows = undone
                writes.push(
                  own.store.write(async (tx) => {
                    const results: Outcome[] = []
                    for (const timedCall of timed) results.push(await run(tx, timedCall))
                    if (end === 'throwsAfterRow') await tx.readiness.probe(now)
                    if (end === 'waits') await new Promise(setImmediate)
                    if (end.startsWith('throws')) throw new Error('undone')
                    return results
                  }),
                )
              }
              const isBatchLost = one.jobs.some(({ end }) => end === 'waits')
              if (isBatchLost) rows = before
              const results = await Promise.allSettled(writes)
              const seen = results.map((result) => (result.status === 'fulfilled' ? result.value : undefined))
              expect(seen).toEqual(isBatchLost ? expected.map(() => undefined) : expected)
            } else if ('restart' in one) {
              await own.database.close()
              own = openProcess()
            } else if ('forgotten' in one) {
              await other.store.write((tx) => tx.rateLimits.forget(one.forgotten))
              forgetRows(rows, one.forgotten)
            } else {
              await own.store.write((tx) => tx.rateLimits.deleteOldest(now - windowMs, one.pruned))
            }
          }
          await own.store.write(async (tx) => {
            for (const name of subjects) await tx.rateLimits.forget(name)
          })
        },
      )
      return {
        property,
        async close() {
          await own.database.close()
          await other.database.close()
          await opened.dispose()
        },
      }
    },
  ),
]
