import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'
import { startReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper
let receiver: WebhookReceiver

beforeAll(async () => {
  service = await createTestService({
    plans: unlimitedPlans,
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1/32' },
  })
  owner = await service.createDeveloper()
  receiver = await startReceiver(({ path }) =>
    path === '/bad' ? new Response('out of order', { status: 503 }) : new Response('ok'),
  )
})
afterAll(async () => {
  await receiver.stop()
  await service.dispose()
})

type Delivery = { id: string; eventId: string; status: string; attempts: number }
type SentRequest = { url: string; headers: Record<string, string>; body: string | null }
type Detail = Omit<Delivery, 'attempts'> & { attempts: object[] }

const call = <T = unknown>(method: string, path: string, body?: unknown, as = owner) =>
  service.request<T>(method, `/v1/webhooks/${path}`, { as, body })

/** Creates an endpoint with `count` pending deliveries. No worker runs in this test. */
async function make(path = '', count = 1) {
  const app = await service.createApplication(owner, { environment: 'test' })
  const body = { appId: app.id, url: `${receiver.url}${path}`, events: ['*'] }
  const { id } = (await service.request<{ id: string }>('POST', '/v1/webhooks', { as: owner, body })).data
  for (let i = 0; i < count; i++) {
    service.clock.advance(1)
    await service.request('POST', '/v1/otp/send', { as: app, body: { phone: '+14155550123' } })
  }
  const list = (await call<Delivery[]>('GET', `${id}/deliveries`)).data
  return { app, id, list, first: list[0] ?? { id: '', eventId: '' } }
}

describe('GET /v1/webhooks/:id/deliveries', () => {
  test('returns pending deliveries', async () => {
    const { id, list } = await make()
    const now = new Date(service.clock.now()).toISOString()
    expect(list).toEqual([
      {
        id: expect.stringMatching(/^dlv_[0-9a-z]{26}$/),
        eventId: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
        type: 'otp.sent',
        status: 'pending',
        attempts: 0,
        lastStatusCode: null,
        lastError: null,
        nextAttemptAt: now,
        createdAt: now,
        deliveredAt: null,
      },
    ] as never)
    expect((await call('GET', `${id}/deliveries?status=failed`)).data).toEqual([])
    expect((await call('GET', `${id}/deliveries?type=otp.sent&status=pending`)).data).toEqual(list)
  })

  test('is paginated', async () => {
    const { id, list } = await make('', 3)
    const first = await call('GET', `${id}/deliveries?limit=2`)
    expect(first.data).toEqual(list.slice(0, 2))
    const { nextCursor } = first.pagination
    const second = await call('GET', `${id}/deliveries?limit=2&cursor=${nextCursor}`)
    expect([second.data, second.pagination.nextCursor]).toEqual([list.slice(2), null])
    expect((await call('GET', `${id}/deliveries?cursor=${nextCursor}x`)).error.reason).toBe('CURSOR_INVALID')
  })

  test.each(['status=done', 'type=otp.unknown', 'type=*'])('rejects %s', async (query) => {
    const { id } = await make()
    const response = await call('GET', `${id}/deliveries?${query}`)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  })
})

describe('POST …/redeliver', () => {
  test('sends immediately and returns every attempt', async () => {
    const { id, first } = await make('/bad')
    const before = receiver.received.length
    const response = await call<Detail>('POST', `${id}/deliveries/${first.id}/redeliver`)
    expect(response.status).toBe(200)
    expect(receiver.received.slice(before).map(({ headers }) => headers['webhook-id'])).toEqual([
      first.eventId,
    ])
    expect(response.data).toMatchObject({
      id: first.id,
      status: 'pending',
      lastStatusCode: 503,
      lastError: 'bad_status',
      attempts: [
        {
          at: new Date(service.clock.now()).toISOString(),
          statusCode: 503,
          error: 'bad_status',
          durationMs: expect.any(Number),
          body: 'out of order',
        },
      ],
    })
    expect((await call('GET', `${id}/deliveries/${first.id}`)).data).toEqual(response.data)
  })

  test('shows the request as it was sent, with the values of own headers masked', async () => {
    const { id, first } = await make()
    const path = `${id}/deliveries/${first.id}`
    expect((await call('GET', path)).data).toMatchObject({ request: null })
    await call('PATCH', id, { headers: { Authorization: 'Bearer s3cret', 'X-Team': 'shop' } })
    const before = receiver.received.length
    const response = await call<Detail & { request: SentRequest }>('POST', `${path}/redeliver`)
    const received = receiver.received[before]
    const { connection: _, ...headers } = received?.headers ?? {}
    expect(headers).toMatchObject({ authorization: 'Bearer s3cret', 'x-team': 'shop' })
    expect(response.data.request).toEqual({
      url: receiver.url,
      headers: { ...headers, authorization: '****', 'x-team': '****' } as Record<string, string>,
      body: received?.body ?? '',
    })
    expect(response.text).not.toContain('s3cret')
    // Later changes of the endpoint do not alter it.
    await call('PATCH', id, { headers: { 'X-Team': null } })
    expect((await call('GET', path)).data).toEqual(response.data)
  })

  test('is limited to 60 per minute across all endpoints of a developer', async () => {
    const other = await service.createDeveloper()
    const app = await service.createApplication(other, { environment: 'test' })
    const body = { appId: app.id, url: 'http://127.0.0.1:9/', events: ['*'] }
    const createdEndpoint = await service.request<{ id: string }>('POST', '/v1/webhooks', { as: other, body })
    await service.request('POST', '/v1/otp/send', { as: app, body: { phone: '+14155550123' } })
    const [delivery] = (
      await call<Delivery[]>('GET', `${createdEndpoint.data.id}/deliveries`, undefined, other)
    ).data
    const path = `${createdEndpoint.data.id}/deliveries/${delivery?.id}/redeliver`
    const responses = await Promise.all(
      Array.from({ length: 61 }, () => call('POST', path, undefined, other)),
    )
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(60)
    const refused = responses.find(({ status }) => status === 429)
    expect(refused?.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'WEBHOOK_REDELIVERIES' })
    expect(refused?.headers.get('retry-after')).toBe('60')
  })
})

