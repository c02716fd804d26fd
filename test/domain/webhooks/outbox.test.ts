import { beforeAll, beforeEach, expect, test } from 'bun:test'
import type { DeliveryClaim } from '../../../src/domain/store/webhook-outbox.ts'
import { describeEachDatabase, raceRounds } from '../../helpers/databases.ts'
import { createWebhookFixture, type WebhookFixture, unsharedPermits } from './fixture.ts'

const url = 'http://127.0.0.1:9/'
const leaseMs = 30_000

describeEachDatabase('the outbox', (database, kind) => {
  let fixture: WebhookFixture
  beforeAll(async () => {
    fixture = await createWebhookFixture(database())
  })
  beforeEach(() => database().write(async (tx) => void (await tx.delete(database().tables.webhookEndpoints))))

  const claim = (owner: string, limit = 50) => {
    const now = fixture.clock.now()
    return fixture.store.write((tx) =>
      tx.webhookOutbox.claim({ owner, now, leaseUntil: now + leaseMs, permits: unsharedPermits(limit) }),
    )
  }
  const finish = (owner: string, claimed: DeliveryClaim, statusCode = 200, retryAt: number | null = null) => {
    const error = statusCode === 200 ? null : ('bad_status' as const)
    const now = fixture.clock.now()
    const attempt = { at: now - 7, statusCode, error, request: null, durationMs: 7, body: 'words' }
    return fixture.store.write((tx) => tx.webhookOutbox.finish({ ...claimed, owner, attempt, retryAt, now }))
  }
  /** Lists the deliveries leased by a worker, as claims whose response was lost. */
  const listLeasedBy = async (owner: string): Promise<Array<DeliveryClaim & { owner: string }>> => {
    const rows = await database().read.select().from(database().tables.webhookDeliveries)
    const leased = rows.filter(({ leaseOwner }) => leaseOwner === owner)
    return leased.map((row) => ({ ...row, claim: row.claims, owner }))
  }
  const getEndpoint = (id: string) => fixture.endpoints.get(fixture.developer, id)

  test('gets one row per endpoint that subscribed to the event', async () => {
    const app = await fixture.createApplication()
    const other = await fixture.createApplication()
    const all = await fixture.createEndpoint(app.id, url)
    const some = await fixture.createEndpoint(app.id, url, ['otp.failed', 'otp.verified'])
    const none = await fixture.createEndpoint(app.id, url, ['otp.sent'])
    const foreign = await fixture.createEndpoint(other.id, url)
    const disabled = await fixture.createEndpoint(app.id, url)
    await fixture.endpoints.update(fixture.developer, disabled, { status: 'disabled' })
    const eventId = await fixture.record(app.id)
    const found = await Promise.all([all, some, none, foreign, disabled].map((id) => fixture.deliveries(id)))
    expect(found.map((rows) => rows.length)).toEqual([1, 1, 0, 0, 1])
    expect(found[4]?.[0]).toMatchObject({ eventId, status: 'skipped', nextAttemptAt: null })
    expect(found[0]?.[0]).toMatchObject({ eventId, status: 'pending', attempts: 0 })
  })

  test('leases at most two deliveries per endpoint, oldest first, across workers', async () => {
    const app = await fixture.createApplication()
    const first = await fixture.createEndpoint(app.id, url)
    const second = await fixture.createEndpoint(app.id, url)
    const events: string[] = []
    for (let i = 0; i < 4; i++) {
      events.push(await fixture.record(app.id))
      fixture.clock.advance(1)
    }
    expect(await claim('a', 1)).toHaveLength(1)
    const claimed = [...(await claim('b')), ...(await claim('a')), ...(await claim('c'))]
    const leasedRows = (await fixture.deliveries(first)).filter(({ leaseOwner }) => leaseOwner !== null)
    expect(leasedRows.map(({ eventId }) => eventId).toSorted()).toEqual(events.slice(0, 2).toSorted())
    expect(claimed).toHaveLength(3)
    const [one] = claimed.filter(({ endpointId }) => endpointId === second)
    if (!one) throw new Error('nothing was claimed')
    await finish('b', one)
    const next = await claim('c')
    expect(next).toMatchObject([{ endpointId: second }])
    const row = (await fixture.deliveries(second)).find(({ id }) => id === next[0]?.id)
    expect(row?.eventId).toBe(events[2])
  })

  test('leases every row exactly once to concurrent workers', async () => {
    const app = await fixture.createApplication()
    const endpoints = await Promise.all(Array.from({ length: 8 }, () => fixture.createEndpoint(app.id, url)))
    for (let round = 0; round < 20; round++) await fixture.record(app.id)
    const claimedIds: string[] = []
    for (let empty = 0; empty < 2;) {
      const workers = Array.from({ length: 12 }, (_, i) => `worker-${i}`)
      const claims = await Promise.all(
        workers.map(async (owner) => {
          const claimed = await claim(owner, 3)
          for (const one of claimed) await finish(owner, one)
          return claimed
        }),
      )
      claimedIds.push(...claims.flat().map(({ id }) => id))
      if (claims.flat().length === 0) empty++
    }
    expect(claimedIds).toHaveLength(8 * 20)
    expect(new Set(claimedIds).size).toBe(8 * 20)
    for (const id of endpoints) {
      const rows = await fixture.deliveries(id)
      expect(
        rows.every(({ status, attempts, claims }) => status === 'delivered' && attempts + claims === 2),
      ).toBe(true)
    }
  })

  test('leases nothing before it is due, and again when a lease has expired', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const [leased] = await claim('dead')
    expect(leased).toMatchObject({ endpointId: endpoint, claim: 1 })
    fixture.clock.advance(leaseMs - 1)
    expect(await claim('b')).toEqual([])
    fixture.clock.advance(1)
    const reclaimed = (await claim('b')).find(({ id }) => id === leased?.id)
    expect(reclaimed).toMatchObject({ claim: 2 })
  })

  test('rejects the result of a worker that has lost its lease', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const [lateClaim] = (await claim('late')).filter(({ endpointId }) => endpointId === endpoint)
    fixture.clock.advance(leaseMs)
    const [currentClaim] = (await claim('holder')).filter(({ endpointId }) => endpointId === endpoint)
    if (!lateClaim || !currentClaim) throw new Error('nothing was claimed')
    await finish('late', lateClaim, 500)
    await finish('holder', lateClaim, 500)
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      { status: 'pending', attempts: 0, claims: 2, leaseOwner: 'holder' },
    ])
    expect((await getEndpoint(endpoint)).failingSince).toBeNull()
    await finish('holder', currentClaim)
    await finish('holder', currentClaim, 500)
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      {
        status: 'delivered',
        attempts: 1,
        lastStatusCode: 200,
        lastError: null,
        nextAttemptAt: null,
        leaseOwner: null,
      },
    ])
  })

  test('releases all leases when their process is known to be gone', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const [leased] = await claim('dead')
    await fixture.store.write((tx) => tx.webhookOutbox.releaseAll())
    if (leased) await finish('dead', leased, 500)
    const reclaimed = (await claim('next')).filter(({ endpointId }) => endpointId === endpoint)
    expect(reclaimed).toMatchObject([{ claim: 2 }])
  })

  test("updates the endpoint's last success and failing time", async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    const attempt = async (statusCode: number) => {
      await fixture.record(app.id)
      fixture.clock.advance(1_000)
      const claimed = (await claim('a')).find(({ endpointId }) => endpointId === endpoint)
      if (claimed) await finish('a', claimed, statusCode)
      return fixture.clock.now()
    }
    const succeeded = await attempt(200)
    const failed = await attempt(500)
    await attempt(500)
    expect(await getEndpoint(endpoint)).toMatchObject({
      lastDeliveryAt: succeeded,
      failingSince: failed,
    })
    const recovered = await attempt(200)
    expect(await getEndpoint(endpoint)).toMatchObject({ lastDeliveryAt: recovered, failingSince: null })
  })

  test('serves healthy endpoints before failing ones', async () => {
    const app = await fixture.createApplication()
    const failing = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const [first] = (await claim('a')).filter(({ endpointId }) => endpointId === failing)
    if (first) await finish('a', first, 500)
    const working = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    expect(await claim('a', 1)).toMatchObject([{ endpointId: working }])
    expect(await claim('a', 1)).toMatchObject([{ endpointId: failing }])
  })

  test('gives developers turns, live applications before test ones', async () => {
    const developers = [fixture.developer, await fixture.makeDeveloper(), await fixture.makeDeveloper()]
    const environments = ['live', 'live', 'test'] as const
    const apps: string[] = []
    for (const [index, developer] of developers.entries())
      apps.push((await fixture.createApplication(environments[index], developer)).id)
    const [busy = '', quiet = '', testing = ''] = apps
    for (const appId of [testing, busy, busy, busy, quiet]) await fixture.createEndpoint(appId, url)
    for (const appId of [testing, busy, quiet]) {
      await fixture.record(appId)
      fixture.clock.advance(1)
    }
    const claimedBy = async (permits: number) =>
      (await claim('a', permits)).map(({ developerId }) =>
        developers.findIndex(({ id }) => id === developerId),
      )
    expect((await claimedBy(2)).toSorted()).toEqual([0, 1])
    expect((await claimedBy(2)).toSorted()).toEqual([0, 0])
    expect(await claimedBy(2)).toEqual([2])
  })

  test('keeps the deliveries of a disabled endpoint until it is enabled', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'disabled' })
    expect(await claim('a')).toEqual([])
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'enabled' })
    expect(await claim('a')).toMatchObject([{ endpointId: endpoint }])
  })

  test('loads messages with the current URL and secret', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    const eventId = await fixture.record(app.id)
    const [claimed] = await claim('a')
    if (!claimed) throw new Error('nothing was claimed')
    // Once as stored, and once with the payload that a lease at the insertion has, on SQLite.
    const payload = { id: eventId, body: '{}' }
    const load = async () => {
      const { webhookOutbox } = fixture.store.read
      const [stored] = await webhookOutbox.load([claimed])
      const [pushed] = await webhookOutbox.load([{ ...claimed, payload }])
      const { body } = kind === 'SQLite' ? payload : (stored ?? payload)
      expect(pushed).toEqual(stored && { ...stored, body })
      return stored
    }
    const before = await load()
    expect(before).toMatchObject({ id: eventId, url, secret: app.webhookSecret })
    expect(JSON.parse(before?.body ?? '')).toMatchObject({ id: eventId, type: 'otp.verified' })
    const { value } = await fixture.applications.rotate(fixture.developer, app.id, 'webhook_secret')
    await fixture.endpoints.update(fixture.developer, endpoint, { url: 'http://127.0.0.1:10/' })
    const after = await load()
    expect(after).toEqual({
      ...before,
      secret: value,
      url: 'http://127.0.0.1:10/',
    } as never)
    await fixture.endpoints.update(fixture.developer, endpoint, { status: 'disabled' })
    expect(await load()).toBeUndefined()
  })

  test('leases a retry when it is due, and reports when that is', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const now = fixture.clock.now()
    const nextDueAt = () => fixture.store.read.webhookOutbox.nextDueAt()
    expect(await nextDueAt()).toBe(now)
    const [first] = await claim('a')
    expect(await nextDueAt()).toBe(now + leaseMs)
    if (first) await finish('a', first, 500, now + 5_000)
    expect(await nextDueAt()).toBe(now + 5_000)
    expect(await fixture.deliveries(endpoint)).toMatchObject([
      { status: 'pending', attempts: 1, failures: 1, lastStatusCode: 500, nextAttemptAt: now + 5_000 },
    ])
    fixture.clock.advance(4_999)
    expect(await claim('a')).toEqual([])
    fixture.clock.advance(1)
    const [second] = await claim('a')
    expect(second).toMatchObject({ id: first?.id, failures: 1, claim: 2 })
    if (second) await finish('a', second, 503)
    expect(await nextDueAt()).toBeUndefined()
    expect(await fixture.deliveries(endpoint)).toMatchObject([{ status: 'failed', attempts: 2, failures: 2 }])
    expect(await fixture.store.read.webhookDeliveries.attempts(first?.id ?? '')).toEqual([
      { at: now - 7, statusCode: 500, error: 'bad_status', request: null, durationMs: 7, body: 'words' },
      { at: now + 4_993, statusCode: 503, error: 'bad_status', request: null, durationMs: 7, body: 'words' },
    ])
  })

  test('takes back an unsent delivery without counting an attempt', async () => {
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    const [leased] = await claim('a')
    if (!leased) throw new Error('nothing was claimed')
    await fixture.store.write((tx) => tx.webhookOutbox.release({ ...leased, owner: 'a' }))
    expect(await claim('b')).toMatchObject([{ id: leased.id, claim: 2 }])
    await fixture.store.write((tx) => tx.webhookOutbox.release({ ...leased, owner: 'a' }))
    expect(await fixture.deliveries(endpoint)).toMatchObject([{ leaseOwner: 'b', attempts: 0 }])
  })

  test('never misses a delivery that is inserted while another finishes', async () => {
    const { id: appId } = await fixture.createApplication()
    await fixture.createEndpoint(appId, url)
    for (let round = 0; round < raceRounds(kind); round++) {
      await fixture.record(appId)
      const [leased] = await claim('a')
      if (!leased) throw new Error('nothing was claimed')
      await Promise.all([finish('a', leased), fixture.record(appId), claim('b')])
      await claim('a')
      const [next] = [...(await listLeasedBy('a')), ...(await listLeasedBy('b'))]
      if (!next) throw new Error('a delivery was overlooked')
      await finish(next.owner, next)
    }
  }, 300_000)

  test('deletes pending deliveries with their endpoint or application', async () => {
    const app = await fixture.createApplication()
    const deleted = await fixture.createEndpoint(app.id, url)
    const deletedEndpoint = await fixture.createEndpoint(app.id, url)
    await fixture.record(app.id)
    await fixture.endpoints.delete(fixture.developer, deleted)
    expect(await fixture.deliveries(deleted)).toEqual([])
    expect(await fixture.deliveries(deletedEndpoint)).toHaveLength(1)
    await fixture.applications.delete(fixture.developer, app.id)
    expect(await fixture.deliveries(deletedEndpoint)).toEqual([])
  })
})

