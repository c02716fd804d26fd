import { afterAll, describe, expect, test } from 'bun:test'
import {
  createOtpTestService,
  guardOffEnv,
  createOtpClient,
  phone,
  countByOutcome,
} from '../../helpers/otp-client.ts'
import { unlimitedPlan, unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestApplication, type TestDeveloper } from '../../helpers/service.ts'

const hourMs = 3_600_000

const plans = {
  free: { ...unlimitedPlan, sendPerMinute: 5, verifyPerMinute: 10 },
  large: unlimitedPlan,
}
const { service, otp, owner } = await createOtpTestService({ plans })
afterAll(() => service.dispose())

const newApplication = () => service.createApplication(owner)
const rateHeaders = ({ headers }: { headers: Headers }) => [
  headers.get('ratelimit-policy'),
  headers.get('ratelimit'),
  headers.get('retry-after'),
]
const sendPolicy = '"otp-send";q=5;w=60'
const verifyPolicy = '"otp-verify";q=10;w=60'

describe('five sends a minute', () => {
  test('are reported in the headers, and the sixth is rejected until the first is a minute old', async () => {
    const application = await newApplication()
    const rateHeadersSeen: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const response = await otp.send(application)
      expect(response.status).toBe(201)
      rateHeadersSeen.push(rateHeaders(response))
      service.clock.advance(1_000)
    }
    expect(rateHeadersSeen).toEqual([
      [sendPolicy, '"otp-send";r=4;t=60', null],
      [sendPolicy, '"otp-send";r=3;t=59', null],
      [sendPolicy, '"otp-send";r=2;t=58', null],
      [sendPolicy, '"otp-send";r=1;t=57', null],
      [sendPolicy, '"otp-send";r=0;t=56', null],
    ])
    const sixthResponse = await otp.send(application)
    expect(sixthResponse.status).toBe(429)
    expect(sixthResponse.error).toMatchObject({
      code: 'RATE_LIMITED',
      reason: 'APP_RATE',
      metadata: { policy: 'otp-send', limit: 5, windowSeconds: 60 },
    })
    expect(rateHeaders(sixthResponse)).toEqual([sendPolicy, '"otp-send";r=0;t=55', '55'])
    service.clock.advance(54_999)
    expect((await otp.send(application)).status).toBe(429)
    service.clock.advance(1)
    expect((await otp.send(application)).status).toBe(201)
    expect((await otp.send(application)).status).toBe(429)
  })

  test('are reported by a refusal with a slash at the end of the path, too', async () => {
    const application = await newApplication()
    for (let i = 0; i < 5; i++) await otp.send(application)
    const response = await service.request('POST', '/v1/otp/send/', { as: application, body: { phone } })
    expect(response.status).toBe(429)
    expect(rateHeaders(response)).toEqual([sendPolicy, '"otp-send";r=0;t=60', '60'])
  })

  test('are counted per application', async () => {
    const [one, other] = [await newApplication(), await newApplication()]
    for (let i = 0; i < 5; i++) await otp.send(one)
    expect((await otp.send(one)).status).toBe(429)
    expect((await otp.send(other)).status).toBe(201)
  })

  test('are not used by requests that are rejected earlier', async () => {
    const application = await newApplication()
    const full = '"otp-send";r=5;t=60'
    const refused = [
      await otp.send(application, { phone: 'rubbish' }),
      await otp.send(application, { phone: '+9990000000000' }),
      await otp.send(application, { extra: 1 }),
      await otp.send(application, {}, { 'idempotency-key': 'not visible' }),
      await service.request('POST', '/v1/otp/resend', { as: application, body: {} }),
    ]
    for (const response of refused) {
      expect(response.status).toBe(400)
      expect(rateHeaders(response)).toEqual([sendPolicy, full, null])
    }
    const unauthenticated = await otp.send({ headers: { ...application.headers, 'x-client-secret': 'x' } })
    expect(unauthenticated.status).toBe(401)
    expect(rateHeaders(unauthenticated)).toEqual([null, null, null])
    expect(rateHeaders(await otp.send(application))[1]).toBe('"otp-send";r=4;t=60')
  })
})

