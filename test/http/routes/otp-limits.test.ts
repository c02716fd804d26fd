import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { guardOff, otpCalls, phone, tally, type OtpCalls } from '../../helpers/otp.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const hourMs = 3_600_000
const many = { projects: 1_000, applications: 1_000 }

let service: TestService
let otp: OtpCalls
let owner: TestDeveloper
beforeAll(async () => {
  const plans = {
    free: { ...many, sendPerMinute: 5, verifyPerMinute: 10 },
    large: { ...many, sendPerMinute: 0, verifyPerMinute: 0 },
  }
  service = await createTestService({ plans, env: guardOff })
  otp = otpCalls(service)
  owner = await service.createDeveloper()
})
afterAll(() => service.dispose())

const newApplication = () => service.createApplication(owner)
const rateOf = ({ headers }: { headers: Headers }) => [
  headers.get('ratelimit-policy'),
  headers.get('ratelimit'),
  headers.get('retry-after'),
]
const sendPolicy = '"otp-send";q=5;w=60'
const verifyPolicy = '"otp-verify";q=10;w=60'

describe('five sends a minute', () => {
  test('are told in the headers, and the sixth is refused until the first is a minute old', async () => {
    const application = await newApplication()
    const seen: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const answer = await otp.send(application)
      expect(answer.status).toBe(201)
      seen.push(rateOf(answer))
      service.clock.advance(1_000)
    }
    expect(seen).toEqual([
      [sendPolicy, '"otp-send";r=4;t=60', null],
      [sendPolicy, '"otp-send";r=3;t=59', null],
      [sendPolicy, '"otp-send";r=2;t=58', null],
      [sendPolicy, '"otp-send";r=1;t=57', null],
      [sendPolicy, '"otp-send";r=0;t=56', null],
    ])
    const sixth = await otp.send(application)
    expect(sixth.status).toBe(429)
    expect(sixth.error).toMatchObject({
      code: 'RATE_LIMITED',
      reason: 'APP_RATE',
      metadata: { policy: 'otp-send', limit: 5, windowSeconds: 60 },
    })
    expect(rateOf(sixth)).toEqual([sendPolicy, '"otp-send";r=0;t=55', '55'])
    service.clock.advance(54_999)
    expect((await otp.send(application)).status).toBe(429)
    service.clock.advance(1)
    expect((await otp.send(application)).status).toBe(201)
    expect((await otp.send(application)).status).toBe(429)
  })

  test('are of each application', async () => {
    const [one, other] = [await newApplication(), await newApplication()]
    for (let i = 0; i < 5; i++) await otp.send(one)
    expect((await otp.send(one)).status).toBe(429)
    expect((await otp.send(other)).status).toBe(201)
  })

  test('are not spent by what is refused before', async () => {
    const application = await newApplication()
    const full = '"otp-send";r=5;t=60'
    const refused = [
      await otp.send(application, { phone: 'rubbish' }),
      await otp.send(application, { phone: '+9990000000000' }),
      await otp.send(application, { extra: 1 }),
      await otp.send(application, {}, { 'idempotency-key': 'not visible' }),
      await service.request('POST', '/v1/otp/resend', { as: application, body: {} }),
    ]
    for (const answer of refused) {
      expect(answer.status).toBe(400)
      expect(rateOf(answer)).toEqual([sendPolicy, full, null])
    }
    const unauthenticated = await otp.send({ headers: { ...application.headers, 'x-client-secret': 'x' } })
    expect(unauthenticated.status).toBe(401)
    expect(rateOf(unauthenticated)).toEqual([null, null, null])
    expect(rateOf(await otp.send(application))[1]).toBe('"otp-send";r=4;t=60')
  })
})

