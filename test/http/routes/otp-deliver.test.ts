import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { noCost } from '../../../src/domain/model/price.ts'
import type { RelayedMessage } from '../../../src/domain/model/relayed-message.ts'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import { createPurger } from '../../helpers/retention.ts'
import { readEverything, readOpened } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Relayed = { id: string; phone: string; channel: string; status: string }

const code = '907155'
let phones = 0
const newPhone = () => `+3161${String(1_000_000 + phones++)}`

describeEachDatabase('POST /v1/otp/deliver', (database) => {
  let main: Gateway
  let spare: Gateway
  let service: TestService
  let owner: TestDeveloper
  let application: TestApplication
  let phone: string

  beforeAll(async () => {
    main = startGateway()
    spare = startGateway()
    service = await createTestService({
      database: database(),
      plans: { free: { ...unlimitedPlan, sendPerMinute: 60 } },
      env: { OTPD_GUARD_MODE: 'enforce', OTPD_GUARD_DENIED_COUNTRIES: 'CN' },
      delivery: deliveryTo([]),
    })
    owner = await service.createDeveloper()
  })
  /** Settings with a route to these countries, or to all. */
  const deliveryTo = (countries: string[]) => ({
    providers: [createTwilioSettings('main', main.url), createTwilioSettings('spare', spare.url)],
    routes: [
      { channel: 'sms' as const, countries, prefixes: [], applications: [], providers: ['main', 'spare'] },
    ],
  })
  afterAll(async () => {
    await service.dispose()
    await main.stop()
    await spare.stop()
  })
  beforeEach(async () => {
    phone = newPhone()
    application = await service.createApplication(owner)
  })
  afterEach(() => {
    for (const gateway of [main, spare]) {
      gateway.acceptAll()
      gateway.messages.length = 0
    }
  })

  const deliver = (body: object = {}, headers: Record<string, string> = {}, as = application) =>
    service.request<Relayed>('POST', '/v1/otp/deliver', { as, body: { phone, code, ...body }, headers })
  const listEvents = async (id: string) =>
    (await readOpened(database(), 'events'))
      .filter(({ requestId }) => requestId === id)
      .map(({ type, phone: to, detail }) => [type, to, detail])
  const receive = async (status: string, errorCode?: number) => {
    const [message] = main.messages
    if (!message) throw new Error('no message')
    const { url, method, headers, body } = buildReceipt(message, status, errorCode)
    const { pathname, search } = new URL(url)
    return (await service.request(method, pathname + search, { headers, body })).status
  }

  test('sends the code as it is, and keeps it nowhere', async () => {
    const response = await deliver({ code: 'x7Q9abZ001' }, { 'idempotency-key': 'one' })
    expect(response.status).toBe(200)
    expect(response.data).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-z]{26}$/),
      phone,
      channel: 'sms',
      status: 'sent',
    })
    expect(main.takeCall().body).toContain('x7Q9abZ001')
    expect(await readEverything(database())).not.toContain('x7Q9abZ001')
    expect(await listEvents(response.data.id)).toEqual([['message.sent', phone, null]])
    expect(response.headers.get('ratelimit')).toContain('otp-send')
  })

  test('makes no request and no user', async () => {
    const { data } = await deliver()
    const list = await service.request<unknown[]>('GET', `/v1/otp?appId=${application.id}`, { as: owner })
    expect(list.data).toEqual([])
    expect((await service.request('GET', `/v1/otp/${data.id}`, { as: owner })).status).toBe(404)
    expect((await service.request('GET', `/v1/users/${phone}`, { as: owner })).status).toBe(404)
  })

  test('answers the same code for the same phone again within 60 seconds, and sends it once', async () => {
    const first = await deliver()
    service.clock.advance(59_000)
    const second = await deliver({}, { 'idempotency-key': 'another' })
    expect([second.status, second.data]).toEqual([200, first.data])
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expect(main.messages).toHaveLength(1)
    await deliver({ code: '111111' })
    expect(main.messages).toHaveLength(2)
    service.clock.advance(2_000)
    expect((await deliver()).data.id).not.toBe(first.data.id)
    expect(main.messages).toHaveLength(3)
  })

  test('answers a key again for a day, and refuses it with another body', async () => {
    const key = { 'idempotency-key': 'order' }
    const first = await deliver({}, key)
    service.clock.advance(3_600_000)
    expect((await deliver({}, key)).data).toEqual(first.data)
    expect((await deliver({ code: '111111' }, key)).error.code).toBe('IDEMPOTENCY_KEY_REUSED')
    expect(main.messages).toHaveLength(1)
  })

  test('sends once for 50 equal calls at once, with and without a key', async () => {
    for (const key of [{}, { 'idempotency-key': 'all' }]) {
      phone = newPhone()
      main.messages.length = 0
      const outcomes = countByOutcome(await Promise.all(Array.from({ length: 50 }, () => deliver({}, key))))
      expect(main.messages).toHaveLength(1)
      const { '200': sent = 0, '409 CONFLICT IDEMPOTENCY_IN_PROGRESS': waiting = 0 } = outcomes
      expect(sent).toBeGreaterThan(0)
      expect(sent + waiting).toBe(50)
    }
  })

  test('sends again 10 seconds after an equal call that has not ended', async () => {
    const held = Promise.withResolvers<Response>()
    const reached = Promise.withResolvers<void>()
    main.setHandler(() => {
      reached.resolve()
      return held.promise
    })
    const first = deliver()
    await reached.promise
    main.acceptAll()
    service.clock.advance(9_999)
    expect((await deliver()).error).toMatchObject({
      reason: 'IDEMPOTENCY_IN_PROGRESS',
      message: 'An earlier request with this code for this phone is still in progress. Retry in a second.',
    })
    service.clock.advance(1)
    expect((await deliver()).status).toBe(200)
    expect(main.messages).toHaveLength(1)
    held.resolve(new Response(null, { status: 400 }))
    await first
  })

  test('tries the next provider, and says if none takes the message', async () => {
    main.refuseAll(400, 21606)
    expect((await deliver()).status).toBe(200)
    expect(spare.messages).toHaveLength(1)
    spare.refuseAll(400, 21211)
    const refused = await deliver({ code: '111111' })
    expect([refused.status, refused.error.code]).toEqual([502, 'DELIVERY_FAILED'])
    const { id } = refused.error.metadata ?? {}
    expect(await listEvents(String(id))).toEqual([['message.undelivered', phone, 'invalid_number']])
    // Nothing was sent, so that a repeat is judged again.
    spare.acceptAll()
    expect((await deliver({ code: '111111' })).status).toBe(200)
  })

  test('names a missing route, as a send does', async () => {
    await service.services.messaging.reload(deliveryTo(['US']))
    const { status, error } = await deliver()
    await service.services.messaging.reload(deliveryTo([]))
    expect([status, error.reason]).toEqual([502, 'NO_ROUTE'])
    expect(error.message).toBe(
      'No route leads to this phone number in NL on any channel. Ask the operator to add one.',
    )
  })

  test('ends within 4 seconds if a provider hangs, and does not know', async () => {
    main.setHandler(() => new Promise(() => {}))
    const startedAt = performance.now()
    const { status, data } = await deliver()
    expect([status, data.status]).toEqual([200, 'unknown'])
    expect(performance.now() - startedAt).toBeLessThan(4_500)
  }, 120_000)

  test('records receipts, once and never backwards', async () => {
    const { data } = await deliver()
    for (const status of ['sent', 'delivered', 'delivered', 'undelivered'])
      expect(await receive(status)).toBe(200)
    expect(await listEvents(data.id)).toEqual([
      ['message.sent', phone, null],
      ['message.delivered', phone, null],
    ])
  })

  test('records a receipt that comes before the response to the send', async () => {
    main.setHandler(async (call) => {
      const message = main.acceptMessage(call)
      await receive('undelivered', 30003)
      return main.createdResponse(message)
    })
    const { data } = await deliver()
    expect((await listEvents(data.id)).map(([type]) => type)).toEqual(['message.sent', 'message.undelivered'])
    expect(await readOpened(database(), 'earlyReceipts')).toEqual([])
  })

  test('finds the message of a receipt by message id, otherwise by its own id', async () => {
    const { store, services } = service
    const insert = async (provider: string, messageId: string | null) => {
      const { id: appId, projectId } = application
      const message: RelayedMessage = {
        id: services.newId('msg'),
        developerId: owner.developer.id,
        projectId,
        appId,
        environment: 'live',
        phone,
        country: 'NL',
        clientIp: null,
        channel: 'sms',
        provider,
        messageId,
        status: 'sent',
        outcome: null,
        ...noCost,
        createdAt: service.clock.now(),
      }
      await store.write((tx) => tx.relayedMessages.insert(message))
      return message.id
    }
    const find = (provider: string, messageId: string | null, requestId: string | null) =>
      store.read.relayedMessages.findForReceipt(provider, { messageId, requestId })
    const named = await insert('main', 'SM-same')
    const other = await insert('spare', 'SM-same')
    const unnamed = await insert('main', null)
    expect(await find('main', 'SM-same', unnamed)).toBe(named)
    expect(await find('spare', 'SM-same', null)).toBe(other)
    expect(await find('main', 'SM-late', unnamed)).toBe(unnamed)
    expect(await find('main', null, named)).toBe(named)
    for (const id of [named, other]) expect(await find('main', 'SM-late', id)).toBeUndefined()
    expect(await find('spare', 'SM-late', unnamed)).toBeUndefined()
    expect(await find('main', 'SM-late', null)).toBeUndefined()
  })

  test('tells only the endpoints that name its events', async () => {
    for (const events of [['*'], ['message.sent']])
      await service.request('POST', '/v1/webhooks', {
        as: owner,
        body: { appId: application.id, url: 'https://shop.example/hook', events },
      })
    const { data } = await deliver()
    const payloads = (await readOpened(database(), 'events'))
      .filter(({ requestId }) => requestId === data.id)
      .map(({ payload }) => JSON.parse(String(payload)))
    expect(payloads).toEqual([
      {
        id: expect.stringMatching(/^evt_/),
        type: 'message.sent',
        timestamp: expect.any(String),
        data: {
          messageId: data.id,
          appId: application.id,
          projectId: application.projectId,
          environment: 'live',
          phone,
          country: 'NL',
          status: 'sent',
          channel: 'sms',
          createdAt: expect.any(String),
        },
      },
    ])
    const rows = await readOpened(database(), 'webhookDeliveries')
    expect(rows.filter(({ type }) => type === 'message.sent')).toHaveLength(1)
  })

  test('keeps the message for a day, and forgets it when its phone is erased', async () => {
    const kept = async () => (await readOpened(database(), 'relayedMessages')).map(({ id }) => id)
    const first = await deliver()
    const other = await deliver({ phone: newPhone() })
    expect(await kept()).toEqual(expect.arrayContaining([first.data.id, other.data.id]))
    await erasePhone({ ...service, newId: service.services.newId, keys: testKeys }, phone)
    expect(await kept()).not.toContain(first.data.id)
    expect(await listEvents(first.data.id)).toEqual([['message.sent', 'erased', null]])
    expect(await readEverything(database())).not.toContain(phone)
    service.clock.advance(25 * 3_600_000)
    await createPurger(service)()
    expect(await kept()).toEqual([])
  })

  test('keeps no number that is erased while a provider has the message', async () => {
    main.setHandler(async (call) => {
      await erasePhone({ ...service, newId: service.services.newId, keys: testKeys }, phone)
      return main.createdResponse(main.acceptMessage(call))
    })
    const { status, data } = await deliver({}, { 'idempotency-key': 'erased' })
    expect([status, data.phone]).toEqual([200, phone])
    expect(await listEvents(data.id)).toEqual([['message.sent', 'erased', null]])
    expect(await readEverything(database())).not.toContain(phone)
  })

  describe('sends nothing', () => {
    test('for a test application', async () => {
      const app = await service.createApplication(owner, { environment: 'test' })
      const { status, data } = await deliver({}, {}, app)
      expect([status, data.status]).toEqual([200, 'sent'])
      expect((await deliver({}, {}, app)).data).toEqual(data)
      expect(main.messages).toEqual([])
      expect(await readEverything(database())).not.toContain(code)
    })

    test('to a virtual number', async () => {
      expect((await deliver({ phone: owner.developer.virtualPhone })).status).toBe(200)
      expect(main.messages).toEqual([])
    })

    test('to a denied country', async () => {
      const { status, error } = await deliver({ phone: '+8613800138000' })
      expect([status, error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
      expect(await listEvents(String(error.metadata?.['id']))).toEqual([
        ['message.undelivered', '+8613800138000', 'blocked COUNTRY_NOT_ALLOWED'],
      ])
    })

    test('beyond the rate, which it shares with sends', async () => {
      const app = await service.createApplication(owner)
      const outcomes = []
      for (let i = 0; i < 61; i++) outcomes.push(await deliver({ phone: newPhone() }, {}, app))
      expect(countByOutcome(outcomes)).toEqual({ '200': 60, '429 RATE_LIMITED APP_RATE': 1 })
    })

    test.each(['12', '12345678901', 'abc!', '1234 ', ''])('for the code %p', async (wrong) => {
      expect((await deliver({ code: wrong })).error.code).toBe('INVALID_ARGUMENT')
      expect(main.messages).toEqual([])
    })
  })

  test('the guard compares messages with what is usual in the country, not with verified codes', async () => {
    const app = await service.createApplication(owner)
    // More strangers of one prefix than the guard lets pass without a verified code.
    for (let i = 0; i < 40; i++)
      expect((await deliver({ phone: `+4479111${String(20_000 + i)}` }, {}, app)).status).toBe(200)
    const counts = await relayCounts('GG')
    expect(counts.messages).toBeGreaterThanOrEqual(40)
    expect(counts.others).toEqual([])
  })

  test('the guard counts no message that every provider refused', async () => {
    for (const gateway of [main, spare]) gateway.refuseAll(400, 21211)
    const numbers = Array.from({ length: 5 }, (_, i) => `+49151123450${10 + i}`)
    const refused = await Promise.all(numbers.map((to) => deliver({ phone: to })))
    expect(countByOutcome(refused)).toEqual({ '502 DELIVERY_FAILED INVALID_NUMBER': 5 })
    expect((await relayCounts('DE')).messages).toBe(0)
    for (const gateway of [main, spare]) gateway.acceptAll()
    expect((await deliver({ phone: '+4915112345010' })).status).toBe(200)
    expect((await relayCounts('DE')).messages).toBe(1)
  })

  test('the guard counts no message that has no route', async () => {
    await service.services.messaging.reload(deliveryTo(['US']))
    const responses = [await deliver({ phone: '+393312345677' }), await deliver({ phone: '+393312345678' })]
    await service.services.messaging.reload(deliveryTo([]))
    expect(countByOutcome(responses)).toEqual({ '502 DELIVERY_FAILED NO_ROUTE': 2 })
    expect((await relayCounts('IT')).messages).toBe(0)
  })

  test('the guard counts messages that a rule allows as usual, and not in the allowance', async () => {
    const body = { effect: 'allow', value: 'AT' }
    expect((await service.request('POST', '/v1/guard/rules', { as: owner, body })).status).toBe(201)
    expect((await deliver({ phone: '+436641234567' })).status).toBe(200)
    expect((await relayCounts('AT')).messages).toBe(0)
    const history = (await guardRows()).find(({ subject }) => subject.endsWith(' AT relay history'))
    expect(JSON.parse(history?.windows ?? '{}').hours).toEqual([expect.any(Number), 1])
  })

  const guardRows = async () =>
    (await readOpened(database(), 'guardUsage')) as Array<{ subject: string; windows: string }>

  /** Messages that the guard counts for a country, and subjects other than relays that it counts. */
  async function relayCounts(country: string) {
    const rows = await guardRows()
    const row = rows.find(({ subject }) => subject === `${owner.developer.id} ${country} relay`)
    const [, ...unverified] = (JSON.parse(row?.windows ?? '{}').unverified ?? []) as number[]
    return {
      messages: unverified.reduce((sum, count) => sum + count, 0),
      // PostgreSQL has rows for locks alone.
      others: rows.filter(
        ({ subject, windows }) => windows !== '[]' && !/ relays?( history)?$/.test(subject),
      ),
    }
  }
})
