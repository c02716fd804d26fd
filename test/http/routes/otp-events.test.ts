import { afterEach, beforeEach, expect, test } from 'bun:test'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type LogData, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestCaller,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type EventData = LogData & { attempt?: number; provider?: string; outcome?: string; error?: string | null }

describeEachDatabase('the events of a request', (database) => {
  let main: Gateway
  let spare: Gateway
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let application: TestApplication

  beforeEach(async () => {
    main = startGateway()
    spare = startGateway()
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: guardOffEnv,
      delivery: {
        providers: [createTwilioSettings('main', main.url), createTwilioSettings('spare', spare.url)],
        routes: [
          { channel: 'sms', countries: [], prefixes: [], applications: [], providers: ['main', 'spare'] },
        ],
      },
      messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
    })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    application = await service.createApplication(owner)
  })
  afterEach(async () => {
    await service.dispose()
    await main.stop()
    await spare.stop()
  })

  const events = (requestId: string, query = '', as: TestCaller = owner) =>
    service.request<EventData[]>('GET', `/v1/otp/${requestId}/events${query}`, { as })
  const logs = (query: string, as: TestCaller = owner) =>
    service.request<EventData[]>('GET', `/v1/logs${query}`, { as })

  /** A request that fails over, is delivered, gets a wrong code, is sent again, and is verified. */
  async function liveThrough() {
    main.refuseAll(503, 20500)
    const { requestId } = await otp.sendOrThrow(application)
    const receipt = spare.messages[0]
    if (!receipt) throw new Error('nothing was sent')
    const { url, method, headers, body } = buildReceipt(receipt, 'delivered')
    const { pathname, search } = new URL(url)
    service.clock.advance(1_000)
    await service.request(method, pathname + search, { headers, body })
    service.clock.advance(1_000)
    await otp.verifyWrongCode(application, requestId)
    service.clock.advance(30_000)
    await otp.resend(application, requestId)
    service.clock.advance(1_000)
    await otp.verifyRightCode(application, requestId)
    return requestId
  }

  test('say all that happened, oldest first, to its developer and its application', async () => {
    const requestId = await liveThrough()
    const { data, pagination } = await events(requestId)
    expect(
      data.map(({ type, provider, outcome }) => [type, provider, outcome].filter(Boolean).join(' ')),
    ).toEqual([
      'otp.sent',
      'delivery.attempted main refused',
      'delivery.attempted spare accepted',
      'otp.delivered',
      'otp.attempt_failed',
      'otp.sent',
      expect.stringMatching(/^delivery.attempted/),
      ...(data.length === 9 ? [expect.stringMatching(/^delivery.attempted/)] : []),
      'otp.verified',
    ])
    expect(pagination).toEqual({ limit: 50, nextCursor: null })
    expect(data[1]).toMatchObject({ channel: 'sms', providerMessageId: null, error: 'provider_down' })
    expect(data[2]).toMatchObject({ providerMessageId: expect.any(String), error: null })
    expect(data[4]).toMatchObject({ attempt: 1, attemptsMax: 5, attemptsRemaining: 4, detail: '1/5' })
    expect(data.every((entry) => entry.requestId === requestId && entry.appId === application.id)).toBe(true)
    expect((await events(requestId, '', application)).data).toEqual(data)
  })

  test('are those of the log, with the same ids', async () => {
    const requestId = await liveThrough()
    const { data } = await events(requestId)
    const inLog = (await logs('?limit=200')).data
    expect(inLog).toEqual(data.filter(({ type }) => type !== 'delivery.attempted'))
    expect((await logs(`?requestId=${requestId}`)).data).toEqual(data)
    expect((await logs(`?requestId=${requestId}&order=desc`)).data).toEqual(data.toReversed())
    expect((await logs(`?requestId=${requestId}&after=${data[2]?.id}`)).data).toEqual(data.slice(3))
    expect((await logs(`?requestId=${requestId}&type=otp.sent`)).data).toHaveLength(2)
    const other = await service.createApplication(owner)
    expect((await logs(`?requestId=${requestId}&appId=${other.id}`)).data).toEqual([])
    expect((await logs(`?requestId=${requestId}&after=evt_${'0'.repeat(26)}`)).status).toBe(400)
  })

  test('have pages', async () => {
    const requestId = await liveThrough()
    const { data } = await events(requestId)
    const collect = async (path: string) => {
      const pages: EventData[][] = []
      for (let cursor: string | null = ''; cursor !== null;) {
        const suffix: string = cursor === '' ? '' : `&cursor=${cursor}`
        const page = await service.request<EventData[]>('GET', `${path}limit=3${suffix}`, { as: owner })
        pages.push(page.data)
        cursor = page.pagination?.nextCursor ?? null
      }
      return pages
    }
    expect((await collect(`/v1/otp/${requestId}/events?`)).flat()).toEqual(data)
    expect((await collect(`/v1/logs?requestId=${requestId}&`)).toReversed().flat()).toEqual(data)
  })

  test('outlive the log', async () => {
    const requestId = await liveThrough()
    const before = (await events(requestId)).data
    while (await service.store.write((tx) => tx.events.deleteOldest(service.clock.now(), 1_000)));
    expect((await logs('')).data).toEqual([])
    const after = (await events(requestId)).data
    expect(after.map(({ id: _id, ...entry }) => entry)).toEqual(before.map(({ id: _id, ...entry }) => entry))
    expect(new Set(after.map(({ id }) => id)).size).toBe(before.length)
    expect((await events(requestId)).data).toEqual(after)
  })

  test('keep their ids while the log has only the newer ones', async () => {
    const requestId = await liveThrough()
    const before = (await events(requestId)).data
    const wrongCode = before.findIndex(({ type }) => type === 'otp.attempt_failed')
    const until = Date.parse(before[wrongCode]?.at ?? '')
    while (await service.store.write((tx) => tx.events.deleteOldest(until, 1_000)));
    const inLog = (await logs('?limit=200')).data
    expect(inLog.length).toBeGreaterThan(1)
    const after = (await events(requestId)).data
    expect(after.filter(({ type }) => type !== 'delivery.attempted').slice(-inLog.length)).toEqual(inLog)
    expect(after.slice(wrongCode + 1)).toEqual(before.slice(wrongCode + 1))
  })

  test('lose the ids of messages with the phone number', async () => {
    const requestId = await liveThrough()
    const history = async () => (await service.store.read.otpRequests.find(requestId))?.history ?? ''
    const id = spare.messages[0]?.messageId ?? 'nothing was sent'
    expect(await history()).toContain(id)
    await service.store.write((tx) => tx.retention.replaceInRequest(requestId, 'anon_0'))
    expect(await history()).not.toContain(id)
    const { data } = await events(requestId)
    expect(data[2]).toMatchObject({ outcome: 'accepted', providerMessageId: null })
  })

  test('of a message that was under way when the number was erased have no id of it either', async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>()
    main.setHandler(async (call) => {
      arrive()
      await mayAnswer
      return main.createdResponse(main.acceptMessage(call))
    })
    const sending = otp.sendOrThrow(application)
    await arrived
    const [request] = (await service.request<Array<{ id: string }>>('GET', '/v1/otp', { as: owner })).data
    const requestId = request?.id ?? 'nothing was sent'
    await service.store.write(async (tx) => {
      await tx.retention.replaceInRequest(requestId, 'erased')
      await tx.retention.deleteMessages([requestId])
    })
    answer()
    await sending
    const { data } = await events(requestId)
    expect(data.at(-1)).toMatchObject({ type: 'delivery.attempted', outcome: 'accepted' })
    expect(data.at(-1)).toMatchObject({ providerMessageId: null })
  })

  test.each([
    ['half a character', '\ud800'],
    ['a NUL', 'a\0b'],
    ['a book', 'x'.repeat(50_000)],
  ])('are kept when the provider names the message by %s', async (_, sid) => {
    main.setHandler((call) => {
      main.acceptMessage(call)
      // As JSON escapes, which say what UTF-8 cannot.
      return new Response(JSON.stringify({ sid, status: 'queued' }), {
        status: 201,
        headers: { 'content-type': 'application/json' },
      })
    })
    const { requestId } = await otp.sendOrThrow(application)
    const { data } = await events(requestId)
    expect(data.map(({ type }) => type)).toEqual(['otp.sent', 'delivery.attempted'])
    expect(data[1]).toMatchObject({ outcome: 'accepted', providerMessageId: null })
    const { data: request } = await service.request<{ deliveryStatus: string }>(
      'GET',
      `/v1/otp/${requestId}`,
      {
        as: owner,
      },
    )
    expect(request.deliveryStatus).toBe('sent')
  })

  test('belong to a developer', async () => {
    const { requestId } = await otp.sendOrThrow(application)
    const stranger = await service.createDeveloper()
    expect((await events(requestId, '', stranger)).status).toBe(404)
    expect((await events(requestId, '', await service.createApplication(owner))).status).toBe(404)
    expect((await events('otp_1')).status).toBe(404)
    expect((await logs(`?requestId=${requestId}`, stranger)).data).toEqual([])
    expect((await logs('?requestId=otp_1')).data).toEqual([])
  })

  test('of calls at the same time are all there, each once', async () => {
    const sent = await Promise.all(
      Array.from({ length: 20 }, (_, i) => otp.sendOrThrow(application, { phone: `+1415555${2000 + i}` })),
    )
    await Promise.all(
      sent.flatMap(({ requestId }) =>
        Array.from({ length: 6 }, () => otp.verifyWrongCode(application, requestId)),
      ),
    )
    const inLog = (await logs('?limit=200')).data
    for (const { requestId } of sent) {
      const own = (await events(requestId)).data.filter(({ type }) => type !== 'delivery.attempted')
      expect(own).toEqual(inLog.filter((entry) => entry.requestId === requestId))
      expect(own.map(({ attempt }) => attempt)).toEqual([undefined, 1, 2, 3, 4, 5, undefined])
    }
  })
})
