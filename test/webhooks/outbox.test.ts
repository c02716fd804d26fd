import { beforeAll, beforeEach, expect, test } from 'bun:test'
import type { ClaimedDelivery } from '../../src/domain/webhook-deliveries.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { createScene, type Scene } from './scene.ts'

const url = 'http://127.0.0.1:9/'
const leaseMs = 30_000

describeEachDatabase('the outbox', (database) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await createScene(database())
  })
  beforeEach(() =>
    database().write(async (tx) => void (await tx.delete(database().tables.webhookDeliveries))),
  )

  const claim = (owner: string, wishes: { limit?: number; except?: string[] } = {}) => {
    const now = scene.clock.now()
    const { limit = 50, except = [] } = wishes
    return scene.store.write((tx) =>
      tx.webhookDeliveries.claim({ owner, now, leaseUntil: now + leaseMs, limit, except }),
    )
  }
  const finish = (owner: string, claimed: ClaimedDelivery, statusCode = 200) => {
    const error = statusCode === 200 ? null : ('bad_status' as const)
    const now = scene.clock.now()
    return scene.store.write((tx) =>
      tx.webhookDeliveries.finish({ ...claimed, owner, statusCode, error, now }),
    )
  }
  const claimAll = async (owner: string) => {
    const all: ClaimedDelivery[] = []
    for (;;) {
      const claimed = await claim(owner)
      if (claimed.length === 0) return all
      all.push(...claimed)
    }
  }
  const look = (id: string) => scene.endpoints.get(scene.developer, id)

  test('gets a row for each endpoint that subscribed to the event and no other', async () => {
    const app = await scene.createApplication()
    const other = await scene.createApplication()
    const all = await scene.createEndpoint(app.id, url)
    const some = await scene.createEndpoint(app.id, url, ['otp.failed', 'otp.verified'])
    const none = await scene.createEndpoint(app.id, url, ['otp.sent'])
    const foreign = await scene.createEndpoint(other.id, url)
    const disabled = await scene.createEndpoint(app.id, url)
    await scene.endpoints.update(scene.developer, disabled, { status: 'disabled' })
    const eventId = await scene.record(app.id)
    const found = await Promise.all([all, some, none, foreign, disabled].map((id) => scene.deliveries(id)))
    expect(found.map((rows) => rows.length)).toEqual([1, 1, 0, 0, 0])
    expect(found[0]?.[0]).toMatchObject({ eventId, status: 'pending', attempts: 0 })
  })

  test('hands out one delivery for each endpoint, those of the endpoint in their order', async () => {
    const app = await scene.createApplication()
    const first = await scene.createEndpoint(app.id, url)
    const second = await scene.createEndpoint(app.id, url)
    const events: string[] = []
    for (let i = 0; i < 3; i++) {
      events.push(await scene.record(app.id))
      scene.clock.advance(1)
    }
    const claimed = await claim('a')
    expect(claimed.map(({ endpointId }) => endpointId).toSorted()).toEqual([first, second])
    expect(claimed.every(({ attempt }) => attempt === 1)).toBe(true)
    const rows = await scene.deliveries(first)
    const taken = rows.find(({ id }) => claimed.some((one) => one.id === id))
    expect(taken?.eventId).toBe(events[0])
    expect(await claim('a', { except: [first] })).toMatchObject([{ endpointId: second }])
    expect(await claim('b', { limit: 1 })).toHaveLength(1)
  })

  test('never hands out a row twice to racing workers, and hands out every row', async () => {
    const app = await scene.createApplication()
    const endpoints = await Promise.all(Array.from({ length: 8 }, () => scene.createEndpoint(app.id, url)))
    for (let round = 0; round < 20; round++) await scene.record(app.id)
    const handedOut: string[] = []
    for (let empty = 0; empty < 2;) {
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_, i) => claim(`worker-${i}`, { limit: 3 })),
      )
      handedOut.push(...claims.flat().map(({ id }) => id))
      if (claims.flat().length === 0) empty++
    }
    expect(handedOut).toHaveLength(8 * 20)
    expect(new Set(handedOut).size).toBe(8 * 20)
    for (const id of endpoints) {
      expect((await scene.deliveries(id)).every(({ attempts }) => attempts === 1)).toBe(true)
    }
  })

  test('hands out nothing before its time, and again what was held too long', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    const [held] = await claim('dead')
    expect(held).toMatchObject({ endpointId: endpoint, attempt: 1 })
    scene.clock.advance(leaseMs - 1)
    expect(await claim('b')).toEqual([])
    scene.clock.advance(1)
    const again = (await claim('b')).find(({ id }) => id === held?.id)
    expect(again).toMatchObject({ attempt: 2 })
  })

  test('lets nobody write who has lost the lease', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    const [late] = (await claimAll('late')).filter(({ endpointId }) => endpointId === endpoint)
    scene.clock.advance(leaseMs)
    const [holder] = (await claimAll('holder')).filter(({ endpointId }) => endpointId === endpoint)
    if (!late || !holder) throw new Error('nothing was claimed')
    await finish('late', late, 500)
    await finish('holder', late, 500)
    expect(await scene.deliveries(endpoint)).toMatchObject([{ status: 'pending', attempts: 2 }])
    expect((await look(endpoint)).failingSince).toBeNull()
    await finish('holder', holder)
    await finish('holder', holder, 500)
    expect(await scene.deliveries(endpoint)).toMatchObject([
      { status: 'delivered', lastStatusCode: 200, lastError: null, nextAttemptAt: null, leaseOwner: null },
    ])
  })

  test('gives every lease back when the process that held it is gone for sure', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    const [held] = await claimAll('dead')
    await scene.store.write((tx) => tx.webhookDeliveries.releaseAll())
    if (held) await finish('dead', held, 500)
    const again = (await claimAll('next')).filter(({ endpointId }) => endpointId === endpoint)
    expect(again).toMatchObject([{ attempt: 2 }])
  })

  test('notes at the endpoint the last success and since when it fails', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    const attempt = async (statusCode: number) => {
      await scene.record(app.id)
      scene.clock.advance(1_000)
      const claimed = (await claimAll('a')).find(({ endpointId }) => endpointId === endpoint)
      if (claimed) await finish('a', claimed, statusCode)
      return scene.clock.now()
    }
    const succeeded = await attempt(200)
    const failed = await attempt(500)
    await attempt(500)
    expect(await look(endpoint)).toMatchObject({
      lastDeliveryAt: succeeded,
      failingSince: failed,
    })
    const recovered = await attempt(200)
    expect(await look(endpoint)).toMatchObject({ lastDeliveryAt: recovered, failingSince: null })
  })

  test('serves endpoints that work before those that fail', async () => {
    const app = await scene.createApplication()
    const failing = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    const [first] = (await claimAll('a')).filter(({ endpointId }) => endpointId === failing)
    if (first) await finish('a', first, 500)
    const working = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    expect(await claim('a', { limit: 1 })).toMatchObject([{ endpointId: working }])
    expect(await claim('a', { limit: 1 })).toMatchObject([{ endpointId: failing }])
  })

  test('keeps what waits for a disabled endpoint until it is enabled again', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    await scene.endpoints.update(scene.developer, endpoint, { status: 'disabled' })
    expect(await claimAll('a')).toEqual([])
    await scene.endpoints.update(scene.developer, endpoint, { status: 'enabled' })
    expect(await claimAll('a')).toMatchObject([{ endpointId: endpoint }])
  })

  test('loads what to send with the URL and the secret of the moment', async () => {
    const app = await scene.createApplication()
    const endpoint = await scene.createEndpoint(app.id, url)
    const eventId = await scene.record(app.id)
    const [claimed] = await claimAll('a')
    if (!claimed) throw new Error('nothing was claimed')
    const load = () => scene.store.read.webhookDeliveries.load([claimed.id])
    const [before] = await load()
    expect(before?.message).toMatchObject({ id: eventId, url, secret: app.webhookSecret })
    expect(JSON.parse(before?.message.body ?? '')).toMatchObject({ id: eventId, type: 'otp.verified' })
    const { value } = await scene.applications.rotate(scene.developer, app.id, 'webhook_secret')
    await scene.endpoints.update(scene.developer, endpoint, { url: 'http://127.0.0.1:10/' })
    const [after] = await load()
    expect(after?.message).toEqual({
      ...before?.message,
      secret: value,
      url: 'http://127.0.0.1:10/',
    } as never)
    await scene.endpoints.update(scene.developer, endpoint, { status: 'disabled' })
    expect(await load()).toEqual([])
  })

  test('forgets what waits when its endpoint or its application is deleted', async () => {
    const app = await scene.createApplication()
    const deleted = await scene.createEndpoint(app.id, url)
    const orphaned = await scene.createEndpoint(app.id, url)
    await scene.record(app.id)
    await scene.endpoints.delete(scene.developer, deleted)
    expect(await scene.deliveries(deleted)).toEqual([])
    expect(await scene.deliveries(orphaned)).toHaveLength(1)
    await scene.applications.delete(scene.developer, app.id)
    expect(await scene.deliveries(orphaned)).toEqual([])
  })
})

