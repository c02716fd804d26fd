import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { WebhookReceiver } from '../../helpers/webhook-receiver.ts'
import {
  createWebhookWorkerFixture,
  waitUntil,
  type WebhookWorkerFixture,
} from '../../webhooks/worker-fixture.ts'
import { createStore } from '../../../src/store/store.ts'
import { testKeys } from '../../helpers/keys.ts'

let fixture: WebhookWorkerFixture
beforeEach(async () => {
  fixture = await createWebhookWorkerFixture()
})
afterEach(() => fixture.dispose())

const hour = 3_600_000

const getEndpoint = (id: string) => fixture.endpoints.get(fixture.developer, id)
const getOnlyDelivery = async (endpointId: string) => {
  const [row, ...rest] = await fixture.deliveries(endpointId)
  if (!row || rest.length > 0) throw new Error('not one delivery')
  return row
}
const listAttempts = async (endpointId: string) =>
  fixture.store.read.webhookDeliveries.attempts((await getOnlyDelivery(endpointId)).id)

/** Wakes the worker, and waits until the given number of attempts is recorded. */
async function wakeAndWaitForAttempts(worker: { wake(): void }, endpointId: string, count: number) {
  worker.wake()
  await waitUntil(async () => (await getOnlyDelivery(endpointId)).attempts === count)
}

async function createEndpointFor(receiver: Pick<WebhookReceiver, 'url'>) {
  const app = await fixture.createApplication()
  const endpoint = await fixture.createEndpoint(app.id, receiver.url)
  return { app, endpoint }
}

const listLogEntries = async (type: string) =>
  (await fixture.store.read.events.list(fixture.developer.id, { limit: 200 })).filter(
    (entry) => entry.type === type,
  )