describeEachDatabase('the endpoint limit', (database) => {
  test('is exact for concurrent creations', async () => {
    const fixture = await createWebhookFixture(database())
    const endpoints = fixture.createEndpointService(5)
    for (let round = 0; round < 10; round++) {
      const app = await fixture.createApplication()
      const created = await Promise.allSettled(
        Array.from({ length: 20 }, () =>
          endpoints.create(fixture.developer, { appId: app.id, url, events: ['*'] }),
        ),
      )
      expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
      const page = await endpoints.list(fixture.developer, app.id, { limit: 50 })
      expect(page.items).toHaveLength(5)
    }
  })

  test('counts each application separately', async () => {
    const fixture = await createWebhookFixture(database())
    const endpoints = fixture.createEndpointService(1)
    for (let i = 0; i < 2; i++) {
      const { id: appId } = await fixture.createApplication()
      await endpoints.create(fixture.developer, { appId, url, events: ['*'] })
      const secondCreate = endpoints.create(fixture.developer, { appId, url, events: ['*'] })
      expect(secondCreate).rejects.toMatchObject({ code: 'ENDPOINT_LIMIT_REACHED', metadata: { limit: 1 } })
      await secondCreate.catch(() => undefined)
    }
  })

  test('leaves no endpoint of an application that is deleted concurrently', async () => {
    const fixture = await createWebhookFixture(database())
    for (let round = 0; round < 20; round++) {
      const app = await fixture.createApplication()
      const creations = Array.from({ length: 3 }, () =>
        fixture.endpoints.create(fixture.developer, { appId: app.id, url, events: ['*'] }),
      )
      const outcomes = await Promise.allSettled([
        ...creations,
        fixture.applications.delete(fixture.developer, app.id),
      ])
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'NOT_FOUND' })
      }
      expect((await fixture.endpoints.list(fixture.developer, app.id, { limit: 50 })).items).toEqual([])
    }
  })
})
