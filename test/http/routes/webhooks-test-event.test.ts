import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { startReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper
let app: TestApplication
let receiver: WebhookReceiver
let status = 200

beforeAll(async () => {
  service = await createTestService({
    plans: {
      free: { ...unlimitedPlan, sendPerMinute: 5, verifyPerMinute: 10 },
    },
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1/32' },
  })
  receiver = await startReceiver(() => new Response('secret-text', { status }))
  owner = await service.createDeveloper()
  app = await service.createApplication(owner)
})
afterAll(async () => {
  await receiver.stop()
  await service.dispose()
})

type Result = { delivered: boolean; statusCode: number; error?: string }

const register = async (overrides: object = {}, as = owner) => {
  const body = { appId: app.id, url: `${receiver.url}/hook`, events: ['otp.sent'], ...overrides }
  const response = await service.request<{ id: string }>('POST', '/v1/webhooks', { as, body })
  return response.data.id
}
const send = (id: string, as = owner) => service.request<Result>('POST', `/v1/webhooks/${id}/test`, { as })

describe('POST /v1/webhooks/:id/test', () => {
  test('sends one signed otp.verified event, regardless of the subscriptions', async () => {
    const before = receiver.received.length
    const response = await send(await register())
    expect([response.status, response.data]).toEqual([200, { delivered: true, statusCode: 200 }])
    expect(receiver.received).toHaveLength(before + 1)
    const { path, headers = {}, body = '' } = receiver.received.at(-1) ?? {}
    expect(path).toBe('/hook')
    expect(headers['webhook-signature']).toBe(
      new Webhook(app.webhookSecret).sign(headers['webhook-id'] ?? '', new Date(service.clock.now()), body),
    )
    const now = new Date(service.clock.now()).toISOString()
    expect(JSON.parse(body)).toEqual({
      id: headers['webhook-id'],
      type: 'otp.verified',
      timestamp: now,
      test: true,
      data: {
        requestId: expect.stringMatching(/^otp_[0-9a-z]{26}$/),
        appId: app.id,
        projectId: app.projectId,
        environment: 'live',
        phone: owner.developer.virtualPhone,
        country: null,
        status: 'verified',
        failureReason: null,
        channel: 'sms',
        attempts: 1,
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
        verifiedAt: now,
        metadata: null,
      },
    })
  })

  test('creates no log entry, no request and no delivery', async () => {
    const id = await register()
    await send(id)
    const logs = await service.request<unknown[]>('GET', '/v1/logs', { as: owner })
    const requests = await service.request<unknown[]>('GET', '/v1/otp', { as: owner })
    expect([logs.data, requests.data]).toEqual([[], []])
    const { webhookDeliveries } = service.database.tables
    expect(await service.database.read.select().from(webhookDeliveries)).toEqual([])
  })

  test('works on a disabled endpoint too', async () => {
    const id = await register()
    await service.request('PATCH', `/v1/webhooks/${id}`, { as: owner, body: { status: 'disabled' } })
    expect((await send(id)).data).toEqual({ delivered: true, statusCode: 200 })
  })

  test('signs with the current secret', async () => {
    const path = `/v1/applications/${app.id}/rotate/webhook_secret`
    const { value } = (await service.request<{ value: string }>('POST', path, { as: owner })).data
    await send(await register())
    const { headers = {}, body = '' } = receiver.received.at(-1) ?? {}
    expect(headers['webhook-signature']).toBe(
      new Webhook(value).sign(headers['webhook-id'] ?? '', new Date(service.clock.now()), body),
    )
    app.webhookSecret = value
  })

  test.each([
    [299, true],
    [302, false],
    [410, false],
    [500, false],
  ])('returns the status %i of the response, but not its body', async (code, delivered) => {
    status = code
    const response = await send(await register())
    status = 200
    expect([response.status, response.data]).toEqual([200, { delivered, statusCode: code }])
    expect(response.text).not.toContain('secret-text')
    service.clock.advance(60_000)
  })

  test('returns an error code if there was no response', async () => {
    const stoppedReceiver = await startReceiver()
    await stoppedReceiver.stop()
    const refused = await send(await register({ url: stoppedReceiver.url }))
    expect(refused.data).toEqual({ delivered: false, statusCode: 0, error: 'connect' })
    const unknown = await send(await register({ url: 'https://receiver.invalid/' }))
    expect(unknown.data).toEqual({ delivered: false, statusCode: 0, error: 'dns' })
  })

  test('is limited to ten per minute and developer, across all endpoints', async () => {
    const developer = await service.createDeveloper()
    const { id: appId } = await service.createApplication(developer)
    const ids = [await register({ appId }, developer), await register({ appId }, developer)]
    const attempt = (i: number) => send(ids[i % 2] ?? '', developer)
    for (let i = 0; i < 5; i++) expect((await attempt(i)).status).toBe(200)
    service.clock.advance(40_000)
    for (let i = 0; i < 5; i++) expect((await attempt(i)).status).toBe(200)

    const before = receiver.received.length
    const refused = await attempt(0)
    expect(refused.status).toBe(429)
    expect(refused.error).toMatchObject({ code: 'RATE_LIMITED', reason: 'WEBHOOK_TESTS' })
    expect(refused.headers.get('retry-after')).toBe('20')
    expect(receiver.received).toHaveLength(before)
    expect((await send(await register(), owner)).status).toBe(200)

    service.clock.advance(20_000)
    for (let i = 0; i < 5; i++) expect((await attempt(i)).status).toBe(200)
    expect((await attempt(0)).status).toBe(429)
  })

  test('does not count requests for an absent endpoint', async () => {
    const developer = await service.createDeveloper()
    for (let i = 0; i < 12; i++) expect((await send(`whk_${'0'.repeat(26)}`, developer)).status).toBe(404)
    const { id: appId } = await service.createApplication(developer)
    expect((await send(await register({ appId }, developer), developer)).status).toBe(200)
  })

  test('allows exactly ten of thirty concurrent requests', async () => {
    const developer = await service.createDeveloper()
    const { id: appId } = await service.createApplication(developer)
    const id = await register({ appId }, developer)
    const responses = await Promise.all(Array.from({ length: 30 }, () => send(id, developer)))
    expect(responses.filter((response) => response.status === 200)).toHaveLength(10)
    expect(responses.filter((response) => response.status === 429)).toHaveLength(20)
  })
})
