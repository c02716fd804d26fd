import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, guardOffEnv } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'

const { service, otp, owner, application } = await createOtpTestService()
afterAll(() => service.dispose())

let phones = 0
const newPhone = () => `+1415555${4000 + phones++}`
const send = (phone: string, body: object = {}, as = application) => otp.sendOrThrow(as, { phone, ...body })
const call = (path: 'verify' | 'resend' | 'cancel', body: object, as = application) =>
  service.request<{ requestId: string }>('POST', `/v1/otp/${path}`, { as, body })
const verify = async (phone: string, requestId: string, as = application) =>
  call('verify', { phone, code: await otp.getCode(requestId) }, as)
const verifyWrong = async (phone: string, requestId: string) =>
  call('verify', { phone, code: await otp.getWrongCode(requestId) })

describe('a call by phone', () => {
  test('means the newest verifiable request; an older one stays reachable by its id', async () => {
    const phone = newPhone()
    const older = await send(phone)
    const newer = await send(phone)
    expect((await verify(phone, older.requestId)).error.code).toBe('INVALID_CODE')
    expect((await verify(phone, newer.requestId)).data.requestId).toBe(newer.requestId)
    expect((await verify(phone, older.requestId)).data.requestId).toBe(older.requestId)
    expect((await verify(phone, newer.requestId)).error.code).toBe('NOT_FOUND')
  })

  test('takes any spelling of the number', async () => {
    const { requestId } = await send('+5491123456789')
    expect((await call('resend', { phone: '0054 11 2345-6789' })).error.reason).toBe('RESEND_TOO_SOON')
    expect((await verify('+54 9 11 2345 6789', requestId)).status).toBe(200)
  })

  test('means no request that ended: a canceled, verified, expired or blocked one', async () => {
    const phone = newPhone()
    const { requestId } = await send(phone)
    expect((await call('cancel', { phone })).data.requestId).toBe(requestId)
    expect((await call('cancel', { phone })).error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'No code is pending for this phone number. Send a new one.',
    })
    const expiring = await send(phone, { ttlSeconds: 60 })
    service.clock.advance(60_000)
    expect((await verify(phone, expiring.requestId)).error.code).toBe('NOT_FOUND')
    expect((await call('resend', { phone })).error.code).toBe('NOT_FOUND')
  })

  test('passes over a newer request that has ended', async () => {
    const phone = newPhone()
    const older = await send(phone, { ttlSeconds: 600 })
    const newer = await send(phone, { ttlSeconds: 60 })
    service.clock.advance(61_000)
    expect((await verify(phone, newer.requestId)).error.code).toBe('INVALID_CODE')
    expect((await verify(phone, older.requestId)).status).toBe(200)
  })

  test('says that the attempts are exhausted until the time of the code is over', async () => {
    const phone = newPhone()
    const { requestId } = await send(phone)
    for (let count = 0; count < 5; count++)
      expect((await verifyWrong(phone, requestId)).error.code).toBe('INVALID_CODE')
    expect((await verify(phone, requestId)).error.code).toBe('ATTEMPTS_EXHAUSTED')
    expect((await call('cancel', { phone })).error.code).toBe('ATTEMPTS_EXHAUSTED')
    service.clock.advance(300_000)
    expect((await verify(phone, requestId)).error.code).toBe('NOT_FOUND')
  })

  test('means requests of this application alone, in its environment', async () => {
    const phone = newPhone()
    const other = await service.createApplication(owner)
    const stranger = await service.createApplication(await service.createDeveloper())
    const { requestId } = await send(phone)
    const others = await send(phone, {}, other)
    expect((await verify(phone, requestId, stranger)).error.code).toBe('NOT_FOUND')
    expect((await verify(phone, requestId)).data.requestId).toBe(requestId)
    expect((await verify(phone, others.requestId, other)).data.requestId).toBe(others.requestId)
  })

  test('resends and cancels what it means', async () => {
    const phone = newPhone()
    const { requestId } = await send(phone)
    service.clock.advance(30_000)
    expect((await call('resend', { phone })).data.requestId).toBe(requestId)
    expect((await call('cancel', { phone })).data.requestId).toBe(requestId)
    expect((await otp.get(owner, requestId)).data).toMatchObject({ status: 'canceled', resends: 1 })
  })

  test('charges the rate for an unknown phone, as for an unknown id', async () => {
    const limited = await createTestService({ env: guardOffEnv })
    const app = await limited.createApplication(await limited.createDeveloper())
    const body = { phone: newPhone(), code: '123456' }
    const responses = []
    for (let count = 0; count < 11; count++)
      responses.push(await limited.request('POST', '/v1/otp/verify', { as: app, body }))
    expect(responses.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 404), 429])
    await limited.dispose()
  })

  test.each(['verify', 'resend', 'cancel'] as const)(
    '%s takes exactly one of phone and requestId',
    async (path) => {
      const code = path === 'verify' ? { code: '123456' } : {}
      for (const body of [code, { ...code, phone: newPhone(), requestId: 'otp_1' }]) {
        const { status, error } = await call(path, body)
        expect([status, error.code, error.message]).toEqual([
          400,
          'INVALID_ARGUMENT',
          'Invalid request. requestId: Expected either requestId or phone.',
        ])
      }
      expect((await call(path, { ...code, phone: 'nobody' })).error.code).toBe('INVALID_PHONE_NUMBER')
    },
  )
})
