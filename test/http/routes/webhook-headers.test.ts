import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'
import { startReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.ts'

let service: TestService
let owner: TestDeveloper
let receiver: WebhookReceiver
let appId: string

beforeAll(async () => {
  service = await createTestService({
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1/32', OTPD_WEBHOOK_ENDPOINTS_MAX: '1000' },
  })
  owner = await service.createDeveloper()
  appId = (await service.createApplication(owner)).id
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.stop()
  await service.dispose()
})

type Wire = { id: string; description: string | null; headers: Record<string, string> }

const create = (overrides: object) =>
  service.request<Wire>('POST', '/v1/webhooks', {
    as: owner,
    body: { appId, url: receiver.url, events: ['*'], ...overrides },
  })
const change = (id: string, body: object) =>
  service.request<Wire>('PATCH', `/v1/webhooks/${id}`, { as: owner, body })

/** Sends a test event and returns the headers that the endpoint receives. */
async function receivedBy(id: string) {
  service.clock.advance(60_000)
  const before = receiver.received.length
  await service.request('POST', `/v1/webhooks/${id}/test`, { as: owner })
  return receiver.received[before]?.headers ?? {}
}

const secret = 'Bearer s3cret-of-the-receiver'

describe('headers of an endpoint', () => {
  test('are sent with every event and never returned', async () => {
    const created = await create({ headers: { Authorization: secret, 'X-Tenant': 'a b' } })
    expect(created.status).toBe(201)
    const masked = { authorization: '****', 'x-tenant': '****' }
    expect(created.data.headers).toEqual(masked)
    const { id } = created.data
    const seen = await service.request<Wire>('GET', `/v1/webhooks/${id}`, { as: owner })
    const listed = await service.request<Wire[]>('GET', '/v1/webhooks', { as: owner })
    for (const { text } of [created, seen, listed]) expect(text).not.toContain('s3cret')
    expect(seen.data.headers).toEqual(masked)
    expect(await receivedBy(id)).toMatchObject({ authorization: secret, 'x-tenant': 'a b' })
  })

  test('are sealed, and bound to their endpoint', async () => {
    const [one, two] = [
      await create({ headers: { 'x-key': secret } }),
      await create({ headers: { 'x-key': secret } }),
    ]
    const { webhookEndpoints } = service.database.tables
    const rows = await service.database.read.select().from(webhookEndpoints)
    expect(JSON.stringify(rows)).not.toContain('s3cret')
    const stored = (id: string) => rows.find((row) => row.id === id)?.headers ?? ''
    expect(stored(one.data.id)).toMatch(/^s1\./)
    expect(stored(one.data.id)).not.toBe(stored(two.data.id))
  })

  test('change one at a time, because the others cannot be read back', async () => {
    const { id } = (await create({ headers: { 'x-one': '1', 'x-two': '2' } })).data
    const changed = await change(id, { headers: { 'X-ONE': '11', 'x-three': '3', 'x-absent': null } })
    expect(Object.keys(changed.data.headers).toSorted()).toEqual(['x-one', 'x-three', 'x-two'])
    expect(await receivedBy(id)).toMatchObject({ 'x-one': '11', 'x-two': '2', 'x-three': '3' })
    const removed = await change(id, { headers: { 'x-two': null } })
    expect(Object.keys(removed.data.headers).toSorted()).toEqual(['x-one', 'x-three'])
    expect((await receivedBy(id))['x-two']).toBeUndefined()
    expect((await change(id, { headers: {} })).data.headers).toEqual(removed.data.headers)
    expect((await change(id, { events: ['otp.sent'] })).data.headers).toEqual(removed.data.headers)
  })

  test('are not sent to another origin, unless the same change gives them again', async () => {
    const other = await startReceiver()
    const { id } = (await create({ headers: { authorization: secret, 'x-tenant': 'a', 'x-old': '1' } })).data
    const samePlace = await change(id, { url: `${receiver.url}/elsewhere?x=1` })
    expect(Object.keys(samePlace.data.headers)).toHaveLength(3)
    expect(samePlace.data).not.toHaveProperty('droppedHeaders')

    const moved = await change(id, { url: other.url, headers: { 'X-Tenant': 'b', 'x-old': null } })
    expect(moved.data).toMatchObject({ headers: { 'x-tenant': '****' }, droppedHeaders: ['authorization'] })
    expect(Object.keys(moved.data.headers)).toEqual(['x-tenant'])
    service.clock.advance(60_000)
    await service.request('POST', `/v1/webhooks/${id}/test`, { as: owner })
    expect(other.received[0]?.headers).toMatchObject({ 'x-tenant': 'b' })
    expect(JSON.stringify(other.received)).not.toContain('s3cret')
    await other.stop()

    // A change back does not bring them back, and one of the scheme or port is a change of origin.
    expect((await change(id, { url: receiver.url })).data).toMatchObject({
      headers: {},
      droppedHeaders: ['x-tenant'],
    })
    await change(id, { headers: { authorization: secret } })
    const { hostname, port } = new URL(receiver.url)
    expect((await change(id, { url: `https://${hostname}:${port}/` })).data.headers).toEqual({})
  })

  test('are at most ten, also under concurrent changes', async () => {
    const named = (from: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${from + i}`, 'v']))
    expect((await create({ headers: named(0, 11) })).error.code).toBe('INVALID_ARGUMENT')
    const { id } = (await create({ headers: named(0, 10) })).data
    expect((await change(id, { headers: { 'x-10': 'v' } })).error.details).toMatchObject([
      { in: 'body', path: 'headers' },
    ])
    expect((await change(id, { headers: { 'x-0': null, 'x-10': 'v' } })).status).toBe(200)
    const raced = (await create({})).data
    await Promise.all([0, 4, 8].map((from) => change(raced.id, { headers: named(from, 4) })))
    const seen = await service.request<Wire>('GET', `/v1/webhooks/${raced.id}`, { as: owner })
    expect(Object.keys(seen.data.headers)).toHaveLength(8)
  })

  test.each([
    'Webhook-Id',
    'webhook-signature',
    'webhook-anything',
    'svix-id',
    'Host',
    'content-type',
    'Content-Length',
    'content-encoding',
    'Connection',
    'keep-alive',
    'proxy-authorization',
    'Transfer-Encoding',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'user-agent',
    'date',
    'accept-encoding',
    'sec-fetch-mode',
  ])('cannot be named %s', async (name) => {
    const response = await create({ headers: { [name]: 's3cret' } })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(response.error.details).toMatchObject([{ in: 'body', path: `headers.${name}` }])
    const { id } = (await create({})).data
    expect((await change(id, { headers: { [name]: null } })).status).toBe(400)
  })

  test.each([
    ['x key', 'v'],
    ['x_key', 'v'],
    ['', 'v'],
    ['1x', 'v'],
    ['x:', 'v'],
    ['é', 'v'],
    ['a'.repeat(65), 'v'],
    ['__proto__', 'v'],
    ['x-a', ''],
    ['x-a', ' v'],
    ['x-a', 'v '],
    ['x-a', 'v\r\nx-b: w'],
    ['x-a', 'v\n'],
    ['x-a', 'v\x7f'],
    ['x-a', 'é'],
    ['x-a', 'v'.repeat(1025)],
    ['x-a', 7],
    ['x-a', null],
    ['x-a', ['v']],
  ])('cannot be %p: %p', async (name, value) => {
    const response = await create({
      headers: JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`),
    })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  })

  test('cannot be repeated', async () => {
    const response = await create({ headers: { 'X-A': '1', 'x-a': '2' } })
    expect(response.error.details).toMatchObject([{ path: 'headers.x-a' }])
  })

  test.each([[null], [[]], ['x-a: 1'], [7]])('cannot be %p as a whole', async (headers) => {
    expect((await create({ headers })).status).toBe(400)
  })
})

describe('a description', () => {
  test('is stored, changed and cleared', async () => {
    const created = await create({ description: 'Orders, in Rust 🦀' })
    expect(created.data.description).toBe('Orders, in Rust 🦀')
    const { id } = created.data
    expect((await change(id, { description: 'New' })).data.description).toBe('New')
    expect((await change(id, { status: 'disabled' })).data.description).toBe('New')
    expect((await change(id, { description: null })).data.description).toBeNull()
  })

  test('has at most 280 characters', async () => {
    expect((await create({ description: '🦀'.repeat(280) })).status).toBe(201)
    expect((await create({ description: 'a'.repeat(281) })).status).toBe(400)
    expect((await create({ description: 7 })).status).toBe(400)
  })
})