describe('a delivery that fails', () => {
  test('is tried eight times on schedule, with the same id and a new signature, and then fails', async () => {
    const receiver = await fixture.startTestReceiver(() => new Response('no', { status: 500 }))
    const { app, endpoint } = await createEndpointFor(receiver)
    const eventId = await fixture.record(app.id)
    const worker = fixture.makeWorker()
    await worker.start()
    const startedAt = fixture.clock.now()
    const steps = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
    for (const [index, seconds] of steps.entries()) {
      await wakeAndWaitForAttempts(worker, endpoint, index + 1)
      const { nextAttemptAt, status } = await getOnlyDelivery(endpoint)
      expect([status, nextAttemptAt]).toEqual(['pending', fixture.clock.now() + seconds * 1000])
      fixture.clock.advance(seconds * 1000 - 1)
      worker.wake()
      await worker.whenIdle()
      expect(receiver.received).toHaveLength(index + 1)
      fixture.clock.advance(1)
    }
    await wakeAndWaitForAttempts(worker, endpoint, 8)
    expect(await getOnlyDelivery(endpoint)).toMatchObject({
      status: 'failed',
      nextAttemptAt: null,
      attempts: 8,
    })
    expect((fixture.clock.now() - startedAt) / hour).toBeCloseTo(27.585, 2)
    fixture.clock.advance(48 * hour)
    worker.wake()
    await worker.whenIdle()
    expect(receiver.received).toHaveLength(8)
    const headers = receiver.received.map((received) => received.headers)
    expect(new Set(headers.map((createEndpointFor) => createEndpointFor['webhook-id']))).toEqual(
      new Set([eventId]),
    )
    expect(new Set(headers.map((createEndpointFor) => createEndpointFor['webhook-signature'])).size).toBe(8)
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  })

  test('has jitter', async () => {
    const receiver = await fixture.startTestReceiver(() => new Response('no', { status: 500 }))
    const { app, endpoint } = await createEndpointFor(receiver)
    await fixture.record(app.id)
    const worker = fixture.makeWorker({ random: () => 0 })
    await worker.start()
    await wakeAndWaitForAttempts(worker, endpoint, 1)
    expect((await getOnlyDelivery(endpoint)).nextAttemptAt).toBe(fixture.clock.now() + 4_000)
  })

  test('stores each attempt with time, result, duration and response', async () => {
    const responses = [
      () => new Response('x'.repeat(9_000), { status: 500 }),
      () => Response.redirect('http://127.0.0.1:9/', 302),
      () => new Response('ok'),
    ]
    const receiver = await fixture.startTestReceiver(() => (responses.shift() ?? (() => new Response()))())
    const { app, endpoint } = await createEndpointFor(receiver)
    await fixture.record(app.id)
    const worker = fixture.makeWorker()
    await worker.start()
    const times: number[] = []
    for (const [index, seconds] of [5, 300, 0].entries()) {
      times.push(fixture.clock.now())
      await wakeAndWaitForAttempts(worker, endpoint, index + 1)
      fixture.clock.advance(seconds * 1000)
    }
    const attempts = await listAttempts(endpoint)
    const durationMs = expect.any(Number)
    const request = expect.objectContaining({ url: receiver.url })
    expect(attempts).toEqual([
      {
        at: times[0] ?? 0,
        statusCode: 500,
        error: 'bad_status',
        request,
        durationMs,
        body: 'x'.repeat(4096),
      },
      { at: times[1] ?? 0, statusCode: 302, error: 'redirect', request, durationMs, body: '' },
      { at: times[2] ?? 0, statusCode: 200, error: null, request, durationMs, body: 'ok' },
    ])
    expect(await getOnlyDelivery(endpoint)).toMatchObject({
      status: 'delivered',
      attempts: 3,
      lastStatusCode: 200,
      lastError: null,
    })
  })

  test.each([
    ['7', 7_000],
    ['1', 5_000],
    ['3600', 10_000],
  ])('waits for the time in Retry-After: %s, within bounds', async (value, ms) => {
    const headers = { 'retry-after': value }
    const receiver = await fixture.startTestReceiver(() => new Response('later', { status: 429, headers }))
    const { app, endpoint } = await createEndpointFor(receiver)
    await fixture.record(app.id)
    const worker = fixture.makeWorker()
    await worker.start()
    await wakeAndWaitForAttempts(worker, endpoint, 1)
    expect((await getOnlyDelivery(endpoint)).nextAttemptAt).toBe(fixture.clock.now() + ms)
  })

  test('is retried without a wake-up when it is due', async () => {
    let failures = 1
    const receiver = await fixture.startTestReceiver(
      () => new Response('', { status: failures-- > 0 ? 500 : 200 }),
    )
    const { app, endpoint } = await createEndpointFor(receiver)
    await fixture.record(app.id)
    // Waits 20 ms on the real clock, without waking the worker.
    const clock = { now: () => Date.now() }
    const store = createStore(fixture.database, { keys: testKeys, clock })
    const realTimeWorker = fixture.makeWorker({ clock, store, random: () => -1.99 })
    await realTimeWorker.start()
    await receiver.waitForCount(2)
    await waitUntil(async () => (await getOnlyDelivery(endpoint)).status === 'delivered')
  })
})

describe('an endpoint that answers 410', () => {
  test('is disabled immediately with a reason, and keeps its pending deliveries until it is enabled', async () => {
    let isGone = true
    const receiver = await fixture.startTestReceiver(() => new Response('', { status: isGone ? 410 : 200 }))
    const { app, endpoint } = await createEndpointFor(receiver)
    await fixture.record(app.id)
    const worker = fixture.makeWorker()
    await worker.start()
    await waitUntil(async () => (await getEndpoint(endpoint)).status === 'disabled')
    expect(await getOnlyDelivery(endpoint)).toMatchObject({
      status: 'failed',
      attempts: 1,
      lastStatusCode: 410,
    })
    expect(await getEndpoint(endpoint)).toMatchObject({ status: 'disabled', disabledReason: 'gone' })
    expect(await listLogEntries('webhook.disabled')).toMatchObject([
      { appId: app.id, requestId: null, phone: null, detail: `${endpoint} gone`, at: fixture.clock.now() },
    ])
    await fixture.record(app.id)
    expect((await fixture.deliveries(endpoint)).map(({ status }) => status)).toEqual(['failed', 'skipped'])
    isGone = false
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'enabled' })
    await fixture.record(app.id)
    worker.wake()
    await receiver.waitForCount(2)
  })
})

