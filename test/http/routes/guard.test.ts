import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql, type SQL } from 'drizzle-orm'
import { startGateway, createTwilioSettings } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, countByOutcome, unlimitedPlans, type OtpClient } from '../../helpers/otp-client.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

/** Creates numbers of one country, none of them consecutive. */
const testPhone = (n: number) => `+316${String(10_000_000 + n * 10_007)}`

describeEachDatabase('a guard in enforce mode', (database) => {
  let service: TestService
  let otp: OtpClient
  let developer: TestDeveloper
  let app: TestApplication
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_DENIED_COUNTRIES: 'cu',
        OTPD_PHONE_SEND_BUDGET: 'off',
        OTPD_GUARD_APPLICATION_PER_DAY: '12',
        OTPD_GUARD_ADDRESS_PER_HOUR: '2',
      },
    })
    otp = createOtpClient(service)
    developer = await service.createDeveloper()
    app = await service.createApplication(developer)
  })
  afterAll(() => service.dispose())

  test('responds 403 with the id of a failed request, and without the cause', async () => {
    const response = await otp.send(app, { phone: '+5352123456' })
    expect(response.status).toBe(403)
    expect(response.error).toMatchObject({
      code: 'DESTINATION_BLOCKED',
      message: 'Codes to this destination are blocked. Ask the operator if this is a mistake.',
    })
    expect(response.error.reason).toBeUndefined()
    expect(response.text).not.toMatch(/COUNTRY|5352/)
    const requestId = String(response.error.metadata?.['requestId'])
    expect((await otp.get(developer, requestId)).data).toMatchObject({
      status: 'failed',
      failureReason: 'blocked',
      country: 'CU',
      provider: null,
      deliveryStatus: null,
    })
    expect(await otp.listLogEntries(developer, requestId)).toMatchObject([
      { type: 'otp.blocked', status: 'failed', detail: 'COUNTRY_DENIED' },
    ])
    expect((await service.request<unknown[]>('GET', '/v1/inbox', { as: developer })).data).toEqual([])
    // 410 (RFC 9110 §15.5.11): permanently gone, so the client sends a new code.
    const verified = await otp.verifyRightCode(app, requestId)
    expect([verified.status, verified.error.code, verified.error.reason]).toEqual([
      410,
      'OTP_CANCELED',
      'BLOCKED',
    ])
    expect((await otp.resend(app, requestId)).status).toBe(410)
    expect((await otp.cancel(app, requestId)).status).toBe(410)
  })

  test('counts a blocked send as a failed request, and against the rate limit', async () => {
    const ada = await service.createDeveloper()
    const ownApplication = await service.createApplication(ada)
    const before = await service.request<{ otpRequests: number }>('GET', '/v1/analytics/summary', { as: ada })
    await otp.send(ownApplication, { phone: '+5352123456' })
    const after = await service.request<{ otpRequests: number }>('GET', '/v1/analytics/summary', { as: ada })
    expect(after.data.otpRequests - before.data.otpRequests).toBe(1)
    const days = await service.request<Array<{ sent: number; failed: number }>>(
      'GET',
      '/v1/analytics/timeseries',
      { as: ada },
    )
    expect(days.data.at(-1)).toMatchObject({ sent: 0, failed: 1 })
  })

  test('replays its error for the same idempotency key, and creates no second request', async () => {
    const headers = { 'idempotency-key': 'k-1' }
    const first = await otp.send(app, { phone: '+5352123456' }, headers)
    const second = await otp.send(app, { phone: '+5352123456' }, headers)
    expect([first.status, second.status]).toEqual([403, 403])
    expect(second.error.metadata).toEqual(first.error.metadata ?? {})
    expect(second.headers.get('idempotency-replayed')).toBe('true')
  })

  test('blocks the fourth unverified code of a country, until codes are verified', async () => {
    const ownApplication = await service.createApplication(developer)
    const sent = []
    for (let n = 0; n < 3; n++) sent.push(await otp.sendOrThrow(ownApplication, { phone: testPhone(n) }))
    const blocked = await otp.send(ownApplication, { phone: testPhone(3) })
    expect(countByOutcome([blocked])).toEqual({ '403 DESTINATION_BLOCKED': 1 })
    expect((await otp.send(ownApplication, { phone: '+32470123456' })).status).toBe(201)
    expect((await otp.verifyRightCode(ownApplication, sent[1]?.requestId ?? '')).status).toBe(200)
    expect((await otp.send(ownApplication, { phone: testPhone(4) })).status).toBe(201)
    expect((await otp.send(ownApplication, { phone: testPhone(5) })).status).toBe(403)
  })

  test('checks resends, too, and keeps the code that was already sent valid', async () => {
    const ownApplication = await service.createApplication(developer)
    const { requestId } = await otp.sendOrThrow(ownApplication, { phone: testPhone(10) })
    await otp.sendOrThrow(ownApplication, { phone: testPhone(11) })
    service.clock.advance(30_000)
    expect((await otp.resend(ownApplication, requestId)).status).toBe(200)
    const soon = await otp.resend(ownApplication, requestId)
    expect([soon.status, soon.error.reason]).toEqual([429, 'RESEND_TOO_SOON'])
    service.clock.advance(30_000)
    const blocked = await otp.resend(ownApplication, requestId)
    expect([blocked.status, blocked.error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
    expect(blocked.error.metadata).toEqual({ requestId })
    expect((await otp.listLogEntries(developer, requestId)).at(-1)).toMatchObject({
      type: 'otp.blocked',
      status: 'pending',
      detail: 'resend COUNTRY_HOURLY',
    })
    expect((await otp.get(developer, requestId)).data).toMatchObject({ status: 'pending', resends: 1 })
    expect((await otp.verifyRightCode(ownApplication, requestId)).status).toBe(200)
    // Verification removes both messages of that request; one of the other remains.
    expect((await otp.send(ownApplication, { phone: testPhone(12) })).status).toBe(201)
    expect((await otp.send(ownApplication, { phone: testPhone(13) })).status).toBe(201)
    expect((await otp.send(ownApplication, { phone: testPhone(14) })).status).toBe(403)
  })

  test('identifies the end user by the clientIp that the backend sends', async () => {
    const ownApplication = await service.createApplication(developer)
    const send = (country: string, clientIp: string) =>
      otp.send(ownApplication, { phone: `${country}1234567`, clientIp })
    const statuses = []
    for (const country of ['+3247', '+3361', '+44790']) {
      statuses.push((await send(country, '203.0.113.5')).status)
    }
    expect(statuses).toEqual([201, 201, 403])
    expect((await send('+44790', '203.0.113.6')).status).toBe(201)
  })

  test('sends exactly the daily cap under concurrent requests', async () => {
    const ownApplication = await service.createApplication(developer)
    const countries = ['+3247', '+3361', '+44790', '+4917', '+3934', '+3461']
    const race = Array.from({ length: 40 }, (_, n) =>
      otp.send(ownApplication, {
        phone: `${countries[n % countries.length]}${String(1_000_000 + n * 10_007)}`,
      }),
    )
    const responses = await Promise.all(race)
    expect(countByOutcome(responses)).toEqual({ '201': 12, '403 DESTINATION_BLOCKED': 28 })
  })

  test('ignores test applications and virtual numbers', async () => {
    const testing = await service.createApplication(developer, { environment: 'test' })
    expect((await otp.send(testing, { phone: '+5352123456' })).status).toBe(201)
    for (let n = 0; n < 5; n++) {
      expect((await otp.send(app, { phone: developer.developer.virtualPhone })).status).toBe(201)
    }
  })
})

