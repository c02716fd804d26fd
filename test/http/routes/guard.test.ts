import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql, type SQL } from 'drizzle-orm'
import { startGateway, createTwilioSettings } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, countByOutcome, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
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
  const alertSenders: unknown[] = []
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      onGuardAlert: (alert, { developerId, appId }) =>
        void alertSenders.push([developerId, appId, alert.country]),
      plans: unlimitedPlans,
      env: {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_DENIED_COUNTRIES: 'cu',
        OTPD_PHONE_SEND_BUDGET: 'off',
      },
    })
    otp = createOtpClient(service)
    developer = await service.createDeveloper()
    app = await service.createApplication(developer)
  })
  afterAll(() => service.dispose())

  const sendMany = (as: TestApplication, count: number, from: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) => otp.sendOrThrow(as, { phone: `+3161234${from + n}` })),
    )

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
      { type: 'otp.blocked', status: 'failed', detail: 'COUNTRY_NOT_ALLOWED' },
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

  test('counts for a developer: their second application gains nothing, another developer loses nothing', async () => {
    const ada = await service.createDeveloper()
    const apps = [await service.createApplication(ada), await service.createApplication(ada)]
    const [one = app, other = app] = apps
    await sendMany(one, 30, 1000)
    service.clock.advance(5 * 60_000)
    expect((await otp.send(other, { phone: '+31612341998' })).status).toBe(403)
    const bob = await service.createApplication(await service.createDeveloper())
    expect((await otp.send(bob, { phone: '+31612341999' })).status).toBe(201)
  })

  test('checks resends, too, and keeps the code that was already sent valid', async () => {
    const ada = await service.createDeveloper()
    const ownApplication = await service.createApplication(ada)
    const { requestId } = await otp.sendOrThrow(ownApplication, { phone: '+31612342000' })
    await sendMany(ownApplication, 53, 2001)
    service.clock.advance(30_000)
    const blocked = await otp.resend(ownApplication, requestId)
    expect([blocked.status, blocked.error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
    expect(blocked.error.metadata).toEqual({ requestId })
    expect((await otp.listLogEntries(ada, requestId)).at(-1)).toMatchObject({
      type: 'otp.blocked',
      status: 'pending',
      detail: 'resend PREFIX_UNVERIFIED',
    })
    expect((await otp.get(ada, requestId)).data).toMatchObject({ status: 'pending', resends: 0 })
    expect((await otp.verifyRightCode(ownApplication, requestId)).status).toBe(200)
    // Its own message and the 20 that its phone adds.
    await sendMany(ownApplication, 21, 3001)
    expect((await otp.send(ownApplication, { phone: '+31612343999' })).status).toBe(403)
  })

  test('refuses costly types of numbers', async () => {
    for (const phone of [
      '+19005550123',
      '+979123456789',
      '+881612345678',
      '+882161234567',
      '+447012345678',
    ]) {
      expect(countByOutcome([await otp.send(app, { phone })])).toEqual({ '403 DESTINATION_BLOCKED': 1 })
    }
  })

  test('sends exactly as many concurrent messages as a prefix takes, across two applications', async () => {
    const ada = await service.createDeveloper()
    const apps = [await service.createApplication(ada), await service.createApplication(ada)]
    const race = Array.from({ length: 64 }, (_, n) =>
      otp.send(apps[n % 2] ?? app, { phone: `+3161235${1000 + n}` }),
    )
    expect(countByOutcome(await Promise.all(race))).toEqual({ '201': 54, '403 DESTINATION_BLOCKED': 10 })
  })

  test('tells the developer, and every application that subscribes, when more than usual is not verified', async () => {
    const ada = await service.createDeveloper()
    const [attacked, other] = [await service.createApplication(ada), await service.createApplication(ada)]
    const url = 'https://hooks.example/'
    for (const [appId, events] of [
      [attacked.id, ['otp.sent']],
      [other.id, ['guard.alert']],
      [other.id, ['*']],
    ] as const)
      await service.request('POST', '/v1/webhooks', { as: ada, body: { appId, url, events } })
    for (let n = 0; n < 30; n++) await otp.sendOrThrow(attacked, { phone: testPhone(2000 + n) })
    service.clock.advance(5 * 60_000)
    await otp.sendOrThrow(attacked, { phone: testPhone(2030) })
    const logs = await service.request<Array<{ detail: string; appId: string }>>(
      'GET',
      '/v1/logs?type=guard.alert',
      { as: ada },
    )
    expect(logs.data).toMatchObject([
      {
        type: 'guard.alert',
        appId: attacked.id,
        requestId: null,
        phone: null,
        detail: 'NL nothing_verified 30 unverified, usually 0',
      },
    ])
    const hooks = await service.request<Array<{ id: string }>>('GET', '/v1/webhooks', { as: ada })
    const counts = await Promise.all(
      hooks.data.map(async ({ id }) => {
        const path = `/v1/webhooks/${id}/deliveries?type=guard.alert`
        return (await service.request<unknown[]>('GET', path, { as: ada })).data.length
      }),
    )
    // Newest first: everything, the alert, and only otp.sent.
    expect(counts).toEqual([1, 1, 0])
    expect(alertSenders.at(-1)).toEqual([ada.developer.id, attacked.id, 'NL'])
  })

  test('ignores test applications and virtual numbers', async () => {
    const testing = await service.createApplication(developer, { environment: 'test' })
    expect((await otp.send(testing, { phone: '+5352123456' })).status).toBe(201)
    for (let n = 0; n < 5; n++) {
      expect((await otp.send(app, { phone: developer.developer.virtualPhone })).status).toBe(201)
    }
  })
})

