import { expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import * as fc from 'fast-check'
import { openTestSqlite } from '../../helpers/databases.ts'
import { guardOff, otpCalls, unlimited } from '../../helpers/otp.ts'
import { createTestService, type TestAnswer } from '../../helpers/service.ts'
import { defineProperty } from '../property.ts'

const ttlMs = 300_000

type Step = 'right' | 'wrong' | 'resend' | 'cancel' | 'sweep' | number

/** Calls, the sweep of what expired, and the milliseconds that pass. */
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>('right', 'wrong', 'wrong', 'wrong', 'resend', 'cancel', 'sweep'),
  fc.constantFrom<Step>(1, 29_999, 30_000, 30_000, ttlMs - 1, ttlMs),
)

/** What a call may be answered once the request has ended so, and never otherwise. */
const endOf: Record<string, string> = {
  ALREADY_VERIFIED: 'verified',
  OTP_CANCELED: 'canceled',
  OTP_EXPIRED: 'expired',
  ATTEMPTS_EXHAUSTED: 'failed',
}
const refusals = ['INVALID_CODE', 'RESEND_TOO_SOON', 'RESENDS_EXHAUSTED', ...Object.keys(endOf)]

/** A service whose transactions begin in the order that the scheduler of a run chooses. */
async function openScene() {
  const { database, dispose } = await openTestSqlite()
  let scheduler: fc.Scheduler | undefined
  const turn = () => scheduler?.schedule(Promise.resolve()) ?? Promise.resolve()
  const service = await createTestService({
    plans: unlimited,
    env: guardOff,
    database: { ...database, write: (body) => turn().then(() => database.write(body)) },
  })
  const developer = await service.createDeveloper()
  return {
    service,
    turn,
    otp: otpCalls(service),
    application: await service.createApplication(developer),
    /** Runs the calls, all of them under way at once. */
    async interleave<T>(by: fc.Scheduler, calls: Array<() => Promise<T>>): Promise<T[]> {
      scheduler = by
      try {
        return await by.waitFor(Promise.all(calls.map((call) => call())))
      } finally {
        scheduler = undefined
      }
    },
    async eventsOf(requestId: string) {
      const { events } = database.tables
      const rows = await database.read
        .select({ type: events.type })
        .from(events)
        .where(eq(events.requestId, requestId))
      return rows.map(({ type }) => type.replace('otp.', ''))
    },
    async close() {
      await service.dispose()
      await dispose()
    },
  }
}

type Outcome = { step: Step; answer?: TestAnswer<unknown> }

const count = <T>(list: readonly T[], holds: (item: T) => boolean) => list.filter(holds).length

export const otpLifeProperties = [
  defineProperty(
    'a request ends once and for one reason, in every order of calls, expiry and sweep',
    150,
    async () => {
      const { service, turn, otp, application, interleave, eventsOf, close } = await openScene()
      let phones = 0

      const property = fc.asyncProperty(
        fc.scheduler(),
        fc.array(step, { minLength: 1, maxLength: 14 }),
        async (scheduler, steps) => {
          const phone = `+1415${String(2_000_000 + (phones++ % 7_000_000))}`
          const { requestId } = await otp.sent(application, { phone })
          const [right, wrong] = [await otp.codeOf(requestId), await otp.wrongCodeOf(requestId)]
          const expiresAt = service.clock.now() + ttlMs

          const calls = steps.map((one) => async (): Promise<Outcome> => {
            if (one === 'sweep') await service.services.otp.expireDue()
            else if (one === 'resend') return { step: one, answer: await otp.resend(application, requestId) }
            else if (one === 'cancel') return { step: one, answer: await otp.cancel(application, requestId) }
            else if (typeof one === 'number') {
              await turn()
              service.clock.advance(one)
            } else {
              const code = one === 'right' ? right : wrong
              return { step: one, answer: await otp.verify(application, requestId, code) }
            }
            return { step: one }
          })
          const outcomes = await interleave(scheduler, calls)

          const row = await service.store.read.otpRequests.find(requestId)
          if (!row) throw new Error('the request is gone')
          const succeeded = (name: Step) =>
            count(outcomes, ({ step: one, answer }) => one === name && answer?.status === 200)
          const refused = outcomes.flatMap(({ answer }) =>
            answer && answer.status !== 200 ? [answer.error.reason ?? answer.error.code] : [],
          )
          const guesses = count(refused, (code) => code === 'INVALID_CODE')
          expect(refused.filter((code) => !refusals.includes(code))).toEqual([])
          expect(row.attempts).toBe(guesses + succeeded('right'))
          expect(row.attempts).toBeLessThanOrEqual(5)
          expect(succeeded('right')).toBe(row.status === 'verified' ? 1 : 0)
          expect(succeeded('wrong')).toBe(0)
          expect(succeeded('cancel')).toBe(row.status === 'canceled' ? 1 : 0)
          expect(guesses === 5).toBe(row.status === 'failed')
          expect(row.resends).toBe(succeeded('resend'))
          expect(row.resends).toBeLessThanOrEqual(3)
          if (row.verifiedAt !== null) expect(row.verifiedAt).toBeLessThan(expiresAt)
          for (const code of refused) if (endOf[code]) expect(String(row.status)).toBe(endOf[code])
          const expected = [
            ...Array.from({ length: 1 + row.resends }, () => 'sent'),
            ...Array.from({ length: guesses }, () => 'attempt_failed'),
            ...(row.status === 'pending' ? [] : [row.status]),
          ]
          expect((await eventsOf(requestId)).toSorted()).toEqual(expected.toSorted())

          service.clock.advance(ttlMs)
          await service.services.otp.expireDue()
          const ended = await service.store.read.otpRequests.find(requestId)
          expect(ended?.status).toBe(row.status === 'pending' ? 'expired' : row.status)
        },
      )
      return { property, close }
    },
  ),
]