describe('ten verifications a minute', () => {
  test('are told in the headers of every answer, and the eleventh is refused', async () => {
    const application = await newApplication()
    const { requestId } = await otp.sent(application)
    const answers = [
      await otp.verifyWrong(application, requestId),
      await otp.verifyRight(application, requestId),
    ]
    for (let i = 0; i < 8; i++) answers.push(await otp.verifyRight(application, requestId))
    expect(tally(answers)).toEqual({ '400 INVALID_CODE': 1, '200': 1, '409 ALREADY_VERIFIED': 8 })
    expect(answers.map((answer) => rateOf(answer)[0])).toEqual(answers.map(() => verifyPolicy))
    expect(answers.map((answer) => rateOf(answer)[1])).toEqual(
      answers.map((_, index) => `"otp-verify";r=${9 - index};t=60`),
    )
    service.clock.advance(30_500)
    const eleventh = await otp.verifyRight(application, requestId)
    expect([eleventh.status, eleventh.error.reason]).toEqual([429, 'APP_RATE'])
    expect(rateOf(eleventh)).toEqual([verifyPolicy, '"otp-verify";r=0;t=30', '30'])
    service.clock.advance(29_500)
    expect((await otp.verifyRight(application, requestId)).status).toBe(409)
  })

  test('are spent by what belongs to nobody here, and not by what is not well formed', async () => {
    const application = await newApplication()
    const malformed = await otp.verify(application, 'otp_00000000000000000000000000', '12345')
    expect([malformed.status, rateOf(malformed)[1]]).toEqual([400, '"otp-verify";r=10;t=60'])
    const nobodys = await otp.verify(application, 'otp_00000000000000000000000000', '123456')
    expect([nobodys.status, rateOf(nobodys)[1]]).toEqual([404, '"otp-verify";r=9;t=60'])
  })

  test('come before the look at the request, which a refused call costs nothing', async () => {
    const application = await newApplication()
    const { requestId } = await otp.sent(application)
    for (let i = 0; i < 10; i++) await otp.verify(application, 'rubbish', '123456')
    expect((await otp.verifyRight(application, requestId)).status).toBe(429)
    service.clock.advance(60_000)
    expect((await otp.get(owner, requestId)).data.attempts).toBe(0)
    expect((await otp.verifyRight(application, requestId)).status).toBe(200)
  })
})

test('cancellations have no rate', async () => {
  const application = await newApplication()
  for (let i = 0; i < 20; i++) {
    const answer = await otp.cancel(application, 'rubbish')
    expect([answer.status, ...rateOf(answer)]).toEqual([404, null, null, null])
  }
})

test('a plan without limits has no headers', async () => {
  const developer = await service.createDeveloper('large')
  const application = await service.createApplication(developer)
  for (let i = 0; i < 30; i++) expect((await otp.send(application)).status).toBe(201)
  expect(rateOf(await otp.send(application))).toEqual([null, null, null])
})

