import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, phone, withoutTraceId } from '../../helpers/otp-client.ts'

const { service, otp, owner, application } = await createOtpTestService()
afterAll(() => service.dispose())

let phones = 0
const newPhone = () => `+1415555${3000 + phones++}`
const send = (body: object = {}) => otp.sendOrThrow(application, { phone: newPhone(), ...body })
const now = () => new Date(service.clock.now()).toISOString()

describe('POST /v1/otp/verify', () => {
  test('responds 200 to the right code, once', async () => {
    const { requestId } = await send({ phone })
    service.clock.advance(1_234)
    const response = await otp.verifyRightCode(application, requestId)
    expect(response.status).toBe(200)
    expect(response.data).toEqual({ requestId, status: 'verified', phone, verifiedAt: now() })
    const verifiedAt = now()
    service.clock.advance(5_000)
    const retryResponse = await otp.verifyRightCode(application, requestId)
    expect(retryResponse.status).toBe(409)
    expect(retryResponse.error).toMatchObject({ code: 'ALREADY_VERIFIED', metadata: { verifiedAt } })
  })

  test('responds 400 to a wrong one and returns how many attempts remain', async () => {
    const { requestId } = await send()
    for (const attemptsRemaining of [4, 3, 2, 1, 0]) {
      const { status, error, text } = await otp.verifyWrongCode(application, requestId)
      expect(status).toBe(400)
      expect(error).toMatchObject({ code: 'INVALID_CODE', metadata: { attemptsRemaining } })
      expect(error.message.endsWith('send a new code.')).toBe(attemptsRemaining === 0)
      expect(text).not.toContain(await otp.getWrongCode(requestId))
    }
    const sixthResponse = await otp.verifyRightCode(application, requestId)
    expect(sixthResponse.status).toBe(410)
    expect(sixthResponse.error.code).toBe('ATTEMPTS_EXHAUSTED')
    expect((await otp.get(owner, requestId)).data).toMatchObject({
      status: 'failed',
      failureReason: 'max_attempts',
      attempts: 5,
      verifiedAt: null,
    })
  })

  test('accepts the right code at the fifth attempt', async () => {
    const { requestId } = await send()
    for (let i = 0; i < 4; i++) await otp.verifyWrongCode(application, requestId)
    expect((await otp.verifyRightCode(application, requestId)).status).toBe(200)
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'verified', attempts: 5 })
  })

  test('accepts a code until the last millisecond before expiresAt', async () => {
    const [inTime, late] = [await send(), await send()]
    service.clock.set(Date.parse(inTime.expiresAt) - 1)
    expect((await otp.verifyRightCode(application, inTime.requestId)).status).toBe(200)
    service.clock.advance(1)
    const response = await otp.verifyRightCode(application, late.requestId)
    expect(response.status).toBe(410)
    expect(response.error).toMatchObject({ code: 'OTP_EXPIRED', metadata: { expiresAt: late.expiresAt } })
    expect((await otp.get(owner, late.requestId)).data).toMatchObject({ status: 'expired', attempts: 0 })
  })

  test('accepts only the code of this request, not of another for the same phone', async () => {
    const [first, second] = [await send({ phone }), await send({ phone })]
    const code = await otp.getCode(second.requestId)
    expect((await otp.verify(application, first.requestId, code)).status).toBe(400)
    expect((await otp.verify(application, second.requestId, code)).status).toBe(200)
  })

  test('requires the leading zeros of a code', async () => {
    for (let tries = 0; tries < 200; tries++) {
      const { requestId } = await send()
      const code = await otp.getCode(requestId)
      if (!code.startsWith('0')) continue
      const short = await otp.verify(application, requestId, code.replace(/^0+/, ''))
      expect([short.status, short.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
      expect((await otp.verify(application, requestId, code)).status).toBe(200)
      return
    }
    expect.unreachable()
  })

  test('costs no attempt if it is malformed', async () => {
    const { requestId } = await send()
    for (const code of ['12345', '1234567', 'abcdef', '12345 ', '']) {
      const { status, error } = await otp.verify(application, requestId, code)
      expect([status, error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    }
    expect((await otp.get(owner, requestId)).data.attempts).toBe(0)
  })

  test('responds one identical 404 to absent, malformed and other applications’ ids', async () => {
    const { requestId } = await send()
    const sibling = await service.createApplication(owner)
    const stranger = await service.createApplication(await service.createDeveloper())
    const code = await otp.getCode(requestId)
    const responses = await Promise.all([
      otp.verify(sibling, requestId, code),
      otp.verify(stranger, requestId, code),
      otp.verify(application, 'otp_00000000000000000000000000', code),
      otp.verify(application, application.id, code),
      otp.verify(application, 'rubbish', code),
    ])
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
    expect(new Set(responses.map(({ text }) => withoutTraceId(text))).size).toBe(1)
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('creates the identity and counts its later verifications', async () => {
    const number = newPhone()
    const identity = () =>
      service.request<{ verificationCount: number; firstVerifiedAt: string; lastVerifiedAt: string }>(
        'GET',
        `/v1/users/${number}`,
        { as: owner },
      )
    expect((await identity()).status).toBe(404)
    await otp.verifyRightCode(application, (await send({ phone: number })).requestId)
    const first = (await identity()).data
    expect(first).toMatchObject({ verificationCount: 1, firstVerifiedAt: now(), lastVerifiedAt: now() })
    service.clock.advance(1_000)
    await otp.verifyRightCode(application, (await send({ phone: number })).requestId)
    expect((await identity()).data).toMatchObject({
      verificationCount: 2,
      firstVerifiedAt: first.firstVerifiedAt,
      lastVerifiedAt: now(),
    })
  })

  test('logs the events in order', async () => {
    const { requestId } = await send()
    await otp.verifyWrongCode(application, requestId)
    await otp.verifyRightCode(application, requestId)
    const entries = await otp.listLogEntries(owner, requestId)
    expect(entries.map(({ type, status }) => [type, status])).toEqual([
      ['otp.sent', 'pending'],
      ['otp.attempt_failed', 'pending'],
      ['otp.verified', 'verified'],
    ])
    const failing = await send()
    for (let i = 0; i < 5; i++) await otp.verifyWrongCode(application, failing.requestId)
    const failed = await otp.listLogEntries(owner, failing.requestId)
    expect(failed.map(({ type }) => type)).toEqual([
      'otp.sent',
      ...Array.from({ length: 5 }, () => 'otp.attempt_failed'),
      'otp.failed',
    ])
    expect(failed.at(-1)).toMatchObject({ status: 'failed', detail: 'max_attempts' })
  })
})
