import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Sent = { requestId: string; phone: string; code?: string }

const typed = '020 7946 0123'
const phone = '+442079460123'

describeEachDatabase('a number without country code', (database) => {
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  /** Sends nothing, and responses have the code. */
  let plain: TestApplication
  let british: TestApplication
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off' },
    })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    plain = await service.createApplication(owner, { environment: 'test' })
    british = await service.createApplication(owner, { environment: 'test' })
    const body = { defaultCountry: 'GB' }
    await service.request('PATCH', `/v1/applications/${british.id}`, { as: owner, body })
  })
  beforeEach(() => service.clock.advance(120_000))
  afterAll(() => service.dispose())

  const call = (operation: string, body: object, as: TestApplication, headers = {}) =>
    service.request<Sent>('POST', `/v1/otp/${operation}`, { as, body, headers })

  /** Sends, resends, verifies, cancels and delivers. */
  async function useAll(as: TestApplication, target: object) {
    const sent = await call('send', target, as)
    expect([sent.status, sent.data.phone]).toEqual([201, phone])
    service.clock.advance(31_000)
    const resent = await call('resend', target, as)
    expect([resent.status, resent.data]).toMatchObject([200, { requestId: sent.data.requestId, phone }])
    const verified = await call('verify', { ...target, code: sent.data.code }, as)
    expect([verified.status, verified.data.phone]).toEqual([200, phone])
    const second = await call('send', target, as)
    const canceled = await call('cancel', target, as)
    expect([canceled.status, canceled.data]).toMatchObject([200, { requestId: second.data.requestId, phone }])
    const delivered = await call('deliver', { ...target, code: '907155' }, as)
    expect([delivered.status, delivered.data.phone]).toEqual([200, phone])
    for (const entry of await otp.listLogEntries(owner, sent.data.requestId)) expect(entry.phone).toBe(phone)
  }

  test('is of the country that the call names', () => useAll(plain, { phone: typed, country: 'gb' }))

  test("is of the application's country if the call names none", () => useAll(british, { phone: typed }))

  test('is of the country of the call where both are named', async () => {
    const sent = await call('send', { phone: '0151 12345678', country: 'DE' }, british)
    expect(sent.data.phone).toBe('+4915112345678')
  })

  test('means the same phone as its E.164 form, which no country changes', async () => {
    for (const as of [plain, british])
      for (const country of [undefined, 'US'])
        expect((await call('send', { phone: ' +44 20 7946-0123', country }, as)).data.phone).toBe(phone)
    const { data } = await call('send', { phone }, plain)
    const verified = await call('verify', { phone: typed, country: 'GB', code: data.code }, plain)
    expect([verified.status, verified.data.requestId]).toEqual([200, data.requestId])
    const user = (as: TestApplication) =>
      service.request('GET', `/v1/users/${encodeURIComponent(typed)}`, { as })
    expect((await user(british)).data).toMatchObject({ phone })
    expect((await user(plain)).status).toBe(404)
  })

  test('is answered again for its idempotency key, and not with another country', async () => {
    const key = { 'idempotency-key': 'signup-1' }
    const first = await call('send', { phone: typed, country: 'GB' }, plain, key)
    const again = await call('send', { phone: typed, country: 'GB' }, plain, key)
    expect(again.data.requestId).toBe(first.data.requestId)
    expect((await call('send', { phone: typed, country: 'IE' }, plain, key)).status).toBe(422)
  })

  test.each(['send', 'resend', 'verify', 'cancel', 'deliver'])(
    'is refused by %s without a country, saying what to do',
    async (operation) => {
      const code = ['verify', 'deliver'].includes(operation) ? { code: '123456' } : {}
      const ask = (body: object) => call(operation, { ...body, ...code }, plain)
      const { status, error } = await ask({ phone: typed })
      expect([status, error.code]).toEqual([400, 'INVALID_PHONE_NUMBER'])
      expect(error.message).toContain('has no country code')
      expect(error.details).toMatchObject([
        { in: 'body', path: 'phone', message: expect.stringContaining('`defaultCountry`') },
      ])
      const impossible = await ask({ phone: '020', country: 'gb' })
      expect([impossible.status, impossible.error.code]).toEqual([400, 'INVALID_PHONE_NUMBER'])
      expect(impossible.error.message).toContain('invalid in GB')
      const malformed = await ask({ phone: '+44', country: 'GB' })
      expect([malformed.status, malformed.error.code]).toEqual([400, 'INVALID_PHONE_NUMBER'])
      for (const country of ['ZZ', 'GBR']) {
        const unknown = await ask({ phone, country })
        expect([unknown.status, unknown.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
        expect(unknown.error.details).toMatchObject([{ path: 'country' }])
      }
    },
  )
})
