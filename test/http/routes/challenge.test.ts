import { afterAll, beforeAll, expect, test } from 'bun:test'
import { toSid } from '../../../src/shared/sids.ts'
import { requestToken } from '../../helpers/camara-token.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { enforced, openDevice } from '../../helpers/challenged-device.ts'
import { countByOutcome, createOtpClient, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'
import { easyWork, solveAltcha } from '../../helpers/solve-altcha.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'

describeEachDatabase('a guard with a proof of work (altcha)', (database) => {
  let service: TestService
  let otp: OtpClient
  beforeAll(async () => {
    const env = { ...enforced, OTPD_GUARD_CHALLENGE_KIND: 'altcha' }
    service = await createTestService({ database: database(), plans: unlimitedPlans, env, random: easyWork })
    otp = createOtpClient(service)
  })
  afterAll(() => service.dispose())

  const challengeOf = (response: Awaited<ReturnType<OtpClient['send']>>) => response.error.metadata ?? {}

  test('answers 403 with what the widget needs; the send with its solution passes, once', async () => {
    const { developer, send } = await openDevice(service, otp)
    const refused = await send()
    expect([refused.status, refused.error.code, refused.error.reason]).toEqual([
      403,
      'CHALLENGE_REQUIRED',
      undefined,
    ])
    expect(refused.error.metadata).toEqual({
      kind: 'altcha',
      algorithm: 'SHA-256',
      challenge: expect.stringMatching(/^[0-9a-f]{64}$/),
      maxnumber: expect.any(Number),
      salt: expect.stringMatching(/^[0-9a-f]{24}\?expires=\d+&$/),
      signature: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    const challenge = solveAltcha(challengeOf(refused))
    const sent = await send({ challenge })
    expect(sent.status).toBe(201)
    expect(await otp.listLogEntries(developer, sent.data.requestId)).toMatchObject([
      { type: 'guard.flagged', detail: 'DEVICE_UNVERIFIED CHALLENGE_PASSED' },
      { type: 'otp.sent' },
    ])
    const again = await send({ challenge })
    expect([again.status, again.error.code, again.error.reason]).toEqual([
      403,
      'CHALLENGE_REQUIRED',
      'CHALLENGE_FAILED',
    ])
    // The new challenge is another one.
    expect(challengeOf(again)['challenge']).not.toBe(challengeOf(refused)['challenge'])
    expect((await send({ challenge: solveAltcha(challengeOf(again)) })).status).toBe(201)
  })

  test('makes no request of a send that needs a challenge, and logs it as refused', async () => {
    const { developer, app, send } = await openDevice(service, otp)
    const { phone } = (await otp.sendOrThrow(app, { phone: '+14155559999' })) as { phone: string }
    expect((await send({ phone })).status).toBe(403)
    const entries = await service.request<Array<{ type: string; reason: string }>>(
      'GET',
      '/v1/logs?order=desc&limit=1',
      { as: developer },
    )
    expect(entries.data).toMatchObject([{ type: 'otp.refused', reason: 'CHALLENGE_REQUIRED', phone }])
    const summary = await service.request<{ otpRequests: number }>('GET', '/v1/analytics/summary', {
      as: developer,
    })
    expect(summary.data.otpRequests).toBe(6)
  })

  test('leaves the idempotency key free for the send with the token', async () => {
    const { send } = await openDevice(service, otp)
    const headers = { 'idempotency-key': 'sign-up-1' }
    const phone = '+14155558888'
    const refused = await send({ phone }, headers)
    const body = { phone, challenge: solveAltcha(challengeOf(refused)) }
    const sent = await send(body, headers)
    const replayed = await send(body, headers)
    expect([refused.status, sent.status, replayed.status]).toEqual([403, 201, 201])
    expect(replayed.data.requestId).toBe(sent.data.requestId)
  })

  test('opens three times the allowance and no more; beyond it a challenge is not offered, and does not help', async () => {
    const { send } = await openDevice(service, otp)
    const spare = solveAltcha(challengeOf(await send()))
    for (let n = 0; n < 10; n++) {
      const refused = await send()
      expect(refused.error.code).toBe('CHALLENGE_REQUIRED')
      expect((await send({ challenge: solveAltcha(challengeOf(refused)) })).status).toBe(201)
    }
    expect((await send()).error.code).toBe('DESTINATION_BLOCKED')
    expect((await send({ challenge: spare })).error.code).toBe('DESTINATION_BLOCKED')
  })

  test('lets 16 sends with one solution at once pass once', async () => {
    const { send } = await openDevice(service, otp)
    const challenge = solveAltcha(challengeOf(await send()))
    const responses = await Promise.all(Array.from({ length: 16 }, () => send({ challenge })))
    expect(countByOutcome(responses)).toEqual({ '201': 1, '403 CHALLENGE_REQUIRED CHALLENGE_FAILED': 15 })
  })

  test('does not help against lists', async () => {
    const { send, app, developer } = await openDevice(service, otp)
    const solve = async () => solveAltcha(challengeOf(await send()))
    expect((await send({ phone: '+5352123456', challenge: await solve() })).error.code).toBe(
      'DESTINATION_BLOCKED',
    )
    await service.request('POST', '/v1/guard/rules', {
      as: developer,
      body: { effect: 'deny', target: 'prefix', value: '+4477' },
    })
    expect((await otp.send(app, { phone: '+447700900123', challenge: await solve() })).error.code).toBe(
      'DESTINATION_BLOCKED',
    )
  })

  test.each([
    ['of another server', (token: Record<string, unknown>) => ({ ...token, signature: 'f'.repeat(64) })],
    [
      'with another number',
      (token: Record<string, unknown>) => ({ ...token, number: 1 + Number(token['number']) }),
    ],
    [
      'with a later end',
      (token: Record<string, unknown>) => ({
        ...token,
        salt: String(token['salt']).replace(/(\d+)&$/, '9$1&'),
      }),
    ],
    [
      'with a digit of the number moved into the time',
      (token: Record<string, unknown>) => {
        const [first = '', ...rest] = String(token['number'])
        return {
          ...token,
          salt: String(token['salt']).replace('&', `${first}&`),
          number: Number(rest.join('')),
        }
      },
    ],
    ['that is no JSON object', () => 'token'],
  ])('refuses a solution %s', async (_, change) => {
    const { send } = await openDevice(service, otp)
    const token = JSON.parse(atob(solveAltcha(challengeOf(await send()))))
    const refused = await send({ challenge: btoa(JSON.stringify(change(token))) })
    expect([refused.error.code, refused.error.reason]).toEqual(['CHALLENGE_REQUIRED', 'CHALLENGE_FAILED'])
  })

  test('refuses text that is no solution, and one that is too old', async () => {
    const { send } = await openDevice(service, otp)
    expect((await send({ challenge: '%' })).error.reason).toBe('CHALLENGE_FAILED')
    const challenge = solveAltcha(challengeOf(await send()))
    service.clock.advance(10 * 60_000)
    expect((await send({ challenge })).error.reason).toBe('CHALLENGE_FAILED')
  })

  test('sends within the allowance with a wrong token, as it would without', async () => {
    const app = await service.createApplication(await service.createDeveloper())
    expect((await otp.send(app, { challenge: 'wrong' })).status).toBe(201)
  })

  test('asks for a challenge before a resend, and keeps the request', async () => {
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer)
    const sent = await Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        otp.sendOrThrow(app, { phone: `+1415555${2000 + n}`, deviceId: 'one' }),
      ),
    )
    const requestId = sent[0]?.requestId
    service.clock.advance(30_000)
    const resend = (body: object = {}) =>
      service.request('POST', '/v1/otp/resend', { as: app, body: { requestId, ...body } })
    const refused = await resend()
    expect([refused.status, refused.error.code]).toEqual([403, 'CHALLENGE_REQUIRED'])
    expect((await otp.get(developer, String(requestId))).data).toMatchObject({
      status: 'pending',
      resends: 0,
    })
    expect((await resend({ challenge: solveAltcha(refused.error.metadata ?? {}) })).status).toBe(200)
    expect((await otp.get(developer, String(requestId))).data).toMatchObject({
      status: 'pending',
      resends: 1,
    })
  })

  test('is shown by the status of the guard', async () => {
    const developer = await service.createDeveloper()
    const { data } = await service.request<{ challenge: string }>('GET', '/v1/guard', { as: developer })
    expect(data.challenge).toBe('altcha')
  })
})

