import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import { startTwilioVerify, verifyServiceSid } from '../helpers/carriers/twilio-verify-server.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'

setDefaultTimeout(120_000)

const phone = '+31612345678'

describeEachDatabase('the outcome of a request', (database) => {
  let carrier: ReturnType<typeof startTwilioVerify>
  let service: TestService
  let application: TestApplication
  let log: string[]

  beforeEach(() => {
    carrier = startTwilioVerify()
    log = []
  })
  afterEach(async () => {
    await service.dispose()
    await carrier.stop()
  })

  const delivery = (settings: { feedback?: boolean } = {}) => ({
    providers: [
      {
        name: 'verify',
        kind: 'twilio-verify',
        values: {
          accountSid: `AC${'0'.repeat(32)}`,
          authToken: 'token',
          serviceSid: verifyServiceSid,
          baseUrl: carrier.url,
        },
        ...settings,
      },
    ],
    routes: [],
  })

  async function start(settings: { feedback?: boolean } = {}) {
    service = await createTestService({
      plans: unlimitedPlans,
      database: database(),
      delivery: delivery(settings),
      messaging: { pollMs: 3_600_000 },
      report: (_level, text, fields) => void log.push(`${text} ${JSON.stringify(fields)}`),
    })
    application = await service.createApplication(await service.createDeveloper())
  }

  async function send(to = phone) {
    const { data } = await service.request<{ requestId: string }>('POST', '/v1/otp/send', {
      as: application,
      body: { phone: to },
    })
    return { requestId: data.requestId, ...carrier.messages.at(-1) }
  }
  const verify = (requestId: string, code: string | undefined) =>
    service.request('POST', '/v1/otp/verify', { as: application, body: { requestId, code } })
  const reportDue = () => service.services.messaging.reportDue()
  const statusOf = (messageId: string | undefined) => carrier.verifications.get(messageId ?? '')?.status
  const reports = () => carrier.calls.filter(({ body }) => body.startsWith('Status=')).length
  const dueTimes = async (requestId: string) => {
    const { messages } = service.database.tables
    const rows = await service.database.read.select().from(messages)
    return rows.filter((row) => row.requestId === requestId).map(({ reportDueAt }) => reportDueAt)
  }

  test('verified is reported at once, and only once', async () => {
    await start()
    const { requestId, messageId, code } = await send()
    expect((await verify(requestId, code)).status).toBe(200)
    await reportDue()
    expect(statusOf(messageId)).toBe('approved')
    service.clock.advance(dayMs)
    await reportDue()
    expect(reports()).toBe(1)
    expect(await dueTimes(requestId)).toEqual([null])
  })

  test('of the newest code alone is reported where codes share a verification of the provider', async () => {
    await start()
    const first = await send()
    service.clock.advance(minuteMs)
    const second = await send()
    expect(second.messageId).toBe(first.messageId)
    await service.request('POST', '/v1/otp/cancel', { as: application, body: { requestId: first.requestId } })
    await reportDue()
    expect([statusOf(first.messageId), await dueTimes(first.requestId)]).toEqual(['pending', [null]])
    service.clock.advance(minuteMs)
    await service.request('POST', '/v1/otp/resend', {
      as: application,
      body: { requestId: second.requestId },
    })
    expect((await verify(second.requestId, second.code)).status).toBe(200)
    await reportDue()
    expect([statusOf(second.messageId), reports()]).toEqual(['approved', 1])
    expect(await dueTimes(second.requestId)).toEqual([null, null])
    expect(log.filter((line) => line.includes('outcome'))).toEqual([])
  })

  test('canceled is reported at once', async () => {
    await start()
    const { requestId, messageId } = await send()
    await service.request('POST', '/v1/otp/cancel', { as: application, body: { requestId } })
    await reportDue()
    expect(statusOf(messageId)).toBe('canceled')
  })

  test('expired is reported when the code has expired, even if nothing stored that', async () => {
    await start()
    const { messageId } = await send()
    await reportDue()
    expect(statusOf(messageId)).toBe('pending')
    service.clock.advance(10 * minuteMs)
    await reportDue()
    expect(statusOf(messageId)).toBe('canceled')
  })

  test('failed, after the last wrong code, is reported', async () => {
    await start()
    const { requestId, messageId, code } = await send()
    const wrong = code === '000000' ? '111111' : '000000'
    for (let attempt = 0; attempt < 5; attempt++) await verify(requestId, wrong)
    service.clock.advance(10 * minuteMs)
    await reportDue()
    expect(statusOf(messageId)).toBe('canceled')
  })

  test('survives a crash between the verification and the report', async () => {
    await start()
    const { requestId, messageId, code } = await send()
    // The process stops reporting, as if it had died: what it holds in memory is lost.
    await service.services.messaging.stop(0)
    expect((await verify(requestId, code)).status).toBe(200)
    expect(reports()).toBe(0)
    await service.dispose()
    await start()
    service.clock.advance(10 * minuteMs)
    await reportDue()
    expect(statusOf(messageId)).toBe('approved')
  })

  test('is tried for a day while the provider fails, and then given up with a line in the log', async () => {
    await start()
    const { requestId, code } = await send()
    carrier.setMode('unauthorized')
    await verify(requestId, code)
    await reportDue()
    const [firstDue] = await dueTimes(requestId)
    expect(firstDue).toBe(service.clock.now() + minuteMs / 2)
    for (let hours = 0; hours < 26; hours++) {
      service.clock.advance(hourMs)
      await reportDue()
    }
    expect(await dueTimes(requestId)).toEqual([null])
    expect(reports()).toBeGreaterThan(10)
    expect(log.filter((line) => line.includes('outcome not') && line.includes(requestId))).toEqual([
      `outcome not reported ${JSON.stringify({ requestId, provider: 'verify', reason: '20003' })}`,
    ])
  })

  test('is leased to one node only', async () => {
    await start()
    const sent = await Promise.all([1, 2].map((digit) => send(`+3161234567${digit}`)))
    const requestIds = sent.map(({ requestId }) => requestId)
    const store = createStore(database(), { keys: testKeys })
    const now = service.clock.now() + dayMs
    const claim = () =>
      store.write((tx) => tx.messages.reports.claim({ now, leaseUntil: now + hourMs, limit: 1_000 }))
    const claimed = (await Promise.all(Array.from({ length: 8 }, claim))).flat()
    const ours = claimed.filter((key) => requestIds.includes(key.requestId))
    expect(ours.map(({ requestId }) => requestId).toSorted()).toEqual(requestIds.toSorted())
  })

  test('stays due if a receipt makes it so while it is reported', async () => {
    await start()
    const { requestId } = await send()
    const store = createStore(database(), { keys: testKeys })
    const now = service.clock.now() + dayMs
    const leaseUntil = now + hourMs
    const [key] = await store.write((tx) =>
      tx.messages.reports.claim({ now, leaseUntil, limit: 1, requestIds: [requestId] }),
    )
    if (!key) throw new Error('nothing was due')
    const dueAt = now + minuteMs
    await store.write(async (tx) => {
      const loaded = await tx.messages.load(key)
      if (loaded) tx.messages.update([{ ...loaded.message, reportDueAt: dueAt }])
    })
    await store.write((tx) => tx.messages.reports.endLease(key, leaseUntil, null))
    expect(await dueTimes(requestId)).toEqual([dueAt])
    await store.write((tx) => tx.messages.reports.endLease(key, dueAt, null))
    expect(await dueTimes(requestId)).toEqual([null])
  })

  test('is not reported if the provider has feedback = false', async () => {
    await start({ feedback: false })
    const { requestId, code } = await send()
    expect(await dueTimes(requestId)).toEqual([null])
    await verify(requestId, code)
    service.clock.advance(dayMs)
    await reportDue()
    expect(reports()).toBe(0)
  })
})