describe('POST /v1/webhooks/:id/recover', () => {
  const fail = (endpointId: string) => {
    const { webhookDeliveries } = service.database.tables
    return service.database.write(async (tx) => {
      const rows = await tx.select().from(webhookDeliveries)
      if (!rows.some((row) => row.endpointId === endpointId)) throw new Error('nothing waits')
      await tx.update(webhookDeliveries).set({ status: 'failed', nextAttemptAt: null })
    })
  }

  test('requeues deliveries that failed since a time', async () => {
    const { id } = await make('', 2)
    await fail(id)
    const since = new Date(service.clock.now()).toISOString()
    const response = await call('POST', `${id}/recover`, { since })
    expect([response.status, response.data]).toEqual([200, { recovered: 1 }])
    const until = '2026-11-20T13:00:00+01:00'
    expect((await call('POST', `${id}/recover`, { since: '2020-01-01T00:00:00Z', until })).data).toEqual({
      recovered: 0,
    })
    expect((await call('POST', `${id}/recover`, { since: '2020-01-01T00:00:00Z' })).data).toEqual({
      recovered: 1,
    })
  })

  test.each([
    [{}],
    [{ since: '2026-11-20' }],
    [{ since: 1_700_000_000 }],
    [{ since: 'yesterday' }],
    [{ since: '2026-13-20T12:00:00Z' }],
    [{ since: '2026-11-20T25:00:00Z' }],
    [{ since: '2026-11-20T12:00:00' }],
    [{ since: null }],
    [{ since: '2026-11-20T12:00:00Z', until: '2026-11-20T11:00:00Z' }],
    [{ since: '2026-11-20T12:00:00Z', until: null }],
    [{ since: '2026-11-20T12:00:00Z', limit: 1 }],
  ])('rejects %p', async (body) => {
    const { id } = await make()
    const response = await call('POST', `${id}/recover`, body)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  })
})

describe('an absent delivery', () => {
  test('gets the same response as one of another endpoint or developer', async () => {
    const [one, two] = [await make(), await make()]
    const stranger = await service.createDeveloper()
    const absent = `dlv_${'0'.repeat(26)}`
    const places: Array<[string, TestDeveloper]> = [
      [`${one.id}/deliveries/${two.first.id}`, owner],
      [`${one.id}/deliveries/${one.first.id}`, stranger],
      [`${one.id}/deliveries/${absent}`, owner],
      [`${one.id}/deliveries/nonsense`, owner],
      [`whk_${'0'.repeat(26)}/deliveries/${one.first.id}`, owner],
      [`nonsense/deliveries/${one.first.id}`, owner],
    ]
    for (const [path, as] of places) {
      for (const [method, pathSuffix] of [
        ['GET', ''],
        ['POST', '/redeliver'],
      ] as const) {
        const response = await call(method, path + pathSuffix, undefined, as)
        expect([path, response.status, response.error.code]).toEqual([path, 404, 'NOT_FOUND'])
      }
    }
    for (const [method, pathSuffix, body] of [
      ['GET', 'deliveries', undefined],
      ['POST', 'recover', { since: '2026-11-20T12:00:00Z' }],
    ] as const) {
      const response = await call(method, `${one.id}/${pathSuffix}`, body, stranger)
      expect([response.status, response.error.code]).toEqual([404, 'NOT_FOUND'])
    }
  })
})
