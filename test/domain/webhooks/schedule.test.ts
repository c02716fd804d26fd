import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { WebhookReceiver } from '../../helpers/webhook-receiver.ts'
import { createWorkerScene, until, type WorkerScene } from '../../webhooks/worker-scene.ts'

let scene: WorkerScene
beforeEach(async () => {
  scene = await createWorkerScene()
})
afterEach(() => scene.dispose())

const hour = 3_600_000

const look = (id: string) => scene.endpoints.get(scene.developer, id)
const only = async (endpointId: string) => {
  const [row, ...rest] = await scene.deliveries(endpointId)
  if (!row || rest.length > 0) throw new Error('not one delivery')
  return row
}
const attemptsOf = async (endpointId: string) =>
  scene.store.read.webhookDeliveries.attempts((await only(endpointId)).id)

/** Has the worker look, and waits until so many attempts have been written down. */
async function attempt(worker: { wake(): void }, endpointId: string, count: number) {
  worker.wake()
  await until(async () => (await only(endpointId)).attempts === count)
}

async function one(receiver: Pick<WebhookReceiver, 'url'>) {
  const app = await scene.createApplication()
  const endpoint = await scene.createEndpoint(app.id, receiver.url)
  return { app, endpoint }
}

const logOf = async (type: string) =>
  (await scene.store.read.events.list(scene.developer.id, { limit: 200 })).filter(
    (entry) => entry.type === type,
  )

