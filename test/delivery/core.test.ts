import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { DeliverySettings, Route } from '../../src/domain/model/delivery.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { startGateway, createTwilioSettings, type Gateway } from './gateway.ts'
import { unlimitedPlans } from '../helpers/plans.ts'

const phone = '+31612345678'
type SentOtp = { requestId: string; status: string }
type OtpRequestState = {
  status: string
  failureReason: string | null
  deliveryStatus: string | null
  provider: string | null
  channel: string
}

let mainGateway: Gateway
let spareGateway: Gateway
let service: TestService
let application: TestApplication
let lines: Array<{ text: string; fields: Record<string, unknown> }>

beforeEach(() => {
  mainGateway = startGateway()
  spareGateway = startGateway()
  lines = []
})
afterEach(async () => {
  await service.dispose()
  await mainGateway.stop()
  await spareGateway.stop()
})

async function start(settings: Partial<DeliverySettings> = {}, dispatchMs = 5_000) {
  service = await createTestService({
    plans: unlimitedPlans,
    delivery: {
      providers: [
        createTwilioSettings('main', mainGateway.url),
        createTwilioSettings('spare', spareGateway.url),
      ],
      routes: [],
      ...settings,
    },
    messaging: { dispatchMs, pollMs: 3_600_000 },
    report: (_, text, fields) => void lines.push({ text, fields }),
  })
  application = await service.createApplication(await service.createDeveloper())
}

const send = (body: object = {}, headers: Record<string, string> = {}) =>
  service.request<SentOtp>('POST', '/v1/otp/send', { as: application, body: { phone, ...body }, headers })
const resend = (requestId: string) =>
  service.request<SentOtp>('POST', '/v1/otp/resend', { as: application, body: { requestId } })
const getRequest = async (requestId: string) =>
  (await service.request<OtpRequestState>('GET', `/v1/otp/${requestId}`, { as: application })).data
const verify = (requestId: string, code: string) =>
  service.request('POST', '/v1/otp/verify', { as: application, body: { requestId, code } })
const listEvents = async (requestId: string) => {
  const { events } = service.database.tables
  const rows = await service.database.read.select().from(events)
  return rows.filter((row) => row.requestId === requestId).map(({ type, detail }) => [type, detail])
}
const route = (changes: Partial<Route>): Route => ({
  channel: 'sms',
  countries: [],
  prefixes: [],
  applications: [],
  providers: ['main', 'spare'],
  ...changes,
})

