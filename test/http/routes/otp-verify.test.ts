import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { guardOff, otpCalls, phone, unlimited, withoutTrace, type OtpCalls } from '../../helpers/otp.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

let service: TestService
let otp: OtpCalls
let owner: TestDeveloper
let application: TestApplication
beforeAll(async () => {
  service = await createTestService({ plans: unlimited, env: guardOff })
  otp = otpCalls(service)
  owner = await service.createDeveloper()
  application = await service.createApplication(owner)
})
afterAll(() => service.dispose())

let phones = 0
const newPhone = () => `+1415555${3000 + phones++}`
const send = (body: object = {}) => otp.sent(application, { phone: newPhone(), ...body })
const now = () => new Date(service.clock.now()).toISOString()

describe('POST /v1/otp/verify', () => {
  test('answers 200 to the right code, once', async () => {
    const { requestId } = await send({ phone })
    service.clock.advance(1_234)
    const answer = await otp.verifyRight(application, requestId)
    expect(answer.status).toBe(200)
    expect(answer.data).toEqual({ requestId, status: 'verified', phone, verifiedAt: now() })
    const verifiedAt = now()
    service.clock.advance(5_000)
    const again = await otp.verifyRight(application, requestId)
    expect(again.status).toBe(409)
    expect(again.error).toMatchObject({ code: 'ALREADY_VERIFIED', metadata: { verifiedAt } })
  })

  test('answers 400 to a wrong one and tells how many attempts remain', async () => {
    const { requestId } = await send()
    for (const attemptsRemaining of [4, 3, 2, 1, 0]) {
      const { status, error, text } = await otp.verifyWrong(application, requestId)
      expect(status).toBe(400)
      expect(error).toMatchObject({ code: 'INVALID_CODE', metadata: { attemptsRemaining } })
      expect(text).not.toContain(await otp.wrongCodeOf(requestId))
    }
    const sixth = await otp.verifyRight(application, requestId)
    expect(sixth.status).toBe(410)
    expect(sixth.error.code).toBe('ATTEMPTS_EXHAUSTED')
    expect((await otp.get(owner, requestId)).data).toMatchObject({
      status: 'failed',
      failureReason: 'max_attempts',
      attempts: 5,
      verifiedAt: null,
    })
  })

  test('takes the right code at the fifth attempt', async () => {
    const { requestId } = await send()
    for (let i = 0; i < 4; i++) await otp.verifyWrong(application, requestId)
    expect((await otp.verifyRight(application, requestId)).status).toBe(200)
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'verified', attempts: 5 })
  })

  test('takes a code until the last millisecond and refuses it from expiresAt on', async () => {
    const [inTime, late] = [await send(), await send()]
    service.clock.set(Date.parse(inTime.expiresAt) - 1)
    expect((await otp.verifyRight(application, inTime.requestId)).status).toBe(200)
    service.clock.advance(1)
    const answer = await otp.verifyRight(application, late.requestId)
    expect(answer.status).toBe(410)
    expect(answer.error).toMatchObject({ code: 'OTP_EXPIRED', metadata: { expiresAt: late.expiresAt } })
    expect((await otp.get(owner, late.requestId)).data).toMatchObject({ status: 'expired', attempts: 0 })
  })

  test('takes the code of this request and of no other of the same phone', async () => {
    const [first, second] = [await send({ phone }), await send({ phone })]
    const code = await otp.codeOf(second.requestId)
    expect((await otp.verify(application, first.requestId, code)).status).toBe(400)
    expect((await otp.verify(application, second.requestId, code)).status).toBe(200)
  })

  test('takes a code with leading zeros only with them', async () => {
    for (let tries = 0; tries < 200; tries++) {
      const { requestId } = await send()
      const code = await otp.codeOf(requestId)
      if (!code.startsWith('0')) continue
      const short = await otp.verify(application, requestId, code.replace(/^0+/, ''))
      expect([short.status, short.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
      expect((await otp.verify(application, requestId, code)).status).toBe(200)
      return
    }
    expect.unreachable()
  })

  test('that is not well formed costs no attempt', async () => {
    const { requestId } = await send()
    for (const code of ['12345', '1234567', 'abcdef', '12345 ', '']) {
      const { status, error } = await otp.verify(application, requestId, code)
      expect([status, error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    }
    expect((await otp.get(owner, requestId)).data.attempts).toBe(0)
  })

  test('answers one identical 404 to what is not there, malformed, or another application’s', async () => {
    const { requestId } = await send()
    const sibling = await service.createApplication(owner)
    const stranger = await service.createApplication(await service.createDeveloper())
    const code = await otp.codeOf(requestId)
    const answers = await Promise.all([
      otp.verify(sibling, requestId, code),
      otp.verify(stranger, requestId, code),
      otp.verify(application, 'otp_00000000000000000000000000', code),
      otp.verify(application, application.id, code),
      otp.verify(application, 'rubbish', code),
    ])
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
    expect(new Set(answers.map(({ text }) => withoutTrace(text))).size).toBe(1)
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('makes the identity and counts its later verifications', async () => {
    const number = newPhone()
    const identity = () =>
      service.request<{ verificationCount: number; firstVerifiedAt: string; lastVerifiedAt: string }>(
        'GET',
        `/v1/users/${number}`,
        { as: owner },
      )
    expect((await identity()).status).toBe(404)
    await otp.verifyRight(application, (await send({ phone: number })).requestId)
    const first = (await identity()).data
    expect(first).toMatchObject({ verificationCount: 1, firstVerifiedAt: now(), lastVerifiedAt: now() })
    service.clock.advance(1_000)
    await otp.verifyRight(application, (await send({ phone: number })).requestId)
    expect((await identity()).data).toMatchObject({
      verificationCount: 2,
      firstVerifiedAt: first.firstVerifiedAt,
      lastVerifiedAt: now(),
    })
  })

  test('writes what happened into the log, in its order', async () => {
    const { requestId } = await send()
    await otp.verifyWrong(application, requestId)
    await otp.verifyRight(application, requestId)
    const entries = await otp.logOf(owner, requestId)
    expect(entries.map(({ type, status }) => [type, status])).toEqual([
      ['otp.sent', 'pending'],
      ['otp.attempt_failed', 'pending'],
      ['otp.verified', 'verified'],
    ])
    const failing = await send()
    for (let i = 0; i < 5; i++) await otp.verifyWrong(application, failing.requestId)
    const failed = await otp.logOf(owner, failing.requestId)
    expect(failed.map(({ type }) => type)).toEqual([
      'otp.sent',
      ...Array.from({ length: 5 }, () => 'otp.attempt_failed'),
      'otp.failed',
    ])
    expect(failed.at(-1)).toMatchObject({ status: 'failed', detail: 'max_attempts' })
  })
})
