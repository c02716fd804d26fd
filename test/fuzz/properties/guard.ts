import { expect } from 'bun:test'
import * as fc from 'fast-check'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { guardFigures } from '../../../src/domain/guard/rules.ts'
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

/** The most unverified messages that a rule lets pass: those of a day, and what verified codes add. */
const bound = (perDay: number, sent: readonly Sent[]) =>
  perDay + guardFigures.perVerified * sent.filter(({ verified }) => verified).length

const holds = defineProperty(
  'the guard bounds what is left unverified, and never refuses a known phone',
  40,
  async () => {
    const { database, dispose } = await openTestSqlite()
    const { guardCountries, guardCounts, guardContexts } = database.tables
    const store = createStore(database, { keys: testKeys })
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
      await database.write(async (tx) => {
        for (const table of [guardCountries, guardCounts, guardContexts]) await tx.delete(table)
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
      const dayOf = ({ request }: Sent) => `${request.developerId} ${Math.floor(request.createdAt / dayMs)}`
      for (const day of new Set(sent.map(dayOf))) {
        const toPrefix = sent.filter((one) => dayOf(one) === day && one.request.phone.startsWith('+3161111'))
        const unverified = toPrefix.filter(({ verified }) => !verified).length
        // Codes that were verified on the day before allow for messages of this one.
        expect(unverified).toBeLessThanOrEqual(bound(guardFigures.prefixPerDay, sent))
      }
    })
    return { property, close: dispose }
  },
)

export const guardProperties = [holds]