describe('a send', () => {
  test('goes to the first provider, within the call, and its code verifies', async () => {
    await start()
    const { status, data } = await send()
    expect(status).toBe(201)
    expect(mainGateway.messages).toMatchObject([{ to: phone }])
    expect(spareGateway.messages).toEqual([])
    expect(await getRequest(data.requestId)).toMatchObject({
      status: 'pending',
      deliveryStatus: 'sent',
      provider: 'main',
    })
    expect((await verify(data.requestId, mainGateway.messages[0]?.code ?? '')).status).toBe(200)
  })

  test('passes the remaining lifetime of the code to the provider', async () => {
    await start()
    await send({ ttlSeconds: 120 })
    expect(new URLSearchParams(mainGateway.takeCall().body).get('ValidityPeriod')).toBe('120')
  })

  test('of a test application and to a virtual number stays in the inbox', async () => {
    await start()
    const developer = await service.createDeveloper()
    const testing = await service.createApplication(developer, { environment: 'test' })
    const sent = await service.request('POST', '/v1/otp/send', { as: testing, body: { phone } })
    const virtual = developer.developer.virtualPhone
    expect([sent.status, (await send({ phone: virtual })).status]).toEqual([201, 201])
    expect(mainGateway.calls).toEqual([])
    expect((await service.request<object[]>('GET', '/v1/inbox', { as: developer })).data).toHaveLength(2)
  })

  test('on a route to the inbox stays there', async () => {
    await start({ routes: [route({ countries: ['NL'], providers: ['inbox'] }), route({})] })
    const { data } = await send()
    expect([(await send({ phone: '+33612345678' })).status, mainGateway.messages.length]).toEqual([201, 1])
    expect(await getRequest(data.requestId)).toMatchObject({ provider: 'inbox', deliveryStatus: null })
  })

  test('that one provider refuses permanently goes to the next at once, and never to the first again', async () => {
    await start()
    mainGateway.refuseAll(401, 20003)
    const { status, data } = await send()
    expect([status, mainGateway.calls.length, spareGateway.messages.length]).toEqual([201, 1, 1])
    expect(await getRequest(data.requestId)).toMatchObject({ deliveryStatus: 'sent', provider: 'spare' })
  })

  test('to an impossible number is refused, with the request id and a reason that names no provider', async () => {
    await start()
    mainGateway.refuseAll(400, 21211)
    const { status, error } = await send()
    expect(status).toBe(502)
    expect(error).toMatchObject({ code: 'DELIVERY_FAILED', reason: 'INVALID_NUMBER' })
    expect(spareGateway.calls).toEqual([])
    const requestId = String(error.metadata?.['requestId'])
    expect(await getRequest(requestId)).toMatchObject({
      status: 'failed',
      failureReason: 'delivery_failed',
      deliveryStatus: 'undelivered',
    })
    expect(await listEvents(requestId)).toEqual([
      ['otp.sent', null],
      ['otp.undelivered', 'invalid_number'],
      ['otp.failed', 'delivery_failed'],
    ])
  })

  test('that all providers refuse permanently fails, without details about accounts', async () => {
    await start()
    mainGateway.refuseAll(401, 20003)
    spareGateway.refuseAll(402, 0)
    const { status, error } = await send()
    expect([status, error.reason]).toEqual([502, 'PROVIDERS_REFUSED'])
  })

  test('that no provider accepts now is sent in the background, with the same code', async () => {
    await start()
    mainGateway.refuseAll(500, 0)
    spareGateway.refuseAll(503, 0)
    const { status, data } = await send()
    expect(status).toBe(201)
    expect(await getRequest(data.requestId)).toMatchObject({
      status: 'pending',
      deliveryStatus: 'queued',
      provider: null,
    })
    await service.services.messaging.sendDue()
    expect(mainGateway.calls).toHaveLength(1)
    mainGateway.acceptAll()
    service.clock.advance(2_000)
    await service.services.messaging.sendDue()
    expect(mainGateway.messages).toHaveLength(1)
    expect(await getRequest(data.requestId)).toMatchObject({ deliveryStatus: 'sent', provider: 'main' })
    expect((await verify(data.requestId, mainGateway.messages[0]?.code ?? '')).status).toBe(200)
  })

  test('that no provider accepts while the code is valid fails before it expires', async () => {
    await start()
    mainGateway.refuseAll(500, 0)
    spareGateway.refuseAll(503, 0)
    const { data } = await send({ ttlSeconds: 60 })
    for (let second = 0; second < 60; second++) {
      service.clock.advance(1_000)
      await service.services.messaging.sendDue()
    }
    expect(await getRequest(data.requestId)).toMatchObject({
      status: 'failed',
      failureReason: 'delivery_failed',
    })
    expect(mainGateway.messages.concat(spareGateway.messages)).toEqual([])
  })

  test('that may have been handed over goes to no other provider', async () => {
    await start({}, 2_000)
    const gate = Promise.withResolvers<Response>()
    mainGateway.setHandler((call) => {
      mainGateway.acceptMessage(call)
      return gate.promise
    })
    const { status, data } = await send()
    gate.resolve(new Response())
    service.clock.advance(60_000)
    await service.services.messaging.sendDue()
    expect([status, mainGateway.messages.length, spareGateway.calls.length]).toEqual([201, 1, 0])
    expect(await getRequest(data.requestId)).toMatchObject({
      status: 'pending',
      deliveryStatus: 'unknown',
      provider: 'main',
    })
    expect((await verify(data.requestId, mainGateway.messages[0]?.code ?? '')).status).toBe(200)
  })

  test('without any provider for it fails at once', async () => {
    await start({ routes: [route({ countries: ['US'] })] })
    const { status, error } = await send({ channel: 'whatsapp' })
    expect([status, error.reason, mainGateway.calls.length]).toEqual([502, 'NO_ROUTE', 0])
    expect(error.message).toBe(
      'No route for whatsapp leads to this phone number in NL. Choose another channel, or ask the operator to add a route.',
    )
    expect(await listEvents(String(error.metadata?.['requestId']))).toContainEqual([
      'otp.undelivered',
      'no_route',
    ])
  })

  test('leaves no code and no phone in the log', async () => {
    await start()
    await send()
    mainGateway.refuseAll(400, 21211)
    await send()
    const text = JSON.stringify(lines)
    expect(lines.map((line) => line.text)).toEqual(['message accepted', 'message refused'])
    expect(text).not.toContain(phone)
    expect(text).not.toContain(mainGateway.messages[0]?.code ?? '?')
  })
})

describe('an idempotency key', () => {
  const key = { 'idempotency-key': 'one' }

  test('is in progress while the first call sends, and returns its response afterwards', async () => {
    await start()
    const arrived = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    mainGateway.setHandler(async (call) => {
      arrived.resolve()
      await gate.promise
      return mainGateway.createdResponse(mainGateway.acceptMessage(call))
    })
    const first = send({}, key)
    await arrived.promise
    const concurrentResponse = await send({}, key)
    expect([concurrentResponse.status, concurrentResponse.error.reason]).toEqual([
      409,
      'IDEMPOTENCY_IN_PROGRESS',
    ])
    expect(concurrentResponse.headers.get('retry-after')).toBe('1')
    gate.resolve()
    const { data } = await first
    const retryResponse = await send({}, key)
    expect(retryResponse.data).toEqual(data)
    expect(retryResponse.headers.get('idempotency-replayed')).toBe('true')
    expect(mainGateway.messages).toHaveLength(1)
  })

  test('replays a refusal', async () => {
    await start()
    mainGateway.refuseAll(400, 21211)
    const first = await send({}, key)
    mainGateway.acceptAll()
    const retryResponse = await send({}, key)
    expect(retryResponse.status).toBe(502)
    expect(retryResponse.error).toMatchObject({
      reason: 'INVALID_NUMBER',
      metadata: first.error.metadata ?? {},
    })
    expect(retryResponse.headers.get('idempotency-replayed')).toBe('true')
    expect(mainGateway.messages).toEqual([])
  })

  test('of a crashed process is answered from the stored state of its request', async () => {
    await start()
    const gate = Promise.withResolvers<Response>()
    const arrived = Promise.withResolvers<void>()
    mainGateway.setHandler(() => {
      arrived.resolve()
      return gate.promise
    })
    const lost = send({}, key)
    await arrived.promise
    service.clock.advance(20_000)
    const retryResponse = await send({}, key)
    expect(retryResponse.status).toBe(201)
    gate.resolve(new Response(null, { status: 500 }))
    expect((await lost).data).toEqual(retryResponse.data)
  })
})

