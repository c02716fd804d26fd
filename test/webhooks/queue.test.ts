import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import type { Stores } from '../../src/domain/store/store.ts'
import type { SendWebhook } from '../../src/domain/model/webhook-delivery.ts'
import { createGate } from '../helpers/webhook-receiver.ts'
import { createWebhookWorkerFixture, waitUntil, type WebhookWorkerFixture } from './worker-fixture.ts'

let fixture: WebhookWorkerFixture
beforeEach(async () => {
  fixture = await createWebhookWorkerFixture()
})
afterEach(() => fixture.dispose())

/** Starts a worker that nothing wakes but the deliveries that are pushed to it, and that has found no backlog. */
async function startQueueWorker(send?: SendWebhook) {
  const worker = fixture.makeWorker({ takesQueue: true, ...(send && { send }) })
  await worker.start()
  await waitUntil(() => worker.offerLease(0, someUse) !== undefined)
  await worker.whenIdle()
  return worker
}

async function createEndpointAt(url: string) {
  const app = await fixture.createApplication()
  return { app, endpoint: await fixture.createEndpoint(app.id, url) }
}

/** Never answers, as the worker of a process that died. */
const hang: SendWebhook = (_message, signal) =>
  new Promise((resolve) => signal?.addEventListener('abort', () => resolve(okResult)))

/** Inserts a delivery outside of an event; it has no payload, so it cannot be loaded again. */
const insertDelivery = async (
  tx: Pick<Stores, 'webhookOutbox'>,
  endpointId: string,
  now: number,
  id = 'dlv_inserted',
) =>
  tx.webhookOutbox.insert([
    {
      id,
      developerId: fixture.developer.id,
      appId: null,
      endpointId,
      eventSeq: 1,
      type: 'otp.sent',
      now,
      payload: { id: 'evt_inserted', body: '{}' },
    },
  ])

const someUse = { developerId: 'dev_other', isTest: false }
const okResult = { statusCode: 200, error: null, request: null, durationMs: 1, body: '', retryAfterMs: null }

