import { expect } from 'bun:test'
import * as fc from 'fast-check'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { allowances } from '../../../src/domain/guard/allowances.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff, stranger } from '../../helpers/guard.ts'
import { defineProperty } from '../property.ts'
import { testKeys } from '../../helpers/keys.ts'

type Sent = { request: GuardedMessage; verified: boolean }

type Step =
  | {
      kind: 'send'
      count: number
      developer: string
      country: string
      phone: string | undefined
      ip: string | null
    }
  | { kind: 'known' }
  | { kind: 'verify'; count: number }
  | { kind: 'wait'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      count: fc.constantFrom(1, 5, 40),
      developer: fc.constantFrom('dev_1', 'dev_1', 'dev_2'),
      country: fc.constantFrom('NL', 'NL', 'BE'),
      phone: fc.constantFrom(undefined, undefined, '+31611110001', '+31611110002'),
      ip: fc.constantFrom(null, '203.0.113.1', '203.0.113.2', '198.51.100.1'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('known' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('verify' as const), count: fc.constantFrom(1, 10) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(1_000, minuteMs, 3 * minuteMs, hourMs, 7 * hourMs, dayMs),
    }),
  },
)

/** The most unverified messages that may leave: a base, and those that verified phones add. */
const bound = (base: number, perPhone: number, sent: readonly Sent[]) =>
  base + perPhone * new Set(sent.filter(({ verified }) => verified).map(({ request }) => request.phone)).size

const holds = defineProperty(
  'the guard bounds what is left unverified, and never refuses a known phone',
  40,
  async () => {
    const { database, dispose } = await openTestSqlite()
    const store = createStore(database, { keys: testKeys })
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
      await store.write(async ({ guard }) => {
        for (const key of await guard.listKeys('', 10_000)) await guard.delete(key)
      })
      const { clock, evaluate, verify, createRequest, faults } = createGuardFixture(store, guardOff)
      const sent: Sent[] = []
      for (const one of steps) {
        if (one.kind === 'wait') clock.advance(one.ms)
        else if (one.kind === 'known') {
          const verdict = await evaluate(createRequest({ phone: '+31611110001' }), {
            ...stranger,
            isKnownPhone: true,
          })
          expect(verdict.violatedRules).toEqual([])
        } else if (one.kind === 'send') {
          const { country, developer: developerId, phone, ip: clientIp } = one
          for (let n = 0; n < one.count; n++) {
            const request = createRequest({ country, developerId, clientIp, ...(phone && { phone }) })
            if (!(await evaluate(request)).blocked) sent.push({ request, verified: false })
          }
        } else {
          for (const message of sent.filter(({ verified }) => !verified).slice(-one.count)) {
            message.verified = true
            await verify(message.request)
          }
        }
      }
      expect(faults).toEqual([])
      for (const developer of ['dev_1', 'dev_2']) {
        const own = sent.filter(({ request }) => request.developerId === developer)
        const unverified = own.filter(({ verified }) => !verified)
        for (const { request } of unverified) {
          const from = request.createdAt - dayMs
          const lastDay = unverified.filter(
            (one) => one.request.createdAt > from && one.request.createdAt <= request.createdAt,
          )
          expect(lastDay.length).toBeLessThanOrEqual(bound(allowances.pool.perDay, 20, own))
          const toPrefix = lastDay.filter((one) => one.request.phone.startsWith('+3161111'))
          // Messages in flight count a fifth, up to 30.
          expect(toPrefix.length).toBeLessThanOrEqual(bound(allowances.prefix.base + 24, 20, own))
        }
      }
    })
    return { property, close: dispose }
  },
)

export const guardProperties = [holds]