describe('a guard in monitor mode', () => {
  test('sends codes that it would block, and logs why', async () => {
    const gateway = startGateway()
    const delivery = { providers: [createTwilioSettings('sms', gateway.url)], routes: [] }
    const env = { OTPD_GUARD_MODE: 'monitor', OTPD_PHONE_SEND_BUDGET: 'off' }
    const service = await createTestService({ plans: unlimitedPlans, delivery, env })
    const otp = createOtpClient(service)
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer)
    for (let n = 0; n < 54; n++) await otp.sendOrThrow(app, { phone: `+3161234${1000 + n}` })
    const { requestId } = await otp.sendOrThrow(app, { phone: '+31612341999' })
    expect(await otp.listLogEntries(developer, requestId)).toMatchObject([
      { type: 'guard.flagged', status: 'pending', detail: 'PREFIX_UNVERIFIED' },
      { type: 'otp.sent', status: 'pending' },
    ])
    expect((await otp.verifyRightCode(app, requestId)).status).toBe(200)
    expect(await service.store.read.guard.decisions(0)).toEqual([
      { rule: 'PREFIX_UNVERIFIED', country: 'NL', flagged: 1, blocked: 0 },
    ])
    await service.dispose()
    await gateway.stop()
  })

  test('ignores messages that stay in the inbox', async () => {
    const service = await createTestService({ plans: unlimitedPlans })
    const otp = createOtpClient(service)
    const app = await service.createApplication(await service.createDeveloper())
    for (let n = 0; n < 40; n++) await otp.sendOrThrow(app, { phone: `+3161234${1000 + n}` })
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
    const refused = await otp.send(app, { phone: `+3161234${1000 + n}` })
    expect(countByOutcome([refused])).toEqual({ '502 DELIVERY_FAILED INVALID_NUMBER': 1 })
  }
  gateway.acceptAll()
  const responses = []
  for (let n = 5; n < 60; n++) responses.push(await otp.send(app, { phone: `+3161234${1000 + n}` }))
  expect(countByOutcome(responses)).toEqual({ '201': 54, '403 DESTINATION_BLOCKED': 1 })
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

  test.each(['guard_usage', 'guard_decisions'])(
    '(%s) fails open: codes are sent and verified',
    async (table) => {
      const env = {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_TOTAL_PER_DAY: '1000',
        OTPD_PHONE_SEND_BUDGET: 'off',
      }
      const service = await createTestService({ database: database(), plans: unlimitedPlans, env })
      const otp = createOtpClient(service)
      const developer = await service.createDeveloper()
      const app = await service.createApplication(developer)
      const send = (n: number) => otp.send(app, { phone: `+3161234${1000 + n}`, clientIp: '203.0.113.9' })
      const before = await otp.sendOrThrow(app, { phone: '+31612341900', clientIp: '203.0.113.9' })
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
      const responses = await Promise.all(Array.from({ length: 110 }, (_, n) => send(10 + n)))
      expect(countByOutcome(responses)['403 DESTINATION_BLOCKED']).toBeGreaterThan(0)
      await service.dispose()
    },
  )
})