describe('a guard in monitor mode, the default', () => {
  test('sends codes that it would block, and logs why', async () => {
    const gateway = startGateway()
    const delivery = { providers: [createTwilioSettings('sms', gateway.url)], routes: [] }
    const service = await createTestService({ plans: unlimitedPlans, delivery })
    const otp = createOtpClient(service)
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer)
    for (let n = 0; n < 3; n++) await otp.sendOrThrow(app, { phone: testPhone(n) })
    const { requestId } = await otp.sendOrThrow(app, { phone: testPhone(3) })
    expect(await otp.listLogEntries(developer, requestId)).toMatchObject([
      { type: 'guard.flagged', status: 'pending', detail: 'COUNTRY_HOURLY' },
      { type: 'otp.sent', status: 'pending' },
    ])
    expect((await otp.verifyRightCode(app, requestId)).status).toBe(200)
    expect(await service.store.read.guard.decisions(0)).toEqual([
      { rule: 'COUNTRY_HOURLY', country: 'NL', flagged: 1, blocked: 0 },
    ])
    await service.dispose()
    await gateway.stop()
  })

  test('ignores messages that stay in the inbox', async () => {
    const service = await createTestService({ plans: unlimitedPlans })
    const otp = createOtpClient(service)
    const app = await service.createApplication(await service.createDeveloper())
    for (let n = 0; n < 10; n++) await otp.sendOrThrow(app, { phone: testPhone(n) })
    expect(await service.store.read.guard.decisions(0)).toEqual([])
    await service.dispose()
  })
})

