import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import type { Store } from '../../src/domain/store/store.ts'
import { createGate, startReceiver } from '../helpers/webhook-receiver.ts'
import {
  createWebhookWorkerFixture,
  type WebhookWorkerFixture,
  type WorkerOptions,
} from './worker-fixture.ts'

let fixture: WebhookWorkerFixture
beforeEach(async () => {
  fixture = await createWebhookWorkerFixture()
})
afterEach(() => fixture.dispose())

const startTestReceiver = (...receiverOptions: Parameters<typeof startReceiver>) =>
  fixture.startTestReceiver(...receiverOptions)
const makeWorker = (options: WorkerOptions = {}) => fixture.makeWorker(options)

const listStatuses = async (endpointId: string) =>
  (await fixture.deliveries(endpointId)).map(({ status }) => status)

describe('the worker', () => {
  test('sends an event once to each endpoint, signed, with the recorded body', async () => {
    const [one, two] = [await startTestReceiver(), await startTestReceiver()]
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, one.url)
    await fixture.createEndpoint(app.id, two.url)
    const worker = makeWorker()
    await worker.start()
    const eventId = await fixture.record(app.id)
    worker.wake()
    await Promise.all([one.waitForCount(1), two.waitForCount(1)])
    await worker.stop(5_000)
    for (const { received } of [one, two]) {
      expect(received).toHaveLength(1)
      expect(received[0]?.headers['webhook-id']).toBe(eventId)
    }
    const { body = '', headers = {} } = one.received[0] ?? {}
    // The stock library compares with the real time; the worker signs with the clock of the test.
    expect(headers['webhook-timestamp']).toBe(String(fixture.clock.now() / 1000))
    expect(headers['webhook-signature']).toBe(
      new Webhook(app.webhookSecret).sign(eventId, new Date(fixture.clock.now()), body),
    )
    expect(JSON.parse(body)).toMatchObject({ id: eventId, type: 'otp.verified', data: { appId: app.id } })
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      {
        status: 'delivered',
        attempts: 1,
        lastStatusCode: 200,
        lastError: null,
        deliveredAt: fixture.clock.now(),
        nextAttemptAt: null,
        leaseOwner: null,
      },
    ])
  })

  test('records a failure with its status or cause, and retries later', async () => {
    const receiver = await startTestReceiver(() => new Response('no', { status: 503 }))
    const app = await fixture.createApplication()
    const refused = await fixture.createEndpoint(app.id, receiver.url)
    const unknown = await fixture.createEndpoint(app.id, 'https://receiver.invalid/')
    await fixture.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.waitForCount(1)
    await worker.stop(5_000)
    const pendingState = { status: 'pending', attempts: 1, nextAttemptAt: fixture.clock.now() + 5_000 }
    expect(await fixture.deliveries(refused)).toMatchObject([
      { ...pendingState, lastStatusCode: 503, lastError: 'bad_status', deliveredAt: null },
    ])
    expect(await fixture.deliveries(unknown)).toMatchObject([
      { ...pendingState, lastStatusCode: null, lastError: 'dns' },
    ])
    expect(receiver.received).toHaveLength(1)
  })

  test('of one of several nodes records a result without a transaction that claims nothing', async () => {
    const receiver = await startTestReceiver()
    const app = await fixture.createApplication()
    await fixture.createEndpoint(app.id, receiver.url)
    await fixture.record(app.id)
    let transactions = 0
    const store: Store = {
      ...fixture.store,
      write(body, options) {
        transactions++
        return fixture.store.write(body, options)
      },
    }
    const worker = makeWorker({ store, ownsAllLeases: false })
    await worker.start()
    await receiver.waitForCount(1)
    await worker.whenIdle()
    expect(transactions).toBe(2)
  })

  test('finds deliveries without a wake at the next poll', async () => {
    const receiver = await startTestReceiver()
    const app = await fixture.createApplication()
    await fixture.createEndpoint(app.id, receiver.url)
    await makeWorker({ pollMs: 5 }).start()
    await fixture.record(app.id)
    await receiver.waitForCount(1)
  })

  test('has at most two hundred in flight in total, and a quarter for a developer who is alone', async () => {
    const started: string[] = []
    const gate = createGate()
    const worker = makeWorker({
      send: async ({ id }) => {
        started.push(id)
        await gate.opened
        return { statusCode: 200, error: null, request: null, durationMs: 1, body: '', retryAfterMs: null }
      },
    })
    await worker.start()
    const developers = [fixture.developer]
    while (developers.length < 5) developers.push(await fixture.makeDeveloper())
    // All hang: with n developers each has 200 / (3 + n), and none waits for another.
    const expected = [50, 50 + 38, 50 + 38 + 28, 50 + 38 + 28 + 21, 50 + 38 + 28 + 21 + 16]
    for (const [index, developer] of developers.entries()) {
      const app = await fixture.createApplication('live', developer)
      for (let i = 0; i < 30; i++) await fixture.createEndpoint(app.id, `http://127.0.0.1:9/${i}`)
      await fixture.record(app.id)
      await fixture.record(app.id)
      worker.wake()
      while (started.length < (expected[index] ?? 0)) await new Promise(setImmediate)
      for (let turn = 0; turn < 50; turn++) {
        worker.wake()
        await new Promise(setImmediate)
      }
      expect(started).toHaveLength(expected[index] ?? 0)
    }
    gate.open()
    while (started.length < 300) await new Promise(setImmediate)
  })

  test('does not let a hanging receiver delay others', async () => {
    const gate = createGate()
    const hanging = await startTestReceiver(async () => {
      await gate.opened
      return new Response('late')
    })
    const healthy = await startTestReceiver()
    const app = await fixture.createApplication()
    await fixture.createEndpoint(app.id, hanging.url)
    await fixture.createEndpoint(app.id, healthy.url)
    for (let i = 0; i < 100; i++) await fixture.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await healthy.waitForCount(100)
    expect(hanging.received).toHaveLength(2)
    gate.open()
    await hanging.waitForCount(100)
  })

  test('records deliveries in flight before it stops, and claims nothing more', async () => {
    const gate = createGate()
    const receiver = await startTestReceiver(async () => {
      await gate.opened
      return new Response('ok')
    })
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, receiver.url)
    for (let i = 0; i < 3; i++) await fixture.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.waitForCount(2)
    const stopped = worker.stop(5_000)
    gate.open()
    await stopped
    expect((await listStatuses(endpoint)).toSorted()).toEqual(['delivered', 'delivered', 'pending'])
    worker.wake()
    await worker.stop(0)
    expect(receiver.received).toHaveLength(2)
  })

  test('aborts deliveries that do not end in time, and another process sends them again', async () => {
    const gate = createGate()
    let first = true
    const receiver = await startTestReceiver(async () => {
      if (!first) return new Response('ok')
      first = false
      await gate.opened
      return new Response('late')
    })
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, receiver.url)
    await fixture.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.waitForCount(1)
    await worker.stop(10)
    expect(await listStatuses(endpoint)).toEqual(['pending'])
    const next = makeWorker()
    await next.start()
    await receiver.waitForCount(2)
    await next.stop(5_000)
    gate.open()
    expect(await listStatuses(endpoint)).toEqual(['delivered'])
    const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(ids[0]).toBe(ids[1])
  })

  test('continues after a database failure, and loses no outcome', async () => {
    const receiver = await startTestReceiver()
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, receiver.url)
    await fixture.record(app.id)
    let failures = 2
    const { store } = fixture
    const flaky: typeof store = {
      ...store,
      write: (body) =>
        receiver.received.length > 0 && failures-- > 0
          ? Promise.reject(new Error('the disk is busy'))
          : store.write(body),
    }
    const worker = makeWorker({ store: flaky, pollMs: 5 })
    await worker.start()
    while ((await listStatuses(endpoint))[0] !== 'delivered') await new Promise(setImmediate)
    expect(fixture.takeErrors()).toHaveLength(2)
    expect(receiver.received).toHaveLength(1)
  })
})