describe('a delivery that fails', () => {
  test('is tried eight times on the schedule, with the same id and a new signature, and then ends', async () => {
    const receiver = await scene.receive(() => new Response('no', { status: 500 }))
    const { app, endpoint } = await one(receiver)
    const eventId = await scene.record(app.id)
    const worker = scene.makeWorker()
    await worker.start()
    const startedAt = scene.clock.now()
    const steps = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
    for (const [index, seconds] of steps.entries()) {
      await attempt(worker, endpoint, index + 1)
      const { nextAttemptAt, status } = await only(endpoint)
      expect([status, nextAttemptAt]).toEqual(['pending', scene.clock.now() + seconds * 1000])
      scene.clock.advance(seconds * 1000 - 1)
      worker.wake()
      await worker.idle()
      expect(receiver.received).toHaveLength(index + 1)
      scene.clock.advance(1)
    }
    await attempt(worker, endpoint, 8)
    expect(await only(endpoint)).toMatchObject({ status: 'failed', nextAttemptAt: null, attempts: 8 })
    expect((scene.clock.now() - startedAt) / hour).toBeCloseTo(27.585, 2)
    scene.clock.advance(48 * hour)
    worker.wake()
    await worker.idle()
    expect(receiver.received).toHaveLength(8)
    const headers = receiver.received.map((received) => received.headers)
    expect(new Set(headers.map((one) => one['webhook-id']))).toEqual(new Set([eventId]))
    expect(new Set(headers.map((one) => one['webhook-signature'])).size).toBe(8)
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  })

  test('is spread by chance', async () => {
    const receiver = await scene.receive(() => new Response('no', { status: 500 }))
    const { app, endpoint } = await one(receiver)
    await scene.record(app.id)
    const worker = scene.makeWorker({ random: () => 0 })
    await worker.start()
    await attempt(worker, endpoint, 1)
    expect((await only(endpoint)).nextAttemptAt).toBe(scene.clock.now() + 4_000)
  })

  test('keeps each attempt: when, how it ended, how long it took, what came back', async () => {
    const answers = [
      () => new Response('x'.repeat(9_000), { status: 500 }),
      () => Response.redirect('http://127.0.0.1:9/', 302),
      () => new Response('ok'),
    ]
    const receiver = await scene.receive(() => (answers.shift() ?? (() => new Response()))())
    const { app, endpoint } = await one(receiver)
    await scene.record(app.id)
    const worker = scene.makeWorker()
    await worker.start()
    const times: number[] = []
    for (const [index, seconds] of [5, 300, 0].entries()) {
      times.push(scene.clock.now())
      await attempt(worker, endpoint, index + 1)
      scene.clock.advance(seconds * 1000)
    }
    const attempts = await attemptsOf(endpoint)
    const durationMs = expect.any(Number)
    expect(attempts).toEqual([
      { at: times[0] ?? 0, statusCode: 500, error: 'bad_status', durationMs, body: 'x'.repeat(4096) },
      { at: times[1] ?? 0, statusCode: 302, error: 'redirect', durationMs, body: '' },
      { at: times[2] ?? 0, statusCode: 200, error: null, durationMs, body: 'ok' },
    ])
    expect(await only(endpoint)).toMatchObject({
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
  ])('waits as Retry-After: %s asks, within bounds', async (value, ms) => {
    const headers = { 'retry-after': value }
    const receiver = await scene.receive(() => new Response('later', { status: 429, headers }))
    const { app, endpoint } = await one(receiver)
    await scene.record(app.id)
    const worker = scene.makeWorker()
    await worker.start()
    await attempt(worker, endpoint, 1)
    expect((await only(endpoint)).nextAttemptAt).toBe(scene.clock.now() + ms)
  })

  test('is tried again by itself when its time has come', async () => {
    let failures = 1
    const receiver = await scene.receive(() => new Response('', { status: failures-- > 0 ? 500 : 200 }))
    const { app, endpoint } = await one(receiver)
    await scene.record(app.id)
    // A wait of 20 ms, by the real clock: nobody wakes the worker.
    const hasty = scene.makeWorker({ clock: { now: () => Date.now() }, random: () => -1.99 })
    await hasty.start()
    await receiver.hasReceived(2)
    await until(async () => (await only(endpoint)).status === 'delivered')
  })
})

describe('an endpoint that answers 410', () => {
  test('is disabled at once, says why, and keeps what waits until it is enabled', async () => {
    let gone = true
    const receiver = await scene.receive(() => new Response('', { status: gone ? 410 : 200 }))
    const { app, endpoint } = await one(receiver)
    await scene.record(app.id)
    const worker = scene.makeWorker()
    await worker.start()
    await until(async () => (await look(endpoint)).status === 'disabled')
    expect(await only(endpoint)).toMatchObject({ status: 'failed', attempts: 1, lastStatusCode: 410 })
    expect(await look(endpoint)).toMatchObject({ status: 'disabled', disabledReason: 'gone' })
    expect(await logOf('webhook.disabled')).toMatchObject([
      { appId: app.id, requestId: null, phone: null, detail: `${endpoint} gone`, at: scene.clock.now() },
    ])
    await scene.record(app.id)
    expect(await scene.deliveries(endpoint)).toHaveLength(1)
    gone = false
    await scene.endpoints.update(scene.developer, endpoint, { status: 'enabled' })
    await scene.record(app.id)
    worker.wake()
    await receiver.hasReceived(2)
  })
})

describe('an endpoint that only fails', () => {
  test('is disabled after 120 hours, once, and goes on with what waits when it is enabled', async () => {
    let failing = true
    const receiver = await scene.receive(() => new Response('', { status: failing ? 500 : 200 }))
    const { app, endpoint } = await one(receiver)
    const worker = scene.makeWorker()
    await worker.start()
    await scene.record(app.id)
    await attempt(worker, endpoint, 1)
    const since = scene.clock.now()
    expect(await look(endpoint)).toMatchObject({ status: 'enabled', failingSince: since })

    scene.clock.set(since + 120 * hour - 1)
    await attempt(worker, endpoint, 2)
    expect(await look(endpoint)).toMatchObject({ status: 'enabled', failingSince: since })

    scene.clock.advance(300_001)
    worker.wake()
    await until(async () => (await look(endpoint)).status === 'disabled')
    await worker.idle()
    expect(await look(endpoint)).toMatchObject({ disabledReason: 'failing', failingSince: since })
    expect(await logOf('webhook.disabled')).toMatchObject([{ detail: `${endpoint} failing` }])
    scene.clock.advance(hour)
    worker.wake()
    await worker.idle()
    expect(receiver.received).toHaveLength(3)
    expect(await only(endpoint)).toMatchObject({ status: 'pending', attempts: 3 })

    failing = false
    await scene.endpoints.update(scene.developer, endpoint, { status: 'enabled' })
    await attempt(worker, endpoint, 4)
    expect(await only(endpoint)).toMatchObject({ status: 'delivered' })
    expect(await look(endpoint)).toMatchObject({
      status: 'enabled',
      disabledReason: null,
      failingSince: null,
      lastDeliveryAt: scene.clock.now(),
    })
  })

  test('is not, where it worked once in between', async () => {
    let failing = true
    const receiver = await scene.receive(() => new Response('', { status: failing ? 500 : 200 }))
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, receiver.url)
    const worker = scene.makeWorker()
    await worker.start()
    const send = async (fails: boolean) => {
      failing = fails
      const before = receiver.received.length
      await scene.record(app.id)
      worker.wake()
      await receiver.hasReceived(before + 1)
      await worker.idle()
    }
    await send(true)
    scene.clock.advance(119 * hour)
    await send(false)
    scene.clock.advance(2 * hour)
    await send(true)
    expect(await look(endpoint)).toMatchObject({ status: 'enabled', failingSince: scene.clock.now() })
    expect(await logOf('webhook.disabled')).toEqual([])
  })
})