describeEachDatabase('the limit of endpoints', (database) => {
  test('is exact for racing creations', async () => {
    const scene = await createScene(database())
    const endpoints = scene.endpointsOf(5)
    for (let round = 0; round < 10; round++) {
      const app = await scene.createApplication()
      const created = await Promise.allSettled(
        Array.from({ length: 20 }, () =>
          endpoints.create(scene.developer, { appId: app.id, url, events: ['*'] }),
        ),
      )
      expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
      const page = await endpoints.list(scene.developer, app.id, { limit: 50 })
      expect(page.items).toHaveLength(5)
    }
  })

  test('counts each application alone', async () => {
    const scene = await createScene(database())
    const endpoints = scene.endpointsOf(1)
    for (let i = 0; i < 2; i++) {
      const { id: appId } = await scene.createApplication()
      await endpoints.create(scene.developer, { appId, url, events: ['*'] })
      const again = endpoints.create(scene.developer, { appId, url, events: ['*'] })
      expect(again).rejects.toMatchObject({ code: 'ENDPOINT_LIMIT_REACHED', metadata: { limit: 1 } })
      await again.catch(() => undefined)
    }
  })

  test('leaves no endpoint behind an application that is deleted meanwhile', async () => {
    const scene = await createScene(database())
    for (let round = 0; round < 20; round++) {
      const app = await scene.createApplication()
      const creations = Array.from({ length: 3 }, () =>
        scene.endpoints.create(scene.developer, { appId: app.id, url, events: ['*'] }),
      )
      const outcomes = await Promise.allSettled([
        ...creations,
        scene.applications.delete(scene.developer, app.id),
      ])
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'NOT_FOUND' })
      }
      expect((await scene.endpoints.list(scene.developer, app.id, { limit: 50 })).items).toEqual([])
    }
  })
})