describe('ten verifications a minute', () => {
  test('are reported in the headers of every response, and the eleventh is rejected', async () => {
    const application = await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    const responses = [
      await otp.verifyWrongCode(application, requestId),
      await otp.verifyRightCode(application, requestId),
    ]
    for (let i = 0; i < 8; i++) responses.push(await otp.verifyRightCode(application, requestId))
    expect(countByOutcome(responses)).toEqual({ '400 INVALID_CODE': 1, '200': 1, '409 ALREADY_VERIFIED': 8 })
    expect(responses.map((response) => rateHeaders(response)[0])).toEqual(responses.map(() => verifyPolicy))
    expect(responses.map((response) => rateHeaders(response)[1])).toEqual(
      responses.map((_, index) => `"otp-verify";r=${9 - index};t=60`),
    )
    service.clock.advance(30_500)
    const eleventhResponse = await otp.verifyRightCode(application, requestId)
    expect([eleventhResponse.status, eleventhResponse.error.reason]).toEqual([429, 'APP_RATE'])
    expect(rateHeaders(eleventhResponse)).toEqual([verifyPolicy, '"otp-verify";r=0;t=30', '30'])
    service.clock.advance(29_500)
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(409)
  })

  test('are used by requests for an unknown id, but not by malformed ones', async () => {
    const application = await newApplication()
    const malformed = await otp.verify(application, 'otp_00000000000000000000000000', '12345')
    expect([malformed.status, rateHeaders(malformed)[1]]).toEqual([400, '"otp-verify";r=10;t=60'])
    const unknownRequestResponse = await otp.verify(application, 'otp_00000000000000000000000000', '123456')
    expect([unknownRequestResponse.status, rateHeaders(unknownRequestResponse)[1]]).toEqual([
      404,
      '"otp-verify";r=9;t=60',
    ])
  })

  test('are checked before the OTP request, so a rejected call uses no attempt', async () => {
    const application = await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    for (let i = 0; i < 10; i++) await otp.verify(application, 'rubbish', '123456')
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(429)
    service.clock.advance(60_000)
    expect((await otp.get(owner, requestId)).data.attempts).toBe(0)
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(200)
  })
})

test('cancellations have no rate limit', async () => {
  const application = await newApplication()
  for (let i = 0; i < 20; i++) {
    const response = await otp.cancel(application, 'rubbish')
    expect([response.status, ...rateHeaders(response)]).toEqual([404, null, null, null])
  }
})

test('a plan without limits has no headers', async () => {
  const developer = await service.createDeveloper('large')
  const application = await service.createApplication(developer)
  for (let i = 0; i < 30; i++) expect((await otp.send(application)).status).toBe(201)
  expect(rateHeaders(await otp.send(application))).toEqual([null, null, null])
})

