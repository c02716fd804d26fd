import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createGate, startReceiver } from '../helpers/webhook-receiver.ts'
import { createWorkerScene, type WorkerScene, type WorkerWishes } from './worker-scene.ts'

let scene: WorkerScene
beforeEach(async () => {
  scene = await createWorkerScene()
})
afterEach(() => scene.dispose())

const receive = (...wishes: Parameters<typeof startReceiver>) => scene.receive(...wishes)
const makeWorker = (wishes: WorkerWishes = {}) => scene.makeWorker(wishes)

const statusesOf = async (endpointId: string) =>
  (await scene.deliveries(endpointId)).map(({ status }) => status)

describe('the worker', () => {
  test('sends an event once to each endpoint, signed, with the body as it was recorded', async () => {
    const [one, two] = [await receive(), await receive()]
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, one.url)
    await scene.createEndpoint(app.id, two.url)
    const worker = makeWorker()
    await worker.start()
    const eventId = await scene.record(app.id)
    worker.wake()
    await Promise.all([one.hasReceived(1), two.hasReceived(1)])
    await worker.stop(5_000)
    for (const { received } of [one, two]) {
      expect(received).toHaveLength(1)
      expect(received[0]?.headers['webhook-id']).toBe(eventId)
    }
    const { body = '', headers = {} } = one.received[0] ?? {}
    // The stock library compares with the real time, the worker signs with the clock of the test.
    expect(headers['webhook-timestamp']).toBe(String(scene.clock.now() / 1000))
    expect(headers['webhook-signature']).toBe(
      new Webhook(app.webhookSecret).sign(eventId, new Date(scene.clock.now()), body),
    )
    expect(JSON.parse(body)).toMatchObject({ id: eventId, type: 'otp.verified', data: { appId: app.id } })
    expect(await scene.deliveries(endpoint)).toMatchObject([
      {
        status: 'delivered',
        attempts: 1,
        lastStatusCode: 200,
        lastError: null,
        deliveredAt: scene.clock.now(),
        nextAttemptAt: null,
        leaseOwner: null,
      },
    ])
  })

  test('writes a failure down with its status or its cause, and tries again later', async () => {
    const receiver = await receive(() => new Response('no', { status: 503 }))
    const app = await scene.createApplication()
    const refused = await scene.createEndpoint(app.id, receiver.url)
    const unknown = await scene.createEndpoint(app.id, 'https://receiver.invalid/')
    await scene.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.hasReceived(1)
    await worker.stop(5_000)
    const waits = { status: 'pending', attempts: 1, nextAttemptAt: scene.clock.now() + 5_000 }
    expect(await scene.deliveries(refused)).toMatchObject([
      { ...waits, lastStatusCode: 503, lastError: 'bad_status', deliveredAt: null },
    ])
    expect(await scene.deliveries(unknown)).toMatchObject([
      { ...waits, lastStatusCode: null, lastError: 'dns' },
    ])
    expect(receiver.received).toHaveLength(1)
  })

  test('finds at a poll what nobody told of', async () => {
    const receiver = await receive()
    const app = await scene.createApplication()
    await scene.createEndpoint(app.id, receiver.url)
    await makeWorker({ pollMs: 5 }).start()
    await scene.record(app.id)
    await receiver.hasReceived(1)
  })

  test('signs with the secret of the moment of sending', async () => {
    const receiver = await receive()
    const app = await scene.createApplication()
    await scene.createEndpoint(app.id, receiver.url)
    const eventId = await scene.record(app.id)
    // The claim is the first of two writes in one batch: once both are done, the old secret must not sign any more.
    const worker = makeWorker({ ownsAllLeases: false })
    const [, { value }] = await Promise.all([
      worker.start(),
      scene.applications.rotate(scene.developer, app.id, 'webhook_secret'),
    ])
    await receiver.hasReceived(1)
    const [{ body, headers } = { body: '', headers: {} as Record<string, string> }] = receiver.received
    expect(headers['webhook-signature']).toBe(
      new Webhook(value).sign(eventId, new Date(scene.clock.now()), body),
    )
  })

  test('drains a backlog with at most two at once to an endpoint', async () => {
    let now = 0
    let most = 0
    const receiver = await receive(async () => {
      most = Math.max(most, ++now)
      await receiver.hasReceived(2)
      await new Promise(setImmediate)
      now--
      return new Response('ok')
    })
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    const events = await Promise.all(Array.from({ length: 60 }, () => scene.record(app.id)))
    const worker = makeWorker()
    await worker.start()
    await receiver.hasReceived(60)
    await worker.stop(5_000)
    expect(most).toBe(2)
    const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(ids.toSorted()).toEqual(events.toSorted())
    expect(new Set(await statusesOf(endpoint))).toEqual(new Set(['delivered']))
  })

  test('has at most fifty under way in all', async () => {
    const started: string[] = []
    const gate = createGate()
    const worker = makeWorker({
      send: async ({ id }) => {
        started.push(id)
        await gate.opened
        return { statusCode: 200, error: null, durationMs: 1, body: '', retryAfterMs: null }
      },
    })
    const app = await scene.createApplication()
    for (let i = 0; i < 40; i++) await scene.createEndpoint(app.id, `http://127.0.0.1:9/${i}`)
    await scene.record(app.id)
    await scene.record(app.id)
    await worker.start()
    while (started.length < 50) await new Promise(setImmediate)
    for (let i = 0; i < 50; i++) {
      worker.wake()
      await new Promise(setImmediate)
    }
    expect(started).toHaveLength(50)
    gate.open()
    while (started.length < 80) await new Promise(setImmediate)
  })

  test('lets a receiver that hangs hold up nobody', async () => {
    const gate = createGate()
    const hanging = await receive(async () => {
      await gate.opened
      return new Response('late')
    })
    const healthy = await receive()
    const app = await scene.createApplication()
    await scene.createEndpoint(app.id, hanging.url)
    await scene.createEndpoint(app.id, healthy.url)
    for (let i = 0; i < 100; i++) await scene.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await healthy.hasReceived(100)
    expect(hanging.received).toHaveLength(2)
    gate.open()
    await hanging.hasReceived(100)
  })

  test('sends again what a process that died had claimed', async () => {
    const receiver = await receive()
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    await scene.record(app.id)
    const now = scene.clock.now()
    const claim = { owner: 'dead', now, leaseUntil: now + 30_000, limit: 50 }
    await scene.store.write((tx) => tx.webhookQueue.claim(claim))

    const careful = makeWorker({ ownsAllLeases: false })
    await careful.start()
    await careful.stop(5_000)
    expect(receiver.received).toHaveLength(0)

    const worker = makeWorker()
    await worker.start()
    await receiver.hasReceived(1)
    await worker.stop(5_000)
    expect(await scene.deliveries(endpoint)).toMatchObject([{ status: 'delivered', attempts: 1, claims: 2 }])
  })

  test('sends nothing to an endpoint that was deleted or disabled after the claim', async () => {
    const receiver = await receive()
    const app = await scene.createApplication()
    const deleted = await scene.createEndpoint(app.id, `${receiver.url}/deleted`)
    const disabled = await scene.createEndpoint(app.id, `${receiver.url}/disabled`)
    await scene.createEndpoint(app.id, `${receiver.url}/kept`)
    await scene.record(app.id)
    const worker = makeWorker({ ownsAllLeases: false })
    // The claim is the first of three writes in one batch.
    await Promise.all([
      worker.start(),
      scene.endpoints.delete(scene.developer, deleted),
      scene.endpoints.update(scene.developer, disabled, { status: 'disabled' }),
    ])
    await receiver.hasReceived(1)
    await worker.stop(5_000)
    expect(receiver.received.map(({ path }) => path)).toEqual(['/kept'])
    expect(await statusesOf(disabled)).toEqual(['pending'])
  })

  test('writes down what is under way before it stops, and claims nothing more', async () => {
    const gate = createGate()
    const receiver = await receive(async () => {
      await gate.opened
      return new Response('ok')
    })
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    for (let i = 0; i < 3; i++) await scene.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.hasReceived(2)
    const stopped = worker.stop(5_000)
    gate.open()
    await stopped
    expect((await statusesOf(endpoint)).toSorted()).toEqual(['delivered', 'delivered', 'pending'])
    worker.wake()
    await worker.stop(0)
    expect(receiver.received).toHaveLength(2)
  })

  test('cuts off what does not end in time, and another process sends it again', async () => {
    const gate = createGate()
    let first = true
    const receiver = await receive(async () => {
      if (!first) return new Response('ok')
      first = false
      await gate.opened
      return new Response('late')
    })
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    await scene.record(app.id)
    const worker = makeWorker()
    await worker.start()
    await receiver.hasReceived(1)
    await worker.stop(10)
    expect(await statusesOf(endpoint)).toEqual(['pending'])
    const next = makeWorker()
    await next.start()
    await receiver.hasReceived(2)
    await next.stop(5_000)
    gate.open()
    expect(await statusesOf(endpoint)).toEqual(['delivered'])
    const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(ids[0]).toBe(ids[1])
  })

  test('goes on after a failure of the database, and loses no outcome', async () => {
    const receiver = await receive()
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    await scene.record(app.id)
    let failures = 2
    const { store } = scene
    const flaky: typeof store = {
      read: store.read,
      write: (body) =>
        receiver.received.length > 0 && failures-- > 0
          ? Promise.reject(new Error('the disk is busy'))
          : store.write(body),
    }
    const worker = makeWorker({ store: flaky, pollMs: 5 })
    await worker.start()
    while ((await statusesOf(endpoint))[0] !== 'delivered') await new Promise(setImmediate)
    expect(scene.takeErrors()).toHaveLength(2)
    expect(receiver.received).toHaveLength(1)
  })
})
