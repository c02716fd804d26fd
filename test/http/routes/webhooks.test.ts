import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper
let app: TestApplication

beforeAll(async () => {
  service = await createTestService({
    plans: {
      free: { ...unlimitedPlan, sendPerMinute: 5, verifyPerMinute: 10 },
    },
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1/32, hooks.internal', OTPD_WEBHOOK_ENDPOINTS_MAX: '3' },
  })
  owner = await service.createDeveloper()
  app = await service.createApplication(owner)
})
afterAll(() => service.dispose())

type Wire = {
  id: string
  appId: string
  url: string
  events: string[]
  status: string
  description: string | null
  headers: Record<string, string>
  disabledReason: string | null
  failingSince: string | null
  lastDeliveryAt: string | null
  createdAt: string
  updatedAt: string
}

const url = 'https://example.com/hooks'
const call = (method: string, path: string, body?: unknown, headers = {}) =>
  service.request<Wire>(method, `/v1/webhooks${path}`, { as: owner, body, headers })
const list = (query = '') => service.request<Wire[]>('GET', `/v1/webhooks${query}`, { as: owner })
const create = (overrides: object = {}, headers = {}) =>
  call('POST', '', { appId: app.id, url, events: ['otp.verified'], ...overrides }, headers)
const created = async (overrides: object = {}) => {
  const appId = (await service.createApplication(owner)).id
  const response = await create({ appId, ...overrides })
  expect(response.status).toBe(201)
  return response.data
}

describe('POST /v1/webhooks', () => {
  test('creates an endpoint', async () => {
    const { id: appId } = await service.createApplication(owner)
    const events = ['otp.verified', 'otp.failed']
    const response = await create({ appId, events })
    expect(response.status).toBe(201)
    expect(response.data).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-z]{26}$/),
      appId,
      url,
      events,
      status: 'enabled',
      description: null,
      headers: {},
      disabledReason: null,
      failingSince: null,
      lastDeliveryAt: null,
      createdAt: '2026-11-20T12:00:00.000Z',
      updatedAt: '2026-11-20T12:00:00.000Z',
    })
    expect((await call('GET', `/${response.data.id}`)).data).toEqual(response.data)
  })

  test.each([
    '*',
    '* otp.sent',
    'otp.sent otp.delivered otp.undelivered otp.verified',
    'otp.failed otp.expired otp.canceled otp.blocked',
  ])('accepts the events %s', async (subscriptions) => {
    const events = subscriptions.split(' ')
    expect((await created({ events })).events).toEqual(events)
  })

  test.each(['https://example.com', `https://example.com/${'a'.repeat(2028)}`, 'http://127.0.0.1:3000/'])(
    'accepts the URL %p',
    async (wish) => {
      expect((await created({ url: wish })).url).toBe(wish)
    },
  )

  test.each([
    ['url', 'http://example.com/'],
    ['url', 'https://user:secret-text@example.com/'],
    ['url', 'https://example.com/#secret-text'],
    ['url', `https://example.com/${'a'.repeat(2029)}`],
    ['url', 'https://10.0.0.1/'],
    ['url', 'https://[::1]/'],
    ['url', 'https://2130706434/'],
    ['url', 'secret-text'],
    ['url', ''],
    ['url', null],
    ['url', 7],
    ['events', []],
    ['events', ['otp.sent', 'otp.sent']],
    ['events', 'otp.sent'],
    ['events', null],
    ['events.0', ['otp.secret-text']],
    ['events.1', ['otp.sent', 7]],
    ['appId', 7],
    ['extra', 'secret-text'],
  ])('rejects a bad %s: %p', async (path, value) => {
    const name = path.split('.')[0] ?? ''
    const response = await create({ [name]: value })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(response.error.details).toMatchObject([{ in: 'body', path }])
    expect(response.text).not.toContain('secret-text')
  })

  test('rejects more than the limit per application', async () => {
    const { id: appId } = await service.createApplication(owner)
    for (let i = 0; i < 3; i++) expect((await create({ appId })).status).toBe(201)
    const response = await create({ appId })
    expect(response.status).toBe(403)
    expect(response.error).toMatchObject({ code: 'ENDPOINT_LIMIT_REACHED', metadata: { limit: 3 } })
    const [first] = (await list(`?appId=${appId}`)).data
    await call('DELETE', `/${first?.id}`)
    expect((await create({ appId })).status).toBe(201)
  })

  test('runs once for an idempotency key', async () => {
    const { id: appId } = await service.createApplication(owner)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await create({ appId }, headers)
    const retryResponse = await create({ appId }, headers)
    expect([first.status, retryResponse.status]).toEqual([201, 201])
    expect(retryResponse.data).toEqual(first.data)
    expect(retryResponse.headers.get('idempotency-replayed')).toBe('true')
    expect((await create({ appId, events: ['*'] }, headers)).error.code).toBe('IDEMPOTENCY_KEY_REUSED')
    expect((await list(`?appId=${appId}`)).data).toHaveLength(1)
  })
})

