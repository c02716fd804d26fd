import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createCallLimits } from '../../../src/domain/limits/call-limits.ts'
import { FREE_PLAN } from '../../../src/domain/model/plans.ts'
import { masterKeyBytes } from '../../../src/domain/model/keys.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import { createRetention } from '../../../src/domain/upkeep/retention.ts'
import { createWebhookDeliveryService } from '../../../src/domain/webhooks/deliveries.ts'
import type {
  SendWebhook,
  WebhookAttemptResult,
  WebhookMessage,
} from '../../../src/domain/model/webhook-delivery.ts'
import { describeEachDatabase, raceRounds } from '../../helpers/databases.ts'
import { createWebhookFixture, type WebhookFixture, unsharedPermits } from './fixture.ts'

const url = 'http://127.0.0.1:9/'
const hour = 3_600_000
const success: WebhookAttemptResult = {
  statusCode: 200,
  error: null,
  request: null,
  durationMs: 3,
  body: 'ok',
  retryAfterMs: null,
}
const failure: WebhookAttemptResult = { ...success, statusCode: null, error: 'timeout', body: null }

describeEachDatabase('deliveries', (database, kind) => {
  let fixture: WebhookFixture
  let attemptResult: WebhookAttemptResult
  let sent: WebhookMessage[]
  let betweenRuns: () => Promise<unknown>
  beforeAll(async () => {
    fixture = await createWebhookFixture(database())
  })
  beforeEach(async () => {
    await database().write(async (tx) => void (await tx.delete(database().tables.webhookEndpoints)))
    attemptResult = success
    sent = []
    betweenRuns = () => Promise.resolve()
  })

  const send: SendWebhook = async (message) => {
    sent.push(message)
    await betweenRuns()
    return attemptResult
  }
  const service = () => {
    const { store, clock } = fixture
    const callLimits = createCallLimits({ clock, plans: { free: FREE_PLAN } })
    return createWebhookDeliveryService({ store, clock, send, callLimits })
  }
  const claim = () => {
    const now = fixture.clock.now()
    const claimRequest = { owner: 'a', now, leaseUntil: now + 30_000, permits: unsharedPermits() }
    return fixture.store.write((tx) => tx.webhookOutbox.claim(claimRequest))
  }
  /** Attempts all due deliveries. */
  const work = async (statusCode: number, retryAt: number | null = null) => {
    const error = statusCode === 200 ? null : ('bad_status' as const)
    for (let claimed = await claim(); claimed.length > 0; claimed = await claim()) {
      for (const one of claimed) {
        const now = fixture.clock.now()
        const attempt = { at: now, statusCode, error, request: null, durationMs: 1, body: '' }
        await fixture.store.write((tx) =>
          tx.webhookOutbox.finish({ ...one, owner: 'a', attempt, retryAt, now }),
        )
      }
    }
  }
  const make = async () => {
    const app = await fixture.createApplication()
    return { app, endpoint: await fixture.createEndpoint(app.id, url) }
  }
  const only = async (endpoint: string) => {
    const page = await service().list(fixture.developer, endpoint, {}, { limit: 2 })
    const [delivery] = page.items
    if (!delivery || page.items.length > 1) throw new Error('not one delivery')
    return delivery
  }
  const getEndpoint = (id: string) => fixture.endpoints.get(fixture.developer, id)

  test('are listed newest first, page by page, by status and by type', async () => {
    const { app, endpoint } = await make()
    const events: string[] = []
    const record = async (type: 'otp.sent' | 'otp.verified') => {
      fixture.clock.advance(1)
      events.unshift(await fixture.record(app.id, type))
    }
    await record('otp.sent')
    await work(500)
    await record('otp.verified')
    await work(200)
    await record('otp.sent')
    const ids = async (filter: object, limit = 50) => {
      const found: string[] = []
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page = await service().list(fixture.developer, endpoint, filter, {
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

  test('are redelivered with the event id and the current secret, even when already delivered', async () => {
    const { app, endpoint } = await make()
    const eventId = await fixture.record(app.id)
    await work(200)
    const before = await only(endpoint)
    const { value: secret } = await fixture.applications.rotate(fixture.developer, app.id, 'webhook_secret')
    fixture.clock.advance(1_000)
    const after = await service().redeliver(fixture.developer, endpoint, before.id)
    expect(sent).toMatchObject([{ id: eventId, url, secret }])
    expect(after.delivery).toEqual({ ...before, attempts: 2 })
    expect(after.attempts).toMatchObject([
      { at: fixture.clock.now() - 1_000, statusCode: 200 },
      { at: fixture.clock.now(), statusCode: 200, request: null, durationMs: 3, body: 'ok' },
    ])
    expect((await getEndpoint(endpoint)).lastDeliveryAt).toBe(fixture.clock.now())
  })

  test('redelivered to a disabled endpoint do not change the endpoint', async () => {
    const { app, endpoint } = await make()
    await fixture.record(app.id)
    await work(500)
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'disabled' })
    const { failingSince } = await getEndpoint(endpoint)
    const { id } = await only(endpoint)
    fixture.clock.advance(hour)
    attemptResult = failure
    const failed = await service().redeliver(fixture.developer, endpoint, id)
    expect(failed.delivery).toMatchObject({ status: 'failed', attempts: 2, lastError: 'timeout' })
    expect(failed.delivery.lastStatusCode).toBeNull()
    attemptResult = success
    const delivered = await service().redeliver(fixture.developer, endpoint, id)
    expect(delivered.delivery).toMatchObject({ status: 'delivered', deliveredAt: fixture.clock.now() })
    expect(await getEndpoint(endpoint)).toMatchObject({
      status: 'disabled',
      failingSince,
      lastDeliveryAt: fixture.clock.now(),
    })
    expect(failingSince).not.toBeNull()
  })

  test('that are pending keep their schedule when a redelivery fails, and complete when it succeeds', async () => {
    const { app, endpoint } = await make()
    await fixture.record(app.id)
    const retryAt = fixture.clock.now() + hour
    await work(500, retryAt)
    const { id } = await only(endpoint)
    attemptResult = failure
    await service().redeliver(fixture.developer, endpoint, id)
    expect(await only(endpoint)).toMatchObject({ status: 'pending', attempts: 2, nextAttemptAt: retryAt })
    expect((await getEndpoint(endpoint)).failingSince).not.toBeNull()
    attemptResult = success
    await service().redeliver(fixture.developer, endpoint, id)
    expect((await getEndpoint(endpoint)).failingSince).toBeNull()
    expect(await only(endpoint)).toMatchObject({ status: 'delivered', attempts: 3, nextAttemptAt: null })
    fixture.clock.advance(hour)
    expect(await claim()).toEqual([])
    expect(await fixture.store.read.webhookOutbox.nextDueAt()).toBeUndefined()
  })

  test('leased by a worker during a redelivery are not recorded twice', async () => {
    const { app, endpoint } = await make()
    await fixture.record(app.id)
    const [claimed] = await claim()
    if (!claimed) throw new Error('nothing was claimed')
    await service().redeliver(fixture.developer, endpoint, claimed.id)
    const attempt = {
      at: 0,
      statusCode: 500,
      error: 'bad_status' as const,
      request: null,
      durationMs: 1,
      body: '',
    }
    const now = fixture.clock.now()
    const outcome = { ...claimed, owner: 'a', attempt, retryAt: now, now }
    expect(await fixture.store.write((tx) => tx.webhookOutbox.finish(outcome))).toBeNull()
    expect(await only(endpoint)).toMatchObject({ status: 'delivered', attempts: 1 })
    expect((await getEndpoint(endpoint)).failingSince).toBeNull()
  })

  test('deleted during a redelivery are not found', async () => {
    const { app, endpoint } = await make()
    await fixture.record(app.id)
    const { id } = await only(endpoint)
    betweenRuns = () => fixture.endpoints.delete(fixture.developer, endpoint)
    const secondRedelivery = service().redeliver(fixture.developer, endpoint, id)
    expect(secondRedelivery).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await secondRedelivery.catch(() => undefined)
  })

  test('that failed in a range are requeued with a full schedule', async () => {
    const { app, endpoint } = await make()
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      fixture.clock.advance(hour)
      times.push(fixture.clock.now())
      await fixture.record(app.id)
      await work(i === 2 ? 200 : 500)
    }
    const [, since = 0, , until = 0] = times
    expect(await service().recover(fixture.developer, endpoint, { since, until })).toBe(2)
    const rows = (await fixture.deliveries(endpoint)).toSorted((a, b) => a.createdAt - b.createdAt)
    expect(rows.map(({ status }) => status)).toEqual(['failed', 'pending', 'delivered', 'pending', 'failed'])
    expect(rows[1]).toMatchObject({ attempts: 1, failures: 0, nextAttemptAt: fixture.clock.now() })
    const claimed = await claim()
    expect(claimed.map(({ id }) => id).toSorted()).toEqual([rows[1]?.id ?? '', rows[3]?.id ?? ''].toSorted())
    expect(await service().recover(fixture.developer, endpoint, { since: 0 })).toBe(2)
    expect(await service().recover(fixture.developer, endpoint, { since: fixture.clock.now() + hour })).toBe(
      0,
    )
    const backwards = service().recover(fixture.developer, endpoint, { since: until, until: since })
    expect(backwards).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: [{ path: 'until' }] })
    await backwards.catch(() => undefined)
  })

  test('requeued for a disabled endpoint wait until it is enabled', async () => {
    const { app, endpoint } = await make()
    const since = fixture.clock.now()
    await fixture.record(app.id)
    await work(500)
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'disabled' })
    expect(await service().recover(fixture.developer, endpoint, { since })).toBe(1)
    expect(await claim()).toEqual([])
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'enabled' })
    expect(await claim()).toMatchObject([{ endpointId: endpoint, failures: 0 }])
  })

  test('are all requeued, even if there are many', async () => {
    const { app, endpoint } = await make()
    const since = fixture.clock.now()
    // More than one batch of 500.
    const count = 503
    await Promise.all(Array.from({ length: count }, () => fixture.record(app.id)))
    const { webhookDeliveries } = database().tables
    await database().write(
      async (tx) => void (await tx.update(webhookDeliveries).set({ status: 'failed', nextAttemptAt: null })),
    )
    expect(await service().recover(fixture.developer, endpoint, { since })).toBe(count)
    expect(new Set((await fixture.deliveries(endpoint)).map(({ status }) => status))).toEqual(
      new Set(['pending']),
    )
  }, 300_000)

  test('and their attempts are deleted after 90 days, whatever the result, and no sooner', async () => {
    const { app, endpoint } = await make()
    for (let i = 0; i < 7; i++) await fixture.record(app.id)
    await work(500, fixture.clock.now() + 400 * 24 * hour)
    const settings = { phoneDays: 0, logDays: 90, requestDays: 0, auditDays: 0 }
    const keys = deriveKeys(new Uint8Array(masterKeyBytes))
    const retention = createRetention({ ...fixture, keys, settings })
    const purge = () => retention.purge({ batchSize: 3, yieldToRequests: () => Promise.resolve(true) })
    fixture.clock.advance(1)
    await fixture.record(app.id)
    fixture.clock.advance(90 * 24 * hour - 2)
    await purge()
    expect(await fixture.deliveries(endpoint)).toHaveLength(8)
    fixture.clock.advance(1)
    await purge()
    expect(await fixture.deliveries(endpoint)).toHaveLength(1)
    const { webhookAttempts } = database().tables
    expect(await database().read.select().from(webhookAttempts)).toEqual([])
  })

  test('complete once when a worker, a redelivery and a recovery race', async () => {
    for (let round = 0; round < Math.ceil(raceRounds(kind) / 10); round++) {
      const { app, endpoint } = await make()
      await fixture.record(app.id)
      const { id } = await only(endpoint)
      await Promise.all([
        work(round % 2 === 0 ? 200 : 500),
        service().redeliver(fixture.developer, endpoint, id),
        service().recover(fixture.developer, endpoint, { since: 0 }),
        work(200),
      ])
      await work(200)
      const [row] = await fixture.deliveries(endpoint)
      const { attempts, delivery } = await service().get(fixture.developer, endpoint, id)
      expect([row?.status, row?.leaseOwner, row?.nextAttemptAt]).toEqual(['delivered', null, null])
      expect(attempts).toHaveLength(delivery.attempts)
      fixture.clock.advance(60_000)
    }
    expect(await fixture.store.read.webhookOutbox.nextDueAt()).toBeUndefined()
  }, 300_000)
})
