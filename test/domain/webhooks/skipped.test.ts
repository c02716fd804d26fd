import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createCallLimits } from '../../../src/domain/limits/call-limits.ts'
import { FREE_PLAN } from '../../../src/domain/model/plans.ts'
import { createWebhookDeliveryService } from '../../../src/domain/webhooks/deliveries.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createWebhookFixture, type WebhookFixture, unsharedPermits } from './fixture.ts'

const url = 'http://127.0.0.1:9/'
const minute = 60_000

describeEachDatabase('events of a disabled endpoint', (database) => {
  let fixture: WebhookFixture
  let endpoint: string
  let appId: string

  beforeAll(async () => {
    fixture = await createWebhookFixture(database())
  })
  beforeEach(async () => {
    await database().write(async (tx) => void (await tx.delete(database().tables.webhookEndpoints)))
    appId = (await fixture.createApplication()).id
    endpoint = await fixture.createEndpoint(appId, url)
  })

  const setStatus = (status: 'enabled' | 'disabled') =>
    fixture.endpoints.update(fixture.developer, endpoint, { status })
  const service = () => {
    const { store, clock } = fixture
    const callLimits = createCallLimits({ clock, plans: { free: FREE_PLAN } })
    const send = () => Promise.reject(new Error('nothing is sent here'))
    return createWebhookDeliveryService({ store, clock, send, callLimits })
  }
  const recover = (since = 0) => service().recover(fixture.developer, endpoint, { since })
  const list = async (filter: object = {}) =>
    (await service().list(fixture.developer, endpoint, filter, { limit: 200 })).items
  const statuses = async () => (await list()).map(({ status }) => status)
  const claim = () => {
    const now = fixture.clock.now()
    return fixture.store.write((tx) =>
      tx.webhookOutbox.claim({ owner: 'a', now, leaseUntil: now + 30_000, permits: unsharedPermits() }),
    )
  }
  /** Fails all due deliveries; the next attempt is `retryMs` later. */
  async function failDue(retryMs: number) {
    for (let claimed = await claim(); claimed.length > 0; claimed = await claim()) {
      for (const one of claimed) {
        const now = fixture.clock.now()
        const result = { statusCode: 500, error: 'bad_status' as const, durationMs: 1, body: '' }
        const attempt = { at: now, request: null, ...result }
        await fixture.store.write((tx) =>
          tx.webhookOutbox.finish({ ...one, owner: 'a', attempt, retryAt: now + retryMs, now }),
        )
      }
    }
  }

  test('are kept as skipped deliveries, and sent after a recovery', async () => {
    await fixture.record(appId)
    await setStatus('disabled')
    fixture.clock.advance(minute)
    const skipped = await fixture.record(appId)
    expect(await statuses()).toEqual(['skipped', 'pending'])
    expect(await list({ status: 'skipped' })).toMatchObject([
      { eventId: skipped, status: 'skipped', attempts: 0, nextAttemptAt: null },
    ])
    expect(await list({ status: 'skipped', type: 'otp.failed' })).toEqual([])
    await setStatus('enabled')
    expect(await claim()).toHaveLength(1)
    expect(await recover()).toBe(1)
    expect(await list({ status: 'skipped' })).toEqual([])
    const [first] = await claim()
    const loaded = await fixture.store.read.webhookOutbox.load(first ? [first] : [])
    expect(loaded).toMatchObject([{ id: skipped, body: expect.stringContaining(skipped) }])
  })

  test('wait for the endpoint if they are recovered before it is enabled', async () => {
    await setStatus('disabled')
    await fixture.record(appId)
    expect(await recover()).toBe(1)
    expect(await statuses()).toEqual(['pending'])
    expect(await claim()).toEqual([])
    await setStatus('enabled')
    expect(await claim()).toHaveLength(1)
  })

  test('are recovered since a time', async () => {
    await setStatus('disabled')
    await fixture.record(appId)
    fixture.clock.advance(10 * minute)
    await fixture.record(appId)
    expect(await recover(fixture.clock.now() - minute)).toBe(1)
    expect(await statuses()).toEqual(['pending', 'skipped'])
  })

  test('may be more than one transaction recovers, as those that wait for a retry', async () => {
    const count = 510
    const { webhookDeliveries } = database().tables
    await fixture.record(appId)
    const [one] = await database().read.select().from(webhookDeliveries)
    if (!one) throw new Error('there is no delivery')
    // Their retries are due at the same time, so that only the id tells them apart.
    const waiting = { ...one, failures: 3, nextAttemptAt: fixture.clock.now() + 60 * minute }
    const skipped = { ...one, status: 'skipped' as const, nextAttemptAt: null }
    await database().write(async (tx) => {
      for (const row of [waiting, skipped]) {
        const rows = Array.from({ length: count }, () => ({ ...row, id: fixture.newId('dlv') }))
        await tx.insert(webhookDeliveries).values(rows)
      }
    })
    expect(await recover()).toBe(2 * count)
    expect(await recover()).toBe(0)
    const rows = (await fixture.deliveries(endpoint)).filter(({ id }) => id !== one.id)
    expect(new Set(rows.map(({ status, failures }) => `${status} ${failures}`))).toEqual(
      new Set(['pending 0']),
    )
    expect(await claim()).toHaveLength(2)
  })

  test('a recovery sends deliveries that wait for a retry at once, and no others twice', async () => {
    await fixture.record(appId)
    await failDue(60 * minute)
    await fixture.record(appId)
    expect(await recover()).toBe(1)
    const now = fixture.clock.now()
    expect((await list()).map(({ nextAttemptAt }) => nextAttemptAt)).toEqual([now, now])
    const [claimed] = (await claim()).toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(claimed).toMatchObject({ failures: 0 })
    // Leased deliveries are being sent.
    expect(await recover()).toBe(0)
  })

  test('are all there, each once, however often it is disabled meanwhile', async () => {
    for (let round = 0; round < 5; round++) {
      const before = (await fixture.deliveries(endpoint)).length
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          if (i % 5 === 0) await setStatus(i % 2 === 0 ? 'disabled' : 'enabled')
          else await fixture.record(appId)
        }),
      )
      const deliveries = await fixture.deliveries(endpoint)
      expect(deliveries).toHaveLength(before + 16)
      expect(new Set(deliveries.map(({ eventSeq }) => eventSeq)).size).toBe(before + 16)
      await setStatus('disabled')
      await fixture.record(appId)
      expect((await statuses())[0]).toBe('skipped')
      await fixture.store.write((tx) => tx.webhookDeliveries.deleteOldest(fixture.clock.now(), 1_000))
      await setStatus('enabled')
    }
  })
})