test('an outage of the provider does not block a country', async () => {
  const gateway = startGateway()
  const service = await createTestService({
    plans: unlimitedPlans,
    env: { OTPD_GUARD_MODE: 'enforce', OTPD_PHONE_SEND_BUDGET: 'off' },
    delivery: {
      providers: [createTwilioSettings('sms', gateway.url)],
      routes: [],
    },
  })
  const otp = createOtpClient(service)
  const app = await service.createApplication(await service.createDeveloper())
  gateway.refuseAll(400, 21211)
  for (let n = 0; n < 5; n++) {
    const refused = await otp.send(app, { phone: testPhone(n) })
    expect(countByOutcome([refused])).toEqual({ '502 DELIVERY_FAILED INVALID_NUMBER': 1 })
  }
  gateway.acceptAll()
  const responses = []
  for (let n = 5; n < 9; n++) responses.push(await otp.send(app, { phone: testPhone(n) }))
  expect(countByOutcome(responses)).toEqual({ '201': 3, '403 DESTINATION_BLOCKED': 1 })
  await service.dispose()
  await gateway.stop()
})

describeEachDatabase('a guard whose table is missing', (database, kind) => {
  /** Runs raw SQL for one dialect, to break the database underneath the service. */
  const run = (statement: SQL) =>
    database().write(async (tx) => {
      const raw = tx as unknown as { run?(s: SQL): unknown; execute?(s: SQL): Promise<unknown> }
      await (kind === 'SQLite' ? raw.run?.(statement) : raw.execute?.(statement))
    })

  test.each(['guard_windows', 'guard_days', 'guard_address_countries', 'guard_decisions'])(
    '(%s) fails open: codes are sent and verified',
    async (table) => {
      const env = {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_APPLICATION_PER_DAY: '100',
        OTPD_PHONE_SEND_BUDGET: 'off',
      }
      const service = await createTestService({ database: database(), plans: unlimitedPlans, env })
      const otp = createOtpClient(service)
      const developer = await service.createDeveloper()
      const app = await service.createApplication(developer)
      const send = (n: number) => otp.send(app, { phone: testPhone(n), clientIp: '203.0.113.9' })
      const before = await otp.sendOrThrow(app, { phone: testPhone(90), clientIp: '203.0.113.9' })
      await run(sql.raw(`alter table ${table} rename to gone`))
      try {
        for (let n = 0; n < 6; n++) {
          const response = await send(n)
          expect(response.status).toBe(201)
          expect(
            (await otp.listLogEntries(developer, response.data.requestId)).map(({ type }) => type),
          ).toEqual(['otp.sent'])
          if (n === 0) expect((await otp.verifyRightCode(app, response.data.requestId)).status).toBe(200)
        }
        expect((await otp.verifyRightCode(app, before.requestId)).status).toBe(200)
      } finally {
        await run(sql.raw(`alter table gone rename to ${table}`))
      }
      // The table is back, with its previous counts.
      const responses = []
      for (let n = 10; n < 16; n++) responses.push(await send(n))
      expect(countByOutcome(responses)['403 DESTINATION_BLOCKED']).toBeGreaterThan(0)
      await service.dispose()
    },
  )
})
