import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Database } from '../../src/store/engine/database.ts'
import { openTestPostgres } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway, type SmsMessage } from './gateway.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL'] ?? ''

describe.skipIf(url === '')('a delivery receipt that reaches another node than the sender', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let second: Database
  let gateway: Gateway
  let sender: TestService
  let other: TestService
  let application: TestApplication

  beforeAll(async () => {
    opened = await openTestPostgres(url)
    second = opened.openNode()
    // One for all tests: it numbers its messages.
    gateway = startGateway()
  })
  afterAll(async () => {
    await gateway.stop()
    await opened.dispose()
  })
  beforeEach(async () => {
    const options = {
      plans: unlimitedPlans,
      delivery: { providers: [createTwilioSettings('main', gateway.url)], routes: [] },
      messaging: { pollMs: 3_600_000 },
      env: { OTPD_PHONE_SEND_BUDGET: 'off', OTPD_GUARD_MODE: 'off' },
    }
    sender = await createTestService({ ...options, database: opened.database })
    other = await createTestService({ ...options, database: second })
    application = await sender.createApplication(await sender.createDeveloper())
  })
  afterEach(async () => {
    await sender.dispose()
    await other.dispose()
  })

  const send = async (index = 0) => {
    const body = { phone: `+3161234${1000 + index}` }
    const response = await sender.request<{ requestId: string }>('POST', '/v1/otp/send', {
      as: application,
      body,
    })
    return response.data.requestId
  }
  async function postReceipt(message: SmsMessage, status: string) {
    const { url: callbackUrl, method, headers, body } = buildReceipt(message, status)
    const { pathname, search } = new URL(callbackUrl)
    expect((await other.request(method, pathname + search, { headers, body })).status).toBe(200)
  }
  const deliveryStatus = async (requestId: string) =>
    (await sender.store.read.otpRequests.find(requestId))?.deliveryStatus
  const countKept = async () =>
    (await opened.database.read.select().from(opened.database.tables.earlyReceipts)).length

  test('before the response to the send is kept for it, and a later one replaces it', async () => {
    gateway.setHandler(async (call) => {
      const message = gateway.acceptMessage(call)
      await postReceipt(message, 'sent')
      await postReceipt(message, 'delivered')
      await postReceipt(message, 'sent')
      expect(await countKept()).toBe(1)
      return gateway.createdResponse(message)
    })
    expect(await deliveryStatus(await send())).toBe('delivered')
    expect(await countKept()).toBe(0)
  })

  test('at the same time as the response is never lost', async () => {
    const posted: Array<Promise<void>> = []
    gateway.setHandler((call) => {
      const message = gateway.acceptMessage(call)
      // From at once to after the end of the attempt.
      const turns = gateway.messages.length % 20
      const post = async () => {
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setTimeout(resolve, 0.5))
        await postReceipt(message, 'delivered')
      }
      posted.push(post())
      return gateway.createdResponse(message)
    })
    const sent: string[] = []
    for (let round = 0; round < 20; round++)
      sent.push(...(await Promise.all(Array.from({ length: 10 }, (_, index) => send(round * 10 + index)))))
    await Promise.all(posted)
    expect(new Set(await Promise.all(sent.map(deliveryStatus)))).toEqual(new Set(['delivered']))
    expect(await countKept()).toBe(0)
  }, 120_000)

  test('is applied with its price if the sender ended before it looked for it', async () => {
    gateway.setHandler((call) => gateway.createdResponse(gateway.acceptMessage(call)))
    const requestId = await send()
    const messageId = gateway.messages.at(-1)?.messageId ?? ''
    const receipt = { messageId, requestId, status: 'delivered', failure: null } as const
    await other.store.write((tx) => tx.earlyReceipts.put('main', receipt, other.clock.now()))
    other.clock.advance(60_000)
    await other.services.messaging.expireEarlyReceipts({ batchSize: 1, yieldToRequests: async () => true })
    expect([await deliveryStatus(requestId), await countKept()]).toEqual(['delivered', 0])
  })

  test('for an unknown message is forgotten after a minute', async () => {
    const message = { to: '', code: '', messageId: 'SMunknown', callbackUrl: '' }
    gateway.setHandler((call) => gateway.createdResponse(gateway.acceptMessage(call)))
    await send()
    await postReceipt({ ...message, callbackUrl: gateway.messages.at(-1)?.callbackUrl ?? '' }, 'delivered')
    expect(await countKept()).toBe(1)
    const purge = () =>
      other.services.messaging.expireEarlyReceipts({ batchSize: 3, yieldToRequests: async () => true })
    other.clock.advance(59_999)
    await purge()
    expect(await countKept()).toBe(1)
    other.clock.advance(1)
    await purge()
    expect(await countKept()).toBe(0)
  })
})