describe('a delivery that is leased when it is inserted', () => {
  test('is sent after the commit, without a claim, and recorded like any other', async () => {
    const receiver = await fixture.startTestReceiver()
    const { app, endpoint } = await createEndpointAt(receiver.url)
    const worker = await startQueueWorker()
    const eventId = await fixture.record(app.id)
    await receiver.waitForCount(1)
    await worker.whenIdle()
    const [{ body, headers } = { body: '', headers: {} as Record<string, string> }] = receiver.received
    expect(new Webhook(app.webhookSecret).sign(eventId, new Date(fixture.clock.now()), body)).toBe(
      headers['webhook-signature'] ?? '',
    )
    expect(JSON.parse(body)).toMatchObject({ id: eventId, type: 'otp.verified' })
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      { status: 'delivered', attempts: 1, claims: 1, leaseOwner: null, nextAttemptAt: null },
    ])
    expect(await fixture.store.read.webhookOutbox.nextDueAt()).toBeUndefined()
  })

  test('is not sent if its transaction is rolled back', async () => {
    const sent: string[] = []
    const { app, endpoint } = await createEndpointAt('http://127.0.0.1:9/')
    const worker = await startQueueWorker(async ({ id }) => {
      sent.push(id)
      return okResult
    })
    const { store } = fixture
    // Both are in one batch, which runs again without the one that fails.
    const failing = store.write(async (tx) => {
      await insertDelivery(tx, endpoint, fixture.clock.now())
      throw new Error('rolled back')
    })
    const [outcome, eventId] = await Promise.allSettled([failing, fixture.record(app.id)])
    expect(outcome.status).toBe('rejected')
    await waitUntil(async () => (await fixture.deliveries(endpoint))[0]?.status === 'delivered')
    await worker.whenIdle()
    expect(eventId).toMatchObject({ value: sent[0] })
    expect(sent).toHaveLength(1)
    expect(await fixture.deliveries(endpoint)).toHaveLength(1)
  })

  test('is sent once if a call of its batch cannot be written', async () => {
    const sent: string[] = []
    const { app, endpoint } = await createEndpointAt('http://127.0.0.1:9/')
    const worker = await startQueueWorker(async ({ id }) => {
      sent.push(id)
      return okResult
    })
    const now = fixture.clock.now()
    const entry = { developerId: fixture.developer.id, appId: app.id, requestId: null, phone: null }
    const delivery = { id: 'dlv_twice', endpointId: endpoint }
    // Two deliveries with one id: the calls of the batch run again, each in a transaction of its own.
    const failing = fixture.store.decide({
      preload: { first: () => ({}) },
      decide: () => ({
        result: undefined,
        changes: [
          {
            kind: 'event',
            event: {
              entry: { ...entry, type: 'otp.sent', status: null, detail: null, at: now },
              deliveries: [delivery, delivery],
              toPayload: () => '{}',
            },
          },
        ],
      }),
    })
    const [eventId, outcome] = await Promise.allSettled([fixture.record(app.id), failing])
    expect(outcome.status).toBe('rejected')
    await waitUntil(async () => (await fixture.deliveries(endpoint))[0]?.status === 'delivered')
    await worker.whenIdle()
    expect(sent).toEqual([eventId.status === 'fulfilled' ? eventId.value : ''])
    expect(await fixture.deliveries(endpoint)).toHaveLength(1)
  })

  test('is found in the outbox if its process dies before it sends', async () => {
    const receiver = await fixture.startTestReceiver()
    const { app, endpoint } = await createEndpointAt(receiver.url)
    await startQueueWorker(hang)
    await fixture.record(app.id)
    expect(await fixture.deliveries(endpoint)).toMatchObject([{ claims: 1, status: 'pending' }])
    // Another node waits for the lease to expire.
    const other = fixture.makeWorker({ ownsAllLeases: false })
    await other.start()
    await other.whenIdle()
    expect(receiver.received).toHaveLength(0)
    fixture.clock.advance(30_000)
    other.wake()
    await receiver.waitForCount(1)
    await other.whenIdle()
    expect(await fixture.deliveries(endpoint)).toMatchObject([{ claims: 2, status: 'delivered' }])
  })

  test('is found at the next start, which releases all leases', async () => {
    const receiver = await fixture.startTestReceiver()
    const { app, endpoint } = await createEndpointAt(receiver.url)
    await startQueueWorker(hang)
    await fixture.record(app.id)
    const restarted = fixture.makeWorker()
    await restarted.start()
    await receiver.waitForCount(1)
    await restarted.whenIdle()
    expect(await fixture.deliveries(endpoint)).toMatchObject([{ claims: 2, status: 'delivered' }])
  })

  test('is signed with the secret at the time of sending', async () => {
    const receiver = await fixture.startTestReceiver()
    const { app, endpoint } = await createEndpointAt(receiver.url)
    const worker = await startQueueWorker()
    const now = fixture.clock.now()
    // Both are in one batch, in this order.
    const [, { value }] = await Promise.all([
      fixture.store.write((tx) => insertDelivery(tx, endpoint, now)),
      fixture.applications.rotate(fixture.developer, app.id, 'webhook_secret'),
    ])
    await receiver.waitForCount(1)
    await worker.whenIdle()
    expect(receiver.received[0]?.headers['webhook-signature']).toBe(
      new Webhook(value).sign('evt_inserted', new Date(now), '{}'),
    )
  })

  test('is released unsent if its endpoint was disabled or deleted meanwhile', async () => {
    const receiver = await fixture.startTestReceiver()
    const { app, endpoint } = await createEndpointAt(receiver.url)
    const deleted = await fixture.createEndpoint(app.id, receiver.url)
    const worker = await startQueueWorker()
    const now = fixture.clock.now()
    await Promise.all([
      fixture.store.write((tx) => insertDelivery(tx, endpoint, now)),
      fixture.store.write((tx) => insertDelivery(tx, deleted, now, 'dlv_deleted')),
      fixture.endpoints.update(fixture.developer, endpoint, { status: 'disabled' }),
      // The service deletes the deliveries first, in transactions before this one.
      fixture.store.write((tx) => tx.webhookEndpoints.delete(fixture.developer.id, deleted)),
    ])
    await worker.whenIdle()
    expect(receiver.received).toHaveLength(0)
    const { webhookDeliveries } = fixture.database.tables
    expect(await fixture.database.read.select().from(webhookDeliveries)).toMatchObject([
      { endpointId: endpoint, status: 'pending', attempts: 0, claims: 1, leaseOwner: null },
    ])
  })
})

