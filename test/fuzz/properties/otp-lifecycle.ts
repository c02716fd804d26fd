import { expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import * as fc from 'fast-check'
import { openTestSqlite } from '../../helpers/databases.ts'
import { guardOffEnv, createOtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestResponse } from '../../helpers/service.ts'
import { defineProperty } from '../property.ts'

const ttlMs = 300_000

type Step = 'right' | 'wrong' | 'resend' | 'cancel' | 'sweep' | number

/** Step of a run: a call, the expiry sweep, or time that passes. */
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>('right', 'wrong', 'wrong', 'wrong', 'resend', 'cancel', 'sweep'),
  fc.constantFrom<Step>(1, 29_999, 30_000, 30_000, ttlMs - 1, ttlMs),
)

/** Status of a request by the refusal that only this status may cause. */
const statusByRefusal: Record<string, string> = {
  ALREADY_VERIFIED: 'verified',
  OTP_CANCELED: 'canceled',
  OTP_EXPIRED: 'expired',
  ATTEMPTS_EXHAUSTED: 'failed',
}
const refusals = ['INVALID_CODE', 'RESEND_TOO_SOON', 'RESENDS_EXHAUSTED', ...Object.keys(statusByRefusal)]

/** Creates a service whose transactions begin in the order chosen by the scheduler of a run. */
async function openFixture() {
  const { database, dispose } = await openTestSqlite()
  let scheduler: fc.Scheduler | undefined
  const scheduledTurn = () => scheduler?.schedule(Promise.resolve()) ?? Promise.resolve()
  const service = await createTestService({
    plans: unlimitedPlans,
    env: guardOffEnv,
    database: { ...database, write: (body) => scheduledTurn().then(() => database.write(body)) },
  })
  const developer = await service.createDeveloper()
  return {
    service,
    scheduledTurn,
    otp: createOtpClient(service),
    application: await service.createApplication(developer),
    /** Runs the calls concurrently. */
    async interleave<T>(runScheduler: fc.Scheduler, calls: Array<() => Promise<T>>): Promise<T[]> {
      scheduler = runScheduler
      try {
        return await runScheduler.waitFor(Promise.all(calls.map((call) => call())))
      } finally {
        scheduler = undefined
      }
    },
    async listEventTypes(requestId: string) {
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

type Outcome = { step: Step; response?: TestResponse<unknown> }

const count = <T>(list: readonly T[], predicate: (item: T) => boolean) => list.filter(predicate).length

export const otpLifecycleProperties = [
  defineProperty(
    'a request is closed once and for one reason, in every order of calls, expiry and sweep',
    150,
    async () => {
      const { service, scheduledTurn, otp, application, interleave, listEventTypes, close } =
        await openFixture()
      let phones = 0

      const property = fc.asyncProperty(
        fc.scheduler(),
        fc.array(step, { minLength: 1, maxLength: 14 }),
        async (scheduler, steps) => {
          const phone = `+1415${String(2_000_000 + (phones++ % 7_000_000))}`
          const { requestId } = await otp.sendOrThrow(application, { phone })
          const [rightCode, wrongCode] = [await otp.getCode(requestId), await otp.getWrongCode(requestId)]
          const expiresAt = service.clock.now() + ttlMs

          const calls = steps.map((one) => async (): Promise<Outcome> => {
            if (one === 'sweep') await service.services.otp.expireRequests()
            else if (one === 'resend')
              return { step: one, response: await otp.resend(application, requestId) }
            else if (one === 'cancel')
              return { step: one, response: await otp.cancel(application, requestId) }
            else if (typeof one === 'number') {
              await scheduledTurn()
              service.clock.advance(one)
            } else {
              const code = one === 'right' ? rightCode : wrongCode
              return { step: one, response: await otp.verify(application, requestId, code) }
            }
            return { step: one }
          })
          const outcomes = await interleave(scheduler, calls)

          const row = await service.store.read.otpRequests.find(requestId)
          if (!row) throw new Error('the request is gone')
          const countSucceeded = (name: Step) =>
            count(outcomes, ({ step: one, response }) => one === name && response?.status === 200)
          const refusalCodes = outcomes.flatMap(({ response }) =>
            response && response.status !== 200 ? [response.error.reason ?? response.error.code] : [],
          )
          const guesses = count(refusalCodes, (code) => code === 'INVALID_CODE')
          expect(refusalCodes.filter((code) => !refusals.includes(code))).toEqual([])
          expect(row.attempts).toBe(guesses + countSucceeded('right'))
          expect(row.attempts).toBeLessThanOrEqual(5)
          expect(countSucceeded('right')).toBe(row.status === 'verified' ? 1 : 0)
          expect(countSucceeded('wrong')).toBe(0)
          expect(countSucceeded('cancel')).toBe(row.status === 'canceled' ? 1 : 0)
          expect(guesses === 5).toBe(row.status === 'failed')
          expect(row.resends).toBe(countSucceeded('resend'))
          expect(row.resends).toBeLessThanOrEqual(3)
          if (row.verifiedAt !== null) expect(row.verifiedAt).toBeLessThan(expiresAt)
          for (const code of refusalCodes)
            if (statusByRefusal[code]) expect(String(row.status)).toBe(statusByRefusal[code])
          const expected = [
            ...Array.from({ length: 1 + row.resends }, () => 'sent'),
            ...Array.from({ length: guesses }, () => 'attempt_failed'),
            ...(row.status === 'pending' ? [] : [row.status]),
          ]
          expect((await listEventTypes(requestId)).toSorted()).toEqual(expected.toSorted())

          service.clock.advance(ttlMs)
          await service.services.otp.expireRequests()
          const ended = await service.store.read.otpRequests.find(requestId)
          expect(ended?.status).toBe(row.status === 'pending' ? 'expired' : row.status)
        },
      )
      return { property, close }
    },
  ),
]
