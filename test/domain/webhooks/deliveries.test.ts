import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { deriveKeys, masterKeyBytes } from '../../../src/domain/model/keys.ts'
import { createRetention } from '../../../src/domain/upkeep/retention.ts'
import { createWebhookDeliveryService } from '../../../src/domain/webhooks/deliveries.ts'
import type { SendWebhook, WebhookAnswer, WebhookMessage } from '../../../src/domain/webhooks/delivery.ts'
import { describeEachDatabase, raceRounds } from '../../helpers/databases.ts'
import { createScene, type Scene } from './scene.ts'

const url = 'http://127.0.0.1:9/'
const hour = 3_600_000
const success: WebhookAnswer = {
  statusCode: 200,
  error: null,
  durationMs: 3,
  body: 'ok',
  retryAfterMs: null,
}
const failure: WebhookAnswer = { ...success, statusCode: null, error: 'timeout', body: null }

describeEachDatabase('deliveries', (database, kind) => {
  let scene: Scene
  let answer: WebhookAnswer
  let sent: WebhookMessage[]
  let meanwhile: () => Promise<unknown>
  beforeAll(async () => {
    scene = await createScene(database())
  })
  beforeEach(async () => {
    await database().write(async (tx) => void (await tx.delete(database().tables.webhookEndpoints)))
    answer = success
    sent = []
    meanwhile = () => Promise.resolve()
  })

  const send: SendWebhook = async (message) => {
    sent.push(message)
    await meanwhile()
    return answer
  }
  const service = () => {
    const { store, clock, keys } = scene
    return createWebhookDeliveryService({ store, clock, keys, send })
  }
  const claim = () => {
    const now = scene.clock.now()
    const wish = { owner: 'a', now, leaseUntil: now + 30_000, limit: 50 }
    return scene.store.write((tx) => tx.webhookQueue.claim(wish))
  }
  /** Attempts everything that is due. */
  const work = async (statusCode: number, retryAt: number | null = null) => {
    const error = statusCode === 200 ? null : ('bad_status' as const)
    for (let claimed = await claim(); claimed.length > 0; claimed = await claim()) {
      for (const one of claimed) {
        const now = scene.clock.now()
        const attempt = { at: now, statusCode, error, durationMs: 1, body: '' }
        await scene.store.write((tx) => tx.webhookQueue.finish({ ...one, owner: 'a', attempt, retryAt, now }))
      }
    }
  }
  const make = async () => {
    const app = await scene.createApplication()
    return { app, endpoint: await scene.createEndpoint(app.id, url) }
  }
  const only = async (endpoint: string) => {
    const page = await service().list(scene.developer, endpoint, {}, { limit: 2 })
    const [delivery] = page.items
    if (!delivery || page.items.length > 1) throw new Error('not one delivery')
    return delivery
  }
  const look = (id: string) => scene.endpoints.get(scene.developer, id)

  test('are listed newest first, page by page, by status and by type', async () => {
    const { app, endpoint } = await make()
    const events: string[] = []
    const record = async (type: 'otp.sent' | 'otp.verified') => {
      scene.clock.advance(1)
      events.unshift(await scene.record(app.id, type))
    }
    await record('otp.sent')
    await work(500)
    await record('otp.verified')
    await work(200)
    await record('otp.sent')
    const ids = async (filter: object, limit = 50) => {
      const found: string[] = []
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page = await service().list(scene.developer, endpoint, filter, {
          limit,
          cursor: cursor ?? undefined,
        })
        expect(page.items.length).toBeLessThanOrEqual(limit)
        found.push(...page.items.map(({ eventId }) => eventId))
        cursor = page.nextCursor
      }
      return found
    }
    expect(await ids({})).toEqual(events)
    expect(await ids({}, 1)).toEqual(events)
    const [pending = '', delivered = '', failed = ''] = events
    expect(await ids({ status: 'pending' })).toEqual([pending])
    expect(await ids({ status: 'delivered' })).toEqual([delivered])
    expect(await ids({ status: 'failed' })).toEqual([failed])
    expect(await ids({ type: 'otp.sent' }, 1)).toEqual([pending, failed])
    expect(await ids({ type: 'otp.sent', status: 'failed' })).toEqual([failed])
    expect(await ids({ type: 'otp.expired' })).toEqual([])
  })

  test('are sent again with the id of the event and the secret of the moment, also when delivered', async () => {
    const { app, endpoint } = await make()
    const eventId = await scene.record(app.id)
    await work(200)
    const before = await only(endpoint)
    const { value: secret } = await scene.applications.rotate(scene.developer, app.id, 'webhook_secret')
    scene.clock.advance(1_000)
    const after = await service().redeliver(scene.developer, endpoint, before.id)
    expect(sent).toMatchObject([{ id: eventId, url, secret }])
    expect(after.delivery).toEqual({ ...before, attempts: 2 })
    expect(after.attempts).toMatchObject([
      { at: scene.clock.now() - 1_000, statusCode: 200 },
      { at: scene.clock.now(), statusCode: 200, durationMs: 3, body: 'ok' },
    ])
    expect((await look(endpoint)).lastDeliveryAt).toBe(scene.clock.now())
  })

  test('that are sent again to a disabled endpoint leave it and what is known of it alone', async () => {
    const { app, endpoint } = await make()
    await scene.record(app.id)
    await work(500)
    await scene.endpoints.update(scene.developer, endpoint, { status: 'disabled' })
    const { failingSince } = await look(endpoint)
    const { id } = await only(endpoint)
    scene.clock.advance(hour)
    answer = failure
    const failed = await service().redeliver(scene.developer, endpoint, id)
    expect(failed.delivery).toMatchObject({ status: 'failed', attempts: 2, lastError: 'timeout' })
    expect(failed.delivery.lastStatusCode).toBeNull()
    answer = success
    const delivered = await service().redeliver(scene.developer, endpoint, id)
    expect(delivered.delivery).toMatchObject({ status: 'delivered', deliveredAt: scene.clock.now() })
    expect(await look(endpoint)).toMatchObject({
      status: 'disabled',
      failingSince,
      lastDeliveryAt: scene.clock.now(),
    })
    expect(failingSince).not.toBeNull()
  })

  test('that wait keep their schedule where sending again fails, and end where it succeeds', async () => {
    const { app, endpoint } = await make()
    await scene.record(app.id)
    const retryAt = scene.clock.now() + hour
    await work(500, retryAt)
    const { id } = await only(endpoint)
    answer = failure
    await service().redeliver(scene.developer, endpoint, id)
    expect(await only(endpoint)).toMatchObject({ status: 'pending', attempts: 2, nextAttemptAt: retryAt })
    expect((await look(endpoint)).failingSince).not.toBeNull()
    answer = success
    await service().redeliver(scene.developer, endpoint, id)
    expect((await look(endpoint)).failingSince).toBeNull()
    expect(await only(endpoint)).toMatchObject({ status: 'delivered', attempts: 3, nextAttemptAt: null })
    scene.clock.advance(hour)
    expect(await claim()).toEqual([])
    expect(await scene.store.read.webhookQueue.nextDueAt()).toBeUndefined()
  })

  test('that a worker holds while they are sent again are not written twice', async () => {
    const { app, endpoint } = await make()
    await scene.record(app.id)
    const [held] = await claim()
    if (!held) throw new Error('nothing was claimed')
    await service().redeliver(scene.developer, endpoint, held.id)
    const attempt = { at: 0, statusCode: 500, error: 'bad_status' as const, durationMs: 1, body: '' }
    const now = scene.clock.now()
    const outcome = { ...held, owner: 'a', attempt, retryAt: now, now }
    expect(await scene.store.write((tx) => tx.webhookQueue.finish(outcome))).toBeNull()
    expect(await only(endpoint)).toMatchObject({ status: 'delivered', attempts: 1 })
    expect((await look(endpoint)).failingSince).toBeNull()
  })

  test('that are deleted while they are sent again are not there', async () => {
    const { app, endpoint } = await make()
    await scene.record(app.id)
    const { id } = await only(endpoint)
    meanwhile = () => scene.endpoints.delete(scene.developer, endpoint)
    const again = service().redeliver(scene.developer, endpoint, id)
    expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await again.catch(() => undefined)
  })

  test('that failed in a range are put back, with the whole schedule before them', async () => {
    const { app, endpoint } = await make()
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      scene.clock.advance(hour)
      times.push(scene.clock.now())
      await scene.record(app.id)
      await work(i === 2 ? 200 : 500)
    }
    const [, since = 0, , until = 0] = times
    expect(await service().recover(scene.developer, endpoint, { since, until })).toBe(2)
    const rows = (await scene.deliveries(endpoint)).toSorted((a, b) => a.createdAt - b.createdAt)
    expect(rows.map(({ status }) => status)).toEqual(['failed', 'pending', 'delivered', 'pending', 'failed'])
    expect(rows[1]).toMatchObject({ attempts: 1, failures: 0, nextAttemptAt: scene.clock.now() })
    const claimed = await claim()
    expect(claimed.map(({ id }) => id).toSorted()).toEqual([rows[1]?.id ?? '', rows[3]?.id ?? ''].toSorted())
    expect(await service().recover(scene.developer, endpoint, { since: 0 })).toBe(2)
    expect(await service().recover(scene.developer, endpoint, { since: scene.clock.now() + hour })).toBe(0)
    const backwards = service().recover(scene.developer, endpoint, { since: until, until: since })
    expect(backwards).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: [{ path: 'until' }] })
    await backwards.catch(() => undefined)
  })

  test('of a disabled endpoint that are put back wait until it is enabled', async () => {
    const { app, endpoint } = await make()
    const since = scene.clock.now()
    await scene.record(app.id)
    await work(500)
    await scene.endpoints.update(scene.developer, endpoint, { status: 'disabled' })
    expect(await service().recover(scene.developer, endpoint, { since })).toBe(1)
    expect(await claim()).toEqual([])
    await scene.endpoints.update(scene.developer, endpoint, { status: 'enabled' })
    expect(await claim()).toMatchObject([{ endpointId: endpoint, failures: 0 }])
  })

  test('are put back, all of them, also where they are many', async () => {
    const { app, endpoint } = await make()
    const since = scene.clock.now()
    const count = kind === 'SQLite' ? 1_203 : 503
    for (let i = 0; i < count; i++) await scene.record(app.id)
    const { webhookDeliveries } = database().tables
    await database().write(
      async (tx) => void (await tx.update(webhookDeliveries).set({ status: 'failed', nextAttemptAt: null })),
    )
    expect(await service().recover(scene.developer, endpoint, { since })).toBe(count)
    expect(new Set((await scene.deliveries(endpoint)).map(({ status }) => status))).toEqual(
      new Set(['pending']),
    )
  }, 300_000)

  test('and their attempts go after 90 days, however they ended, and no sooner', async () => {
    const { app, endpoint } = await make()
    for (let i = 0; i < 7; i++) await scene.record(app.id)
    await work(500, scene.clock.now() + 400 * 24 * hour)
    const settings = { phoneDays: 0, logDays: 90, requestDays: 0, auditDays: 0 }
    const keys = deriveKeys(new Uint8Array(masterKeyBytes))
    const retention = createRetention({ ...scene, keys, settings })
    const purge = () => retention.purge({ chunk: 3, goOn: () => Promise.resolve(true) })
    scene.clock.advance(1)
    await scene.record(app.id)
    scene.clock.advance(90 * 24 * hour - 2)
    await purge()
    expect(await scene.deliveries(endpoint)).toHaveLength(8)
    scene.clock.advance(1)
    await purge()
    expect(await scene.deliveries(endpoint)).toHaveLength(1)
    const { webhookAttempts } = database().tables
    expect(await database().read.select().from(webhookAttempts)).toEqual([])
  })

  test('end once, whoever races for it: a worker, a redelivery and a recovery', async () => {
    for (let round = 0; round < Math.ceil(raceRounds(kind) / 10); round++) {
      const { app, endpoint } = await make()
      await scene.record(app.id)
      const { id } = await only(endpoint)
      await Promise.all([
        work(round % 2 === 0 ? 200 : 500),
        service().redeliver(scene.developer, endpoint, id),
        service().recover(scene.developer, endpoint, { since: 0 }),
        work(200),
      ])
      await work(200)
      const [row] = await scene.deliveries(endpoint)
      const { attempts, delivery } = await service().get(scene.developer, endpoint, id)
      expect([row?.status, row?.leaseOwner, row?.nextAttemptAt]).toEqual(['delivered', null, null])
      expect(attempts).toHaveLength(delivery.attempts)
      scene.clock.advance(60_000)
    }
    expect(await scene.store.read.webhookQueue.nextDueAt()).toBeUndefined()
  }, 300_000)
})
