import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { LeasedDelivery } from '../../../src/domain/store/webhook-outbox.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createWebhookFixture, type WebhookFixture, unsharedPermits } from './fixture.ts'

const url = 'http://127.0.0.1:9/'
const leaseMs = 30_000

// On PostgreSQL deliveries are not leased when they are inserted: a worker of any node takes them.
describe('a lease at insertion on SQLite', () => {
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  const database = () => opened.database
  afterAll(() => opened.dispose())
  const leaseUntil = (now: number) => now + leaseMs
  let isOffered = true
  const pushed: LeasedDelivery[] = []
  let fixture: WebhookFixture
  beforeAll(async () => {
    opened = await openTestSqlite()
    fixture = await createWebhookFixture(database(), {
      offerLease: (now) => (isOffered ? { owner: 'queue', leaseUntil: leaseUntil(now) } : undefined),
      push: (deliveries) => void pushed.push(...deliveries),
    })
  })
  beforeEach(async () => {
    isOffered = true
    pushed.length = 0
    await database().write(async (tx) => void (await tx.delete(database().tables.webhookEndpoints)))
  })

  const createEndpoint = async () => {
    const app = await fixture.createApplication()
    return { app, endpointId: await fixture.createEndpoint(app.id, url) }
  }
  const finishPushed = (error: 'bad_status' | null, retryAt: number | null = null) => {
    const [leased] = pushed.splice(0, 1)
    if (!leased) throw new Error('nothing was leased')
    const now = fixture.clock.now()
    const attempt = { at: now, statusCode: error ? 500 : 200, error, request: null, durationMs: 1, body: '' }
    const outcome = { ...leased, owner: 'queue', attempt, retryAt, now }
    return fixture.store.write((tx) => tx.webhookOutbox.finish(outcome))
  }
  const claimAll = async (owner = 'claimer') => {
    const now = fixture.clock.now()
    const request = { owner, now, leaseUntil: leaseUntil(now), permits: unsharedPermits() }
    return fixture.store.write((tx) => tx.webhookOutbox.claim(request))
  }

  test('is given to two deliveries of an endpoint, with their messages', async () => {
    const { app, endpointId } = await createEndpoint()
    const events: string[] = []
    for (let i = 0; i < 3; i++) events.push(await fixture.record(app.id))
    const lease = { endpointId, claim: 1, failures: 0, leaseUntil: leaseUntil(fixture.clock.now()) }
    expect(pushed).toMatchObject(events.slice(0, 2).map((id) => ({ ...lease, payload: { id } })))
    const stored = pushed.map(({ id, endpointId: owner }) => ({ id, endpointId: owner }))
    const { webhookOutbox } = fixture.store.read
    expect(await webhookOutbox.load(pushed)).toEqual(await webhookOutbox.load(stored))
    const waiting = (await fixture.deliveries(endpointId)).filter(({ leaseOwner }) => leaseOwner === null)
    expect(waiting).toMatchObject([{ eventId: events[2], claims: 0 }])
    expect(await claimAll()).toEqual([])
    await finishPushed(null)
    expect(await claimAll()).toMatchObject([{ id: waiting[0]?.id, claim: 1 }])
  })

  test('never lets a delivery overtake those that wait', async () => {
    const { app, endpointId } = await createEndpoint()
    for (let i = 0; i < 3; i++) await fixture.record(app.id)
    await finishPushed(null)
    await fixture.record(app.id)
    expect(pushed).toHaveLength(1)
    expect(await claimAll()).toHaveLength(1)
    isOffered = false
    await finishPushed(null)
    const rows = await fixture.deliveries(endpointId)
    expect(rows.filter(({ leaseOwner }) => leaseOwner !== null)).toMatchObject([{ leaseOwner: 'claimer' }])
  })

  test('is not given while the endpoint fails, or while none is offered', async () => {
    const { app } = await createEndpoint()
    await fixture.record(app.id)
    await finishPushed('bad_status', fixture.clock.now() + 5_000)
    await fixture.record(app.id)
    expect(pushed).toEqual([])
    expect(await claimAll()).toHaveLength(1)
    const other = await createEndpoint()
    isOffered = false
    await fixture.record(other.app.id)
    expect(pushed).toEqual([])
    expect(await claimAll()).toMatchObject([{ endpointId: other.endpointId }])
  })

  test('expires like any other', async () => {
    const { app } = await createEndpoint()
    await fixture.record(app.id)
    const now = fixture.clock.now()
    expect(await fixture.store.read.webhookOutbox.nextDueAt()).toBe(leaseUntil(now))
    fixture.clock.advance(leaseMs)
    expect(await claimAll()).toMatchObject([{ id: pushed[0]?.id, claim: 2 }])
    await finishPushed(null)
    expect(await fixture.store.read.webhookOutbox.nextDueAt()).toBe(leaseUntil(fixture.clock.now()))
  })

  test('is given to at most two by concurrent transactions, and no delivery is overlooked', async () => {
    const { app, endpointId } = await createEndpoint()
    await Promise.all(Array.from({ length: 20 }, () => fixture.record(app.id)))
    expect(pushed).toHaveLength(2)
    for (let left = 20; left > 0; left--) {
      const rows = await fixture.deliveries(endpointId)
      expect(rows.filter(({ leaseOwner }) => leaseOwner !== null)).toHaveLength(Math.min(2, left))
      await finishPushed(null)
      pushed.push(...((await claimAll('queue')) as LeasedDelivery[]))
    }
    expect((await fixture.deliveries(endpointId)).every(({ status }) => status === 'delivered')).toBe(true)
  }, 300_000)
})