describe('GET /v1/webhooks', () => {
  test("lists only the caller's endpoints, newest first, page by page", async () => {
    const other = await service.createDeveloper()
    const { id: appId } = await service.createApplication(other)
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      const body = { appId, url, events: ['*'] }
      ids.unshift((await service.request<Wire>('POST', '/v1/webhooks', { as: other, body })).data.id)
    }
    const listWebhooks = (query: string) =>
      service.request<Wire[]>('GET', `/v1/webhooks${query}`, { as: other })
    const all = await listWebhooks('')
    expect(all.data.map(({ id }) => id)).toEqual(ids)
    expect(all.pagination).toEqual({ limit: 50, nextCursor: null })
    const first = await listWebhooks('?limit=2')
    expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    const second = await listWebhooks(`?limit=2&cursor=${first.pagination.nextCursor}`)
    expect(second.data.map(({ id }) => id)).toEqual(ids.slice(2))
    expect(second.pagination.nextCursor).toBeNull()
  })

  test('filters by application', async () => {
    const one = await created()
    await created()
    expect((await list(`?appId=${one.appId}`)).data).toEqual([one])
  })
})

describe('PATCH /v1/webhooks/:id', () => {
  test('changes only the given fields', async () => {
    const endpoint = await created()
    service.clock.advance(1_000)
    const moved = await call('PATCH', `/${endpoint.id}`, { url: 'https://example.com/new' })
    const updatedAt = new Date(service.clock.now()).toISOString()
    expect(moved.status).toBe(200)
    expect(moved.data).toEqual({ ...endpoint, url: 'https://example.com/new', updatedAt })
    const updated = await call('PATCH', `/${endpoint.id}`, { events: ['*'] })
    expect(updated.data).toEqual({ ...moved.data, events: ['*'] })
    const disabled = await call('PATCH', `/${endpoint.id}`, { status: 'disabled' })
    expect(disabled.data).toEqual({ ...updated.data, status: 'disabled' })
  })

  test('to enabled clears disabledReason and failingSince', async () => {
    const endpoint = await created()
    const { webhookEndpoints } = service.database.tables
    const failed = {
      status: 'disabled',
      disabledReason: 'failing',
      failingSince: service.clock.now(),
    } as const
    await service.database.write(async (tx) => void (await tx.update(webhookEndpoints).set(failed)))
    const seen = (await call('GET', `/${endpoint.id}`)).data
    expect(seen).toMatchObject({
      disabledReason: 'failing',
      failingSince: new Date(service.clock.now()).toISOString(),
    })
    const renamed = await call('PATCH', `/${endpoint.id}`, { events: ['*'] })
    expect(renamed.data).toMatchObject({ status: 'disabled', disabledReason: 'failing' })
    const enabled = await call('PATCH', `/${endpoint.id}`, { status: 'enabled' })
    expect(enabled.data).toMatchObject({ status: 'enabled', disabledReason: null, failingSince: null })
  })

  test.each([
    [{}],
    [{ url: 'http://example.com/' }],
    [{ url: null }],
    [{ events: [] }],
    [{ events: ['otp.unknown'] }],
    [{ status: 'active' }],
    [{ status: null }],
    [{ appId: 'app_0' }],
    [{ disabledReason: null }],
  ])('rejects %p', async (body) => {
    const endpoint = await created()
    const response = await call('PATCH', `/${endpoint.id}`, body)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect((await call('GET', `/${endpoint.id}`)).data).toEqual(endpoint)
  })
})

describe('DELETE /v1/webhooks/:id', () => {
  test('deletes the endpoint', async () => {
    const { id } = await created()
    const response = await call('DELETE', `/${id}`)
    expect(response.status).toBe(200)
    expect(JSON.parse(response.text)).toEqual({ data: { id, deleted: true } })
    expect((await call('GET', `/${id}`)).status).toBe(404)
    expect((await call('DELETE', `/${id}`)).status).toBe(404)
  })
})

test('deleting an application deletes its endpoints', async () => {
  const { id, appId } = await created()
  await service.request('DELETE', `/v1/applications/${appId}`, { as: owner })
  expect((await call('GET', `/${id}`)).status).toBe(404)
  expect((await list(`?appId=${appId}`)).data).toEqual([])
})