describe('the check budget of a phone', () => {
  /** As many wrong codes as the budget holds, over as many requests as that takes. */
  async function spend(application: TestApplication, to = phone) {
    for (let i = 0; i < 5; i++) {
      const { requestId } = await otp.sent(application, { phone: to })
      for (let attempt = 0; attempt < 5; attempt++) {
        expect((await otp.verifyWrong(application, requestId)).status).toBe(400)
      }
    }
  }
  const newLarge = async (environment: 'live' | 'test' = 'live') =>
    service.createApplication(await service.createDeveloper('large'), { environment })

  test('of 25 failures over all requests refuses the right code too, until an hour has passed', async () => {
    const application = await newLarge()
    await spend(application)
    const { requestId } = await otp.sent(application)
    const refused = await otp.verifyRight(application, requestId)
    expect(refused.status).toBe(429)
    expect(refused.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_CHECK_BUDGET' })
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect((await service.store.read.otpRequests.find(requestId))?.attempts).toBe(0)
    service.clock.advance(hourMs)
    const later = await otp.sent(application)
    expect((await otp.verifyRight(application, later.requestId)).status).toBe(200)
  })

  test('is of one phone in one application', async () => {
    const application = await newLarge()
    await spend(application)
    const another = await otp.sent(application, { phone: '+14155552672' })
    expect((await otp.verifyRight(application, another.requestId)).status).toBe(200)
    const elsewhere = await newLarge()
    const { requestId } = await otp.sent(elsewhere)
    expect((await otp.verifyRight(elsewhere, requestId)).status).toBe(200)
  })

  test('does not exist in test applications', async () => {
    const application = await newLarge('test')
    await spend(application)
    const { requestId } = await otp.sent(application)
    expect((await otp.verifyRight(application, requestId)).status).toBe(200)
  })

  test('that refuses costs nothing of the rate and no attempt', async () => {
    const application = await newApplication()
    // Three minutes of ten verifications each spend it.
    for (let minute = 0; minute < 3; minute++) {
      service.clock.advance(60_000)
      for (const size of minute === 2 ? [5] : [5, 5]) {
        const { requestId } = await otp.sent(application)
        for (let i = 0; i < size; i++)
          expect((await otp.verifyWrong(application, requestId)).status).toBe(400)
      }
    }
    const { requestId } = await otp.sent(application)
    for (let i = 0; i < 12; i++) {
      const refused = await otp.verifyRight(application, requestId)
      expect([refused.status, refused.error.reason]).toEqual([429, 'PHONE_CHECK_BUDGET'])
      expect(rateOf(refused).slice(0, 2)).toEqual([verifyPolicy, '"otp-verify";r=5;t=60'])
    }
  })

  test('may be larger, or be off', async () => {
    for (const [failures, status] of [
      ['26', 200],
      ['0', 200],
      ['24', 429],
    ] as const) {
      const plans = { free: { ...many, sendPerMinute: 0, verifyPerMinute: 0 } }
      const env = { ...guardOff, OTPD_PHONE_CHECK_BUDGET: failures }
      const other = await createTestService({ plans, env })
      const calls = otpCalls(other)
      const application = await other.createApplication(await other.createDeveloper())
      for (let i = 0; i < 25; i++) {
        const { requestId } = await calls.sent(application)
        await calls.verifyWrong(application, requestId)
      }
      const { requestId } = await calls.sent(application)
      expect((await calls.verifyRight(application, requestId)).status).toBe(status)
      await other.dispose()
    }
  })
})

describe('the send budget of a phone', () => {
  async function sixSends(mode: string) {
    const plans = { free: { ...many, sendPerMinute: 0, verifyPerMinute: 0 } }
    const other = await createTestService({ plans, env: { ...guardOff, OTPD_PHONE_SEND_BUDGET: mode } })
    const calls = otpCalls(other)
    const developer = await other.createDeveloper()
    const application = await other.createApplication(developer)
    for (let i = 0; i < 5; i++) await calls.sent(application)
    const sixth = await calls.send(application)
    const log = (
      await other.request<Array<{ type: string; detail: string | null }>>('GET', '/v1/logs', {
        as: developer,
      })
    ).data
    await other.dispose()
    return { sixth, log: log.map(({ type, detail }) => [type, detail]) }
  }

  test('is monitored: the sixth in ten minutes goes out and is noted', async () => {
    const { sixth, log } = await sixSends('monitor')
    expect(sixth.status).toBe(201)
    expect(log.slice(5)).toEqual([
      ['guard.flagged', 'PHONE_SEND_BUDGET'],
      ['otp.sent', null],
    ])
  })

  test('is enforced where the operator wishes: the sixth is refused and leaves nothing', async () => {
    const { sixth, log } = await sixSends('enforce')
    expect(sixth.status).toBe(429)
    expect(sixth.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'PHONE_SEND_BUDGET' })
    expect(sixth.headers.get('retry-after')).toBe('600')
    expect(log).toHaveLength(5)
  })

  test('is off where the operator wishes', async () => {
    const { sixth, log } = await sixSends('off')
    expect(sixth.status).toBe(201)
    expect(log).toEqual(Array.from({ length: 6 }, () => ['otp.sent', null]))
  })
})