test('an endpoint that is moved while its old address answers 410 stays enabled', async () => {
  const answered = Promise.withResolvers<Response>()
  const old = await fixture.startTestReceiver(() => answered.promise)
  const { app, endpoint } = await createEndpointFor(old)
  await fixture.record(app.id)
  const worker = fixture.makeWorker()
  await worker.start()
  await old.waitForCount(1)
  const receiver = await fixture.startTestReceiver(() => new Response())
  await fixture.endpoints.update(fixture.developer, endpoint, { url: receiver.url })
  answered.resolve(new Response('', { status: 410 }))
  await waitUntil(async () => (await getOnlyDelivery(endpoint)).status === 'failed')
  await worker.whenIdle()
  expect(await getEndpoint(endpoint)).toMatchObject({ status: 'enabled', disabledReason: null })
  await fixture.record(app.id)
  worker.wake()
  await receiver.waitForCount(1)
})

describe('an endpoint that always fails', () => {
  test('is disabled once after 120 hours, and resumes its pending deliveries when it is enabled', async () => {
    let failing = true
    const receiver = await fixture.startTestReceiver(() => new Response('', { status: failing ? 500 : 200 }))
    const { app, endpoint } = await createEndpointFor(receiver)
    const worker = fixture.makeWorker()
    await worker.start()
    await fixture.record(app.id)
    await wakeAndWaitForAttempts(worker, endpoint, 1)
    const since = fixture.clock.now()
    expect(await getEndpoint(endpoint)).toMatchObject({ status: 'enabled', failingSince: since })

    fixture.clock.set(since + 120 * hour - 1)
    await wakeAndWaitForAttempts(worker, endpoint, 2)
    expect(await getEndpoint(endpoint)).toMatchObject({ status: 'enabled', failingSince: since })

    fixture.clock.advance(300_001)
    worker.wake()
    await waitUntil(async () => (await getEndpoint(endpoint)).status === 'disabled')
    await worker.whenIdle()
    expect(await getEndpoint(endpoint)).toMatchObject({ disabledReason: 'failing', failingSince: since })
    expect(await listLogEntries('webhook.disabled')).toMatchObject([{ detail: `${endpoint} failing` }])
    fixture.clock.advance(hour)
    worker.wake()
    await worker.whenIdle()
    expect(receiver.received).toHaveLength(3)
    expect(await getOnlyDelivery(endpoint)).toMatchObject({ status: 'pending', attempts: 3 })

    failing = false
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'enabled' })
    await wakeAndWaitForAttempts(worker, endpoint, 4)
    expect(await getOnlyDelivery(endpoint)).toMatchObject({ status: 'delivered' })
    expect(await getEndpoint(endpoint)).toMatchObject({
      status: 'enabled',
      disabledReason: null,
      failingSince: null,
      lastDeliveryAt: fixture.clock.now(),
    })
  })

  test('is not disabled if it succeeded once in between', async () => {
    let failing = true
    const receiver = await fixture.startTestReceiver(() => new Response('', { status: failing ? 500 : 200 }))
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, receiver.url)
    const worker = fixture.makeWorker()
    await worker.start()
    const send = async (fails: boolean) => {
      failing = fails
      const before = receiver.received.length
      await fixture.record(app.id)
      worker.wake()
      await receiver.waitForCount(before + 1)
      await worker.whenIdle()
    }
    await send(true)
    fixture.clock.advance(119 * hour)
    await send(false)
    fixture.clock.advance(2 * hour)
    await send(true)
    expect(await getEndpoint(endpoint)).toMatchObject({
      status: 'enabled',
      failingSince: fixture.clock.now(),
    })
    expect(await listLogEntries('webhook.disabled')).toEqual([])
  })
})