test('a send that a cap of the day would refuse gets no challenge', async () => {
  const env = { ...enforced, OTPD_GUARD_CHALLENGE_KIND: 'altcha', OTPD_GUARD_TOTAL_PER_DAY: '5' }
  const service = await createTestService({ plans: unlimitedPlans, env })
  const { send } = await openDevice(service, createOtpClient(service))
  expect((await send()).error.code).toBe('DESTINATION_BLOCKED')
  await service.dispose()
})

test('a guard without a challenge still refuses, whatever token comes', async () => {
  const service = await createTestService({ plans: unlimitedPlans, env: enforced })
  const { send } = await openDevice(service, createOtpClient(service))
  expect((await send({ challenge: 'any' })).error.code).toBe('DESTINATION_BLOCKED')
  await service.dispose()
})

test('façades, which cannot show a challenge, refuse as ever', async () => {
  const env = { ...enforced, OTPD_GUARD_CHALLENGE_KIND: 'altcha', OTPD_COMPAT: 'camara,twilio-verify' }
  const service = await createTestService({ plans: unlimitedPlans, env })
  const developer = await service.createDeveloper()
  const app = await service.createApplication(developer)
  const token = await requestToken(service, app)
  const sendByTwilio = (n: number) =>
    service.request('POST', `/v2/Services/${toSid('VA', app.id)}/Verifications`, {
      headers: twilioHeaders(app),
      body: `To=%2B1415555${n}&Channel=sms`,
    })
  const sendByCamara = (n: number) =>
    service.request('POST', '/one-time-password-sms/v1/send-code', {
      headers: { authorization: `Bearer ${token}` },
      body: { phoneNumber: `+1415555${n}`, message: '{{code}}' },
    })
  // The allowance of the prefix: messages in flight count a fifth.
  for (let n = 1000; n < 1054; n++) expect((await sendByTwilio(n)).status).toBe(201)
  expect(await sendByTwilio(1054)).toMatchObject({ status: 403, text: expect.stringContaining('60410') })
  expect(await sendByCamara(1055)).toMatchObject({
    status: 403,
    text: expect.stringContaining('PHONE_NUMBER_BLOCKED'),
  })
  const { data } = await service.request<unknown[]>('GET', '/v1/logs?type=otp.blocked', { as: developer })
  expect(data).toHaveLength(2)
  await service.dispose()
})
