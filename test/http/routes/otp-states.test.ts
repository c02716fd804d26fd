import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService } from '../../helpers/otp-client.ts'
import type { TestResponse } from '../../helpers/service.ts'

const { service, otp, owner, application } = await createOtpTestService()
afterAll(() => service.dispose())

let phones = 0

/** Brings a request into each state. */
const reachState: Record<string, (requestId: string) => Promise<unknown>> = {
  pending: async () => undefined,
  verified: (requestId) => otp.verifyRightCode(application, requestId),
  failed: async (requestId) => {
    for (let i = 0; i < 5; i++) await otp.verifyWrongCode(application, requestId)
  },
  canceled: (requestId) => otp.cancel(application, requestId),
  expired: async () => {
    service.clock.advance(300_000)
    await service.services.otp.expireRequests()
  },
  'expired, not yet swept': async () => service.clock.advance(300_000),
}

type Trigger = (requestId: string) => Promise<TestResponse<unknown>>
const triggers: Record<string, Trigger> = {
  'verify, right': (requestId) => otp.verifyRightCode(application, requestId),
  'verify, wrong': (requestId) => otp.verifyWrongCode(application, requestId),
  resend: (requestId) => otp.resend(application, requestId),
  cancel: (requestId) => otp.cancel(application, requestId),
}

const ended = {
  verified: ['409 ALREADY_VERIFIED', 'verified'],
  failed: ['410 ATTEMPTS_EXHAUSTED', 'failed'],
  canceled: ['410 OTP_CANCELED', 'canceled'],
  expired: ['410 OTP_EXPIRED', 'expired'],
  'expired, not yet swept': ['410 OTP_EXPIRED', 'expired'],
} as const
const pending: Record<string, readonly [string, string]> = {
  'verify, right': ['200', 'verified'],
  'verify, wrong': ['400 INVALID_CODE', 'pending'],
  resend: ['200', 'pending'],
  cancel: ['200', 'canceled'],
}
const table = Object.keys(triggers).flatMap((trigger) => [
  { state: 'pending', trigger, responses: pending[trigger]?.[0], next: pending[trigger]?.[1] },
  ...Object.entries(ended).map(([state, [responses, next]]) => ({
    state,
    trigger,
    responses,
    next,
  })),
])

describe('a request that is', () => {
  test.each(table)(
    '$state responds $responses to $trigger and is $next',
    async ({ state, trigger, responses, next }) => {
      const { requestId } = await otp.sendOrThrow(application, { phone: `+1415555${1000 + phones++}` })
      await reachState[state]?.(requestId)
      if (state === 'pending') service.clock.advance(30_000)
      const before = await otp.listLogEntries(owner, requestId)
      const response = await triggers[trigger]?.(requestId)
      expect([response?.status, response?.error?.code].filter(Boolean).join(' ')).toBe(responses ?? '')
      const { data } = await otp.get(owner, requestId)
      expect(data.status).toBe(next ?? '')
      expect(data.verifiedAt === null).toBe(next !== 'verified')
      expect(data.failureReason).toBe(next === 'failed' ? 'max_attempts' : null)
      // The terminal event is recorded exactly once, and a closed request records no more events.
      const log = await otp.listLogEntries(owner, requestId)
      const terminalEvents = log.filter(({ type }) => type !== 'otp.sent' && type !== 'otp.attempt_failed')
      expect(terminalEvents.map(({ type }) => type)).toEqual(next === 'pending' ? [] : [`otp.${next}`])
      if (state !== 'pending' && state !== 'expired, not yet swept') expect(log).toEqual(before)
    },
  )
})

describe('expiry', () => {
  test('is recorded by the sweeper when it finds it, in batches', async () => {
    const requests = await Promise.all(
      Array.from({ length: 7 }, (_, i) =>
        otp.sendOrThrow(application, { phone: `+1415556${1000 + i}`, ttlSeconds: 60 }),
      ),
    )
    const alive = await otp.sendOrThrow(application, { phone: '+14155562000', ttlSeconds: 61 })
    service.clock.advance(60_000)
    expect(await service.services.otp.expireRequests(3)).toBe(7)
    expect(await service.services.otp.expireRequests(3)).toBe(0)
    for (const { requestId } of requests) {
      const log = await otp.listLogEntries(owner, requestId)
      expect(log.map(({ type, status }) => [type, status])).toEqual([
        ['otp.sent', 'pending'],
        ['otp.expired', 'expired'],
      ])
    }
    expect((await otp.get(owner, alive.requestId)).data.status).toBe('pending')
  })

  test('is visible before the sweeper has recorded it', async () => {
    const { requestId } = await otp.sendOrThrow(application, { phone: '+14155562001' })
    const ids = async (status: string) =>
      (
        await service.request<Array<{ id: string }>>('GET', `/v1/otp?limit=200&status=${status}`, {
          as: owner,
        })
      ).data.map(({ id }) => id)
    expect(await ids('pending')).toContain(requestId)
    service.clock.advance(300_000)
    expect((await otp.get(owner, requestId)).data.status).toBe('expired')
    expect((await otp.get(application, requestId)).data.status).toBe('expired')
    expect(await ids('pending')).not.toContain(requestId)
    expect(await ids('expired')).toContain(requestId)
    expect((await service.store.read.otpRequests.find(requestId))?.status).toBe('pending')
  })
})

describe('POST /v1/otp/cancel', () => {
  test('responds 200 and invalidates the code', async () => {
    const { requestId, phone } = await otp.sendOrThrow(application, { phone: '+14155562002' })
    const response = await otp.cancel(application, requestId)
    expect(response.status).toBe(200)
    expect(response.data).toEqual({ requestId, status: 'canceled', phone })
    expect((await otp.verifyRightCode(application, requestId)).error.code).toBe('OTP_CANCELED')
  })

  test('does not count as a failure', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    await otp.cancel(own, (await otp.sendOrThrow(own)).requestId)
    const days = await service.services.analytics.timeSeries(developer.developer, 7)
    expect(days.at(-1)).toMatchObject({ sent: 1, verified: 0, failed: 0 })
  })
})
