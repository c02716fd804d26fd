import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { admit, peekRateLimit } from '../../../src/domain/limits/rate-limit.ts'
import { isRejected } from '../../../src/domain/model/rejected.ts'
import {
  admissionLifetimeMs,
  storedPolicies,
  type NewAdmission,
  type Usage,
  type RateLimit,
  type StoredPolicy,
} from '../../../src/domain/model/rate-limit.ts'
import { defineBodyModel, withShortIds } from './bodies.ts'

const subjects = ['app_1', 'app_2', 'dev_1']

type Call = { gapMs: number } & (
  | { kind: 'charge'; subject: string; policy: StoredPolicy; limit: number }
  | { kind: 'unlock'; subject: string }
  | { kind: 'delete expired'; rows: number }
)

const gapMs = fc.constantFrom(0, 0, 1, 2_000, 9_000, 30_000, 59_999, 60_001)
const subject = fc.constantFrom(...subjects)

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      gapMs,
      kind: fc.constant('charge' as const),
      subject,
      policy: fc.constantFrom(...storedPolicies),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ gapMs, kind: fc.constant('unlock' as const), subject }) },
  {
    weight: 1,
    arbitrary: fc.record({
      gapMs,
      kind: fc.constant('delete expired' as const),
      rows: fc.integer({ min: 1, max: 3 }),
    }),
  },
)

/** Every admission that was not forgotten, oldest first. */
type State = { now: number; admissions: NewAdmission[] }

const toLimit = (subject: string, policy: StoredPolicy, limit: number): RateLimit<StoredPolicy> => ({
  policy,
  subject,
  limit,
  windowMs: admissionLifetimeMs,
})

/** Measures a limit by the plain list. */
function plainUsage({ admissions, now }: State, limit: RateLimit<StoredPolicy>): Usage {
  const own = admissions.filter(({ subject, policy }) => subject === limit.subject && policy === limit.policy)
  const hasLater = own.some(({ at }) => at > now + limit.windowMs)
  const counted = hasLater ? own.filter(({ at }) => at <= now) : own
  const inWindow = counted.filter(({ at }) => at > now - limit.windowMs)
  const expiring = inWindow[Math.max(0, inWindow.length - limit.limit)]
  return { used: inWindow.length, newest: counted.at(-1), expiringAt: expiring?.at, hasLater }
}

export const admissionModel = defineBodyModel<Call, State>({
  name: 'the admissions of each limiter are those that were committed and not forgotten',
  shortRuns: 30,
  call,
  open: async () => ({
    content: await withShortIds(...subjects),
    state: { now: 1_800_000_000_000, admissions: [] },
  }),

  beforeCalls(state, calls) {
    for (const { gapMs } of calls) state.now += gapMs
  },

  async perform(tx, call, { state: { now } }) {
    if (call.kind === 'unlock') return void (await tx.rateLimits.forget(call.subject))
    if (call.kind === 'delete expired')
      return void (await tx.rateLimits.deleteOldest(now - admissionLifetimeMs, call.rows))
    const limit = toLimit(call.subject, call.policy, call.limit)
    const result = admit(limit, await tx.rateLimits.usage(limit, now), now, 'TEST')
    if (isRejected(result)) return result.rejected.rate
    tx.rateLimits.insert(result.changes.map(({ admission }) => admission))
    return result.rate
  },

  async apply(state, call) {
    if (call.kind === 'unlock')
      state.admissions = state.admissions.filter(({ subject }) => subject !== call.subject)
    if (call.kind !== 'charge') return undefined
    const limit = toLimit(call.subject, call.policy, call.limit)
    const result = admit(limit, plainUsage(state, limit), state.now, 'TEST')
    if (isRejected(result)) return result.rejected.rate
    state.admissions.push(...result.changes.map(({ admission }) => admission))
    return result.rate
  },

  async check({ store }, state) {
    for (const subject of subjects) {
      for (const policy of storedPolicies) {
        const limit = toLimit(subject, policy, 3)
        const rateLimits = { usage: async () => plainUsage(state, limit) }
        expect(await peekRateLimit(store.read, limit, state.now)).toEqual(
          await peekRateLimit({ rateLimits }, limit, state.now),
        )
      }
    }
  },
})
