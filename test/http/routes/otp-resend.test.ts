import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import type { TestApplication } from '../../helpers/service.ts'

let application: TestApplication
const { service, otp, owner } = await createOtpTestService({
  env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'enforce' },
  plans: { free: { ...unlimitedPlan, sendPerMinute: 5 } },
})
afterAll(() => service.dispose())

const newApplication = async () => {
  application = await service.createApplication(owner, { environment: 'test' })
  return application
}

describe('POST /v1/otp/resend', () => {
  test('sends the same code again: same request, attempts and expiry', async () => {
    await newApplication()
    const sent = await otp.sendOrThrow(application)
    await otp.verifyWrongCode(application, sent.requestId)
    service.clock.advance(30_000)
    const response = await otp.resend(application, sent.requestId)
    expect(response.status).toBe(200)
    expect(response.data).toEqual(sent)
    expect((await otp.get(owner, sent.requestId)).data).toMatchObject({
      status: 'pending',
      attempts: 1,
      resends: 1,
      expiresAt: sent.expiresAt,
    })
    expect((await otp.verify(application, sent.requestId, sent.code ?? '')).status).toBe(200)
  })

  test('writes its own log entry, inbox message and count', async () => {
    await newApplication()
    const { requestId, code } = await otp.sendOrThrow(application)
    const sentBefore = (await service.services.analytics.timeSeries(owner.developer, 7)).at(-1)?.sent ?? 0
    const requestsBefore = (await service.services.analytics.summary(owner.developer)).otpRequests
    service.clock.advance(30_000)
    await otp.resend(application, requestId)
    const log = await otp.listLogEntries(owner, requestId)
    expect(log.map(({ type, detail }) => [type, detail])).toEqual([
      ['otp.sent', null],
      ['otp.sent', 'resend'],
    ])
    const inbox = await service.request<Array<{ requestId: string; code: string }>>('GET', '/v1/inbox', {
      as: owner,
    })
    expect(inbox.data.filter((item) => item.requestId === requestId).map((item) => item.code)).toEqual([
      code ?? '',
      code ?? '',
    ])
    expect((await service.services.analytics.timeSeries(owner.developer, 7)).at(-1)?.sent).toBe(
      sentBefore + 1,
    )
    expect((await service.services.analytics.summary(owner.developer)).otpRequests).toBe(requestsBefore)
  })

  test('changes the channel if the call names one', async () => {
    await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    service.clock.advance(30_000)
    const body = { requestId, channel: 'voice' }
    expect((await service.request('POST', '/v1/otp/resend', { as: application, body })).status).toBe(200)
    expect((await otp.get(owner, requestId)).data.channel).toBe('voice')
  })

  test('responds 429 until exactly 30 seconds have passed, at no cost', async () => {
    await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    service.clock.advance(10_001)
    const earlyResponse = await otp.resend(application, requestId)
    expect(earlyResponse.status).toBe(429)
    expect(earlyResponse.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'RESEND_TOO_SOON' })
    expect(earlyResponse.headers.get('retry-after')).toBe('20')
    expect(earlyResponse.headers.get('ratelimit')).toBe('"otp-send";r=4;t=50')
    service.clock.advance(19_998)
    expect((await otp.resend(application, requestId)).headers.get('retry-after')).toBe('1')
    service.clock.advance(1)
    const response = await otp.resend(application, requestId)
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toBe('"otp-send";r=3;t=30')
    expect((await otp.get(owner, requestId)).data.resends).toBe(1)
  })

  test('responds 409 to the fourth', async () => {
    await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    for (let i = 0; i < 3; i++) {
      service.clock.advance(30_000)
      expect((await otp.resend(application, requestId)).status).toBe(200)
    }
    service.clock.advance(30_000)
    const fourth = await otp.resend(application, requestId)
    expect(fourth.status).toBe(409)
    expect(fourth.error).toMatchObject({
      code: 'CONFLICT',
      reason: 'RESENDS_EXHAUSTED',
      metadata: { resendsMax: 3 },
    })
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(200)
  })

  test('that is refused as the fourth does not count as a message to the phone', async () => {
    const live = await service.createApplication(owner)
    const { requestId } = await otp.sendOrThrow(live)
    for (const expected of [200, 200, 200, 409, 409]) {
      service.clock.advance(30_000)
      expect((await otp.resend(live, requestId)).status).toBe(expected)
    }
    // The fifth in ten minutes, which is the last.
    expect((await otp.send(live)).status).toBe(201)
  })

  test('of a request that another call closes at the same time is refused as closed', async () => {
    await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    service.clock.advance(30_000)
    const [canceled, response] = await Promise.all([
      otp.cancel(application, requestId),
      otp.resend(application, requestId),
    ])
    expect([canceled.status, response.status, response.error.code]).toEqual([200, 410, 'OTP_CANCELED'])
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'canceled', resends: 0 })
  })

  test('counts as a send', async () => {
    await newApplication()
    const { requestId } = await otp.sendOrThrow(application)
    service.clock.advance(30_000)
    for (let i = 0; i < 4; i++) await otp.sendOrThrow(application)
    const refused = await otp.resend(application, requestId)
    expect(refused.status).toBe(429)
    expect(refused.error).toMatchObject({ reason: 'APP_RATE', metadata: { policy: 'otp-send', limit: 5 } })
    expect(refused.headers.get('retry-after')).toBe('30')
    service.clock.advance(30_000)
    expect((await otp.resend(application, requestId)).status).toBe(200)
  })
})
