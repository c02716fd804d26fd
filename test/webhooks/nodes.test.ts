import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { SendWebhook } from '../../src/domain/model/webhook-delivery.ts'
import { createStore } from '../../src/store/store.ts'
import { createWebhookWorker } from '../../src/webhooks/worker.ts'
import { openPatientPostgres, openTestPostgres } from '../helpers/databases.ts'
import { createWebhookFixture, type WebhookFixture, unsharedPermits } from '../domain/webhooks/fixture.ts'
import { waitUntil } from './worker-fixture.ts'
import { testKeys } from '../helpers/keys.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL']
const target = 'http://127.0.0.1:9/'

describe.skipIf(url === undefined)('workers of several nodes on PostgreSQL', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let fixture: WebhookFixture
  const cleanups: Array<() => Promise<unknown>> = []
  const errors: unknown[] = []
  beforeAll(async () => {
    opened = await openTestPostgres(url ?? '')
    fixture = await createWebhookFixture(opened.database)
  })
  afterAll(() => opened.dispose())
  beforeEach(() =>
    opened.database.write(async (tx) => void (await tx.delete(opened.database.tables.webhookEndpoints))),
  )
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
    expect(errors.splice(0)).toEqual([])
  })

  /** Acts as a separate process towards the database. */
  async function startNode(send: SendWebhook) {
    const database = openPatientPostgres(opened.url)
    const { clock } = fixture
    const store = createStore(database, {
      keys: testKeys,
      clock,
      onDelivery: () => worker.wake(),
      deliveryQueue: {
        offerLease: (now, use) => worker.offerLease(now, use),
        push: (deliveries) => worker.push(deliveries),
      },
    })
    const worker = createWebhookWorker({
      store,
      send,
      clock,
      random: () => 0.5,
      ownsAllLeases: false,
      onError: (error) => void errors.push(error),
      pollMs: 20,
    })
    cleanups.push(async () => {
      await worker.stop(0)
      await database.close()
    })
    await worker.start()
    return worker
  }

  const attemptResult = (statusCode: number) => ({
    statusCode,
    error: statusCode === 200 ? null : ('bad_status' as const),
    request: null,
    durationMs: 1,
    body: '',
    retryAfterMs: null,
  })
  const statuses = async (ids: string[]) => (await Promise.all(ids.map(fixture.deliveries))).flat()

  test('send each event once to each endpoint, at most two at a time, while events are written', async () => {
    const { id: appId } = await fixture.createApplication()
    const endpoints: string[] = []
    for (let i = 0; i < 5; i++) endpoints.push(await fixture.createEndpoint(appId, `${target}${i}`))
    const sent: string[] = []
    const underWay = new Map<string, number>()
    let most = 0
    const send: SendWebhook = async ({ id, url }) => {
      sent.push(`${url} ${id}`)
      underWay.set(url, (underWay.get(url) ?? 0) + 1)
      most = Math.max(most, underWay.get(url) ?? 0)
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
      underWay.set(url, (underWay.get(url) ?? 0) - 1)
      return attemptResult(200)
    }
    for (let i = 0; i < 4; i++) await startNode(send)
    for (let i = 0; i < 100; i++) await fixture.record(appId)
    await waitUntil(async () => (await statuses(endpoints)).every(({ status }) => status === 'delivered'))
    expect(sent).toHaveLength(500)
    expect(new Set(sent).size).toBe(500)
    expect(most).toBeLessThanOrEqual(2)
  }, 300_000)

  test('disable an endpoint once, while events are written', async () => {
    const { id: appId } = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(appId, target)
    for (let i = 0; i < 3; i++) await startNode(async () => attemptResult(410))
    await Promise.all(Array.from({ length: 20 }, () => fixture.record(appId)))
    await waitUntil(
      async () => (await fixture.endpoints.get(fixture.developer, endpoint)).status === 'disabled',
    )
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
    const log = await fixture.store.read.events.list(fixture.developer.id, { limit: 200 })
    const disabled = log.filter(({ detail }) => detail === `${endpoint} gone`)
    expect(disabled).toHaveLength(1)
  }, 300_000)

  test('take over the deliveries of a crashed node', async () => {
    const { id: appId } = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(appId, target)
    const eventId = await fixture.record(appId)
    const now = fixture.clock.now()
    const claim = { owner: 'dead', now, leaseUntil: now + 30_000, permits: unsharedPermits() }
    await fixture.store.write((tx) => tx.webhookOutbox.claim(claim))
    const sent: string[] = []
    const worker = await startNode(async ({ id }) => {
      sent.push(id)
      return attemptResult(200)
    })
    await worker.whenIdle()
    expect(sent).toEqual([])
    fixture.clock.advance(30_000)
    await waitUntil(async () => (await statuses([endpoint]))[0]?.status === 'delivered')
    expect(sent).toEqual([eventId])
  }, 300_000)
})