describe('the queue', () => {
  test('holds at most two deliveries of an endpoint, and sends the others as these end', async () => {
    let now = 0
    let most = 0
    const receiver = await fixture.startTestReceiver(async () => {
      most = Math.max(most, ++now)
      await new Promise(setImmediate)
      now--
      return new Response('ok')
    })
    const { app, endpoint } = await createEndpointAt(receiver.url)
    const worker = await startQueueWorker()
    const events = await Promise.all(Array.from({ length: 40 }, () => fixture.record(app.id)))
    await receiver.waitForCount(40)
    await worker.whenIdle()
    expect(most).toBe(2)
    expect(receiver.received.map(({ headers }) => headers['webhook-id']).toSorted()).toEqual(
      events.toSorted(),
    )
    const rows = await fixture.deliveries(endpoint)
    expect(
      rows.every(({ status, attempts, claims }) => status === 'delivered' && attempts + claims === 2),
    ).toBe(true)
  })

  test('takes nothing before the worker starts, beyond the part of a developer, and after it stops', async () => {
    const gate = createGate()
    let started = 0
    const { app } = await createEndpointAt('http://127.0.0.1:9/')
    for (let i = 1; i < 40; i++) await fixture.createEndpoint(app.id, `http://127.0.0.1:9/${i}`)
    const other = await fixture.createApplication('live', await fixture.makeDeveloper())
    await fixture.createEndpoint(other.id, 'http://127.0.0.1:9/other')
    const worker = fixture.makeWorker({
      takesQueue: true,
      send: async () => {
        started++
        await gate.opened
        return okResult
      },
    })
    const offers = () =>
      [fixture.developer.id, 'dev_other'].map(
        (developerId) => worker.offerLease(0, { developerId, isTest: false }) !== undefined,
      )
    expect(offers()).toEqual([false, false])
    await worker.start()
    await waitUntil(() => offers().includes(true))
    await fixture.record(app.id)
    await waitUntil(() => started === 40)
    expect(offers()).toEqual([true, true])
    // All 80 are offered a lease at once; 30 are released.
    await fixture.record(app.id)
    await waitUntil(() => started === 50)
    expect(offers()).toEqual([false, true])
    await fixture.record(other.id)
    await waitUntil(() => started === 51)
    gate.open()
    await waitUntil(() => started === 81)
    await worker.stop(5_000)
    expect(offers()).toEqual([false, false])
    const rows = await fixture.database.read.select().from(fixture.database.tables.webhookDeliveries)
    expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 81 }, () => 'delivered'))
  })

  test('gives back what it gets when the worker has stopped', async () => {
    const { endpoint } = await createEndpointAt('http://127.0.0.1:9/')
    const sent: string[] = []
    const worker = await startQueueWorker(async ({ id }) => {
      sent.push(id)
      return okResult
    })
    let stopped: Promise<void> | undefined
    await fixture.store.write(async (tx) => {
      await insertDelivery(tx, endpoint, fixture.clock.now())
      stopped = worker.stop(5_000)
    })
    await stopped
    await worker.whenIdle()
    expect(sent).toEqual([])
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      { status: 'pending', attempts: 0, claims: 1, leaseOwner: null, nextAttemptAt: fixture.clock.now() },
    ])
  })

  test('gives back what would not be sent before its lease expires', async () => {
    const { endpoint } = await createEndpointAt('http://127.0.0.1:9/')
    const worker = await startQueueWorker(async () => ({ ...okResult, statusCode: 500, error: 'bad_status' }))
    const now = fixture.clock.now()
    await fixture.store.write((tx) => insertDelivery(tx, endpoint, now - 15_000))
    await waitUntil(async () => (await fixture.deliveries(endpoint))[0]?.claims === 2)
    await worker.stop(5_000)
    expect(await fixture.store.read.webhookDeliveries.attempts('dlv_inserted')).toEqual([])
  })
})

test('a result that cannot be recorded does not block the others', async () => {
  const { app, endpoint } = await createEndpointAt('http://127.0.0.1:9/')
  const other = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/other')
  const { store } = fixture
  let isBroken = true
  const failingStore: typeof store = {
    ...store,
    write: (body) =>
      store.write((tx) =>
        body({
          ...tx,
          webhookOutbox: {
            ...tx.webhookOutbox,
            finish: (outcome) => {
              if (outcome.endpointId !== endpoint || !isBroken) return tx.webhookOutbox.finish(outcome)
              throw new Error('this one fails')
            },
          },
        }),
      ),
  }
  const worker = fixture.makeWorker({ store: failingStore, send: async () => okResult, pollMs: 5 })
  await fixture.record(app.id)
  await worker.start()
  await waitUntil(async () => (await fixture.deliveries(other))[0]?.status === 'delivered')
  expect(await fixture.deliveries(endpoint)).toMatchObject([{ status: 'pending', attempts: 0 }])
  isBroken = false
  await waitUntil(async () => (await fixture.deliveries(endpoint))[0]?.status === 'delivered')
  expect(fixture.takeErrors().length).toBeGreaterThan(1)
})