describe('a resend', () => {
  test('sends the same code', async () => {
    await start()
    const { data } = await send()
    service.clock.advance(30_000)
    expect((await resend(data.requestId)).status).toBe(200)
    expect(new Set(mainGateway.messages.map(({ code }) => code)).size).toBe(1)
    expect(mainGateway.messages).toHaveLength(2)
  })

  test('that is refused leaves the request usable with its first message', async () => {
    await start()
    const { data } = await send()
    service.clock.advance(30_000)
    mainGateway.refuseAll(400, 21211)
    expect((await resend(data.requestId)).status).toBe(502)
    expect(await getRequest(data.requestId)).toMatchObject({
      status: 'pending',
      deliveryStatus: 'undelivered',
    })
    expect((await verify(data.requestId, mainGateway.messages[0]?.code ?? '')).status).toBe(200)
  })
})

describe('a provider', () => {
  test('that fails five times in a row has its circuit opened, and is tried again with one message', async () => {
    await start()
    mainGateway.refuseAll(500, 0)
    for (let count = 0; count < 7; count++) await send()
    expect([mainGateway.calls.length, spareGateway.messages.length]).toEqual([5, 7])
    expect(lines.map(({ text }) => text)).toContain('provider circuit opened')
    service.clock.advance(5_000)
    mainGateway.acceptAll()
    await send()
    expect([mainGateway.messages.length, spareGateway.messages.length]).toEqual([1, 7])
    expect(lines.map(({ text }) => text)).toContain('provider circuit closed')
    await service.services.messaging.stop(0)
    const audit = await service.store.read.audit.list(undefined, { limit: 2 })
    expect(audit.map(({ action, targetName, detail }) => [action, targetName, detail])).toEqual([
      ['provider.circuit_closed', 'main', null],
      ['provider.circuit_opened', 'main', 'provider_down'],
    ])
  })

  test('that asks for a pause is not tried during it', async () => {
    await start()
    mainGateway.refuseAll(429, 20429, { 'retry-after': '30' })
    await send()
    mainGateway.acceptAll()
    service.clock.advance(29_000)
    await send()
    expect(mainGateway.messages).toHaveLength(0)
    service.clock.advance(1_000)
    await send()
    expect([mainGateway.messages.length, spareGateway.messages.length]).toEqual([1, 2])
  })

  test('that is unreachable has its circuit opened too, even if it is the only one', async () => {
    await start({ providers: [createTwilioSettings('main', `http://127.0.0.1:${await findUnusedPort()}`)] })
    for (let count = 0; count < 6; count++) expect((await send()).status).toBe(201)
    expect(lines.filter(({ text }) => text === 'message refused')).toHaveLength(5)
  })

  test('is added and removed by new settings while messages are in flight', async () => {
    await start()
    const arrived = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    mainGateway.setHandler(async (call) => {
      arrived.resolve()
      await gate.promise
      return mainGateway.createdResponse(mainGateway.acceptMessage(call))
    })
    const first = send()
    await arrived.promise
    await service.services.messaging.reload({
      providers: [createTwilioSettings('spare', spareGateway.url)],
      routes: [],
    })
    await send()
    gate.resolve()
    expect(await getRequest((await first).data.requestId)).toMatchObject({
      deliveryStatus: 'sent',
      provider: 'main',
    })
    expect([mainGateway.messages.length, spareGateway.messages.length]).toEqual([1, 1])
  })
})

test('a provider that hangs gets 200 messages at a time and delays no others', async () => {
  await start({
    routes: [route({ prefixes: ['+31'], providers: ['main'] }), route({ providers: ['spare'] })],
  })
  const gate = Promise.withResolvers<void>()
  const full = Promise.withResolvers<void>()
  mainGateway.setHandler(async () => {
    if (mainGateway.calls.length === 200) full.resolve()
    await gate.promise
    return new Response(null, { status: 500 })
  })
  const hanging = Array.from({ length: 200 }, () => send())
  await full.promise
  // A message beyond the limit does not wait for capacity.
  expect((await send()).status).toBe(201)
  expect((await send({ phone: '+33612345678' })).status).toBe(201)
  expect([mainGateway.calls.length, spareGateway.messages.length]).toEqual([200, 1])
  gate.resolve()
  await Promise.all(hanging)
})