describe('the check budget of a phone', () => {
  /** Sends as many wrong codes as the budget holds, over as many requests as needed. */
  async function spend(application: TestApplication) {
    for (let i = 0; i < 5; i++) {
      const { requestId } = await otp.sendOrThrow(application, { phone })
      for (let attempt = 0; attempt < 5; attempt++) {
        expect((await otp.verifyWrongCode(application, requestId)).status).toBe(400)
      }
    }
  }
  const newLarge = async (environment: 'live' | 'test' = 'live') =>
    service.createApplication(await service.createDeveloper('large'), { environment })

  test('of 25 failures across all requests rejects even the right code, until an hour has passed', async () => {
    const application = await newLarge()
    await spend(application)
    const { requestId } = await otp.sendOrThrow(application)
    const refused = await otp.verifyRightCode(application, requestId)
    expect(refused.status).toBe(429)
    expect(refused.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_CHECK_BUDGET' })
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect((await service.store.read.otpRequests.find(requestId))?.attempts).toBe(0)
    service.clock.advance(hourMs)
    const later = await otp.sendOrThrow(application)
    expect((await otp.verifyRightCode(application, later.requestId)).status).toBe(200)
  })

  test('is counted per phone and application', async () => {
    const application = await newLarge()
    await spend(application)
    const another = await otp.sendOrThrow(application, { phone: '+14155552672' })
    expect((await otp.verifyRightCode(application, another.requestId)).status).toBe(200)
    const otherApplication = await newLarge()
    const { requestId } = await otp.sendOrThrow(otherApplication)
    expect((await otp.verifyRightCode(otherApplication, requestId)).status).toBe(200)
  })

  test('does not exist in test applications', async () => {
    const application = await newLarge('test')
    await spend(application)
    const { requestId } = await otp.sendOrThrow(application)
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(200)
  })

  test('uses no rate limit and no attempt when it rejects', async () => {
    const application = await newApplication()
    // Three minutes of ten verifications each exhaust it.
    for (let minute = 0; minute < 3; minute++) {
      service.clock.advance(60_000)
      for (const size of minute === 2 ? [5] : [5, 5]) {
        const { requestId } = await otp.sendOrThrow(application)
        for (let i = 0; i < size; i++)
          expect((await otp.verifyWrongCode(application, requestId)).status).toBe(400)
      }
    }
    const { requestId } = await otp.sendOrThrow(application)
    for (let i = 0; i < 12; i++) {
      const refused = await otp.verifyRightCode(application, requestId)
      expect([refused.status, refused.error.reason]).toEqual([429, 'PHONE_CHECK_BUDGET'])
      expect(rateHeaders(refused).slice(0, 2)).toEqual([verifyPolicy, '"otp-verify";r=5;t=60'])
    }
  })

  test('can be larger, or off', async () => {
    for (const [failures, status] of [
      ['26', 200],
      ['0', 200],
      ['24', 429],
    ] as const) {
      const env = { ...guardOffEnv, OTPD_PHONE_CHECK_BUDGET: failures }
      const other = await createTestService({ plans: unlimitedPlans, env })
      const calls = createOtpClient(other)
      const application = await other.createApplication(await other.createDeveloper())
      for (let i = 0; i < 25; i++) {
        const { requestId } = await calls.sendOrThrow(application)
        await calls.verifyWrongCode(application, requestId)
      }
      const { requestId } = await calls.sendOrThrow(application)
      expect((await calls.verifyRightCode(application, requestId)).status).toBe(status)
      await other.dispose()
    }
  })
})

describe('the send budget of a phone', () => {
  async function sendSixTimes(mode: string) {
    const other = await createTestService({
      plans: unlimitedPlans,
      env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: mode },
    })
    const client = createOtpClient(other)
    const developer = await other.createDeveloper()
    const application = await other.createApplication(developer)
    for (let i = 0; i < 5; i++) await client.sendOrThrow(application)
    const sixthResponse = await client.send(application)
    const log = (
      await other.request<Array<{ type: string; detail: string | null }>>('GET', '/v1/logs', {
        as: developer,
      })
    ).data
    await other.dispose()
    return { sixthResponse, log: log.map(({ type, detail }) => [type, detail]) }
  }

  test('is monitored: the sixth in ten minutes is sent and logged', async () => {
    const { sixthResponse, log } = await sendSixTimes('monitor')
    expect(sixthResponse.status).toBe(201)
    expect(log.slice(5)).toEqual([
      ['guard.flagged', 'PHONE_SEND_BUDGET'],
      ['otp.sent', null],
    ])
  })

  test('is enforced if configured: the sixth is rejected', async () => {
    const { sixthResponse, log } = await sendSixTimes('enforce')
    expect(sixthResponse.status).toBe(429)
    expect(sixthResponse.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_SEND_BUDGET' })
    expect(sixthResponse.headers.get('retry-after')).toBe('600')
    expect(log.slice(5).map(([type]) => type)).toEqual(['otp.refused'])
  })

  test('is off if configured', async () => {
    const { sixthResponse, log } = await sendSixTimes('off')
    expect(sixthResponse.status).toBe(201)
    expect(log).toEqual(Array.from({ length: 6 }, () => ['otp.sent', null]))
  })
})

type Entry = Record<
  'type' | 'phone' | 'requestId' | 'detail' | 'since' | 'nextAt' | 'reason',
  string | null
> & {
  count?: number
}

describe('sends that a limit refuses', () => {
  const list = async (path: string, as = owner) => (await service.request<Entry[]>('GET', path, { as })).data
  const refusals = async (as: TestDeveloper) => list('/v1/logs?type=otp.refused&limit=200', as)

  test('are counted in the timeline of the newest code, and logged once a minute', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    const body = { appId: application.id, url: 'https://example.com/', events: ['*'] }
    const endpoint = await service.request<{ id: string }>('POST', '/v1/webhooks', { as: developer, body })
    let others = 0
    const sendToOthers = async (count: number) => {
      for (let i = 0; i < count; i++)
        await otp.sendOrThrow(application, { phone: `+1415555${3000 + others++}` })
    }
    const { requestId } = await otp.sendOrThrow(application)
    await sendToOthers(4)
    const since = service.clock.now()
    for (let i = 0; i < 3; i++) expect((await otp.send(application)).status).toBe(429)
    service.clock.advance(61_000)
    await sendToOthers(5)
    expect((await otp.send(application)).status).toBe(429)
    expect((await otp.resend(application, requestId)).error.reason).toBe('APP_RATE')
    const nextAt = isoTime(service.clock.now() + 60_000)
    const shared = { type: 'otp.refused', requestId, phone, reason: 'APP_RATE', since: isoTime(since) }
    const timeline = await list(`/v1/otp/${requestId}/events`, developer)
    expect(timeline).toMatchObject([{ type: 'otp.sent' }, { ...shared, count: 5, nextAt }])
    expect(await refusals(developer)).toMatchObject([
      { ...shared, count: 1, nextAt: isoTime(since + 60_000) },
      { ...shared, count: 4, nextAt },
    ])
    const deliveries = await list(`/v1/webhooks/${endpoint.data.id}/deliveries?limit=200`, developer)
    expect(new Set(deliveries.map(({ type }) => type))).toEqual(new Set(['otp.sent']))
    // The next message starts a new count.
    service.clock.advance(60_000)
    expect((await otp.resend(application, requestId)).status).toBe(200)
    await sendToOthers(4)
    expect((await otp.resend(application, requestId)).status).toBe(429)
    const counts = (await list(`/v1/otp/${requestId}/events`, developer)).map(({ count }) => count)
    expect(counts).toEqual([undefined, 5, undefined, 1])
  })

  test('to a number without a code are logged, and erased with it', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    for (let i = 0; i < 5; i++) await otp.sendOrThrow(application)
    const to = '+14155552699'
    for (let i = 0; i < 3; i++) expect((await otp.send(application, { phone: to })).status).toBe(429)
    const shared = { type: 'otp.refused', requestId: null, count: 1, reason: 'APP_RATE' }
    expect(await refusals(developer)).toMatchObject([{ ...shared, phone: to }])
    await service.request('DELETE', `/v1/users/${encodeURIComponent(to)}?erase=true`, { as: developer })
    expect(await refusals(developer)).toMatchObject([{ ...shared, phone: 'erased' }])
  })

  test('to many numbers write little', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    for (let i = 0; i < 5; i++) await otp.sendOrThrow(application)
    for (let i = 0; i < 130; i++)
      expect((await otp.send(application, { phone: `+1415555${2000 + i}` })).status).toBe(429)
    expect(await refusals(developer)).toHaveLength(120)
  })
})

const isoTime = (ms: number) => new Date(ms).toISOString()
