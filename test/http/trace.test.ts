import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { AuditEntry } from '../../src/domain/model/audit.ts'
import { readTrace } from '../../src/http/client.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

let gateway: WebhookReceiver
let receiver: WebhookReceiver
let service: TestService
let developer: TestDeveloper
let application: TestApplication

beforeAll(async () => {
  gateway = await startReceiver(() => Response.json({ messageId: 'm1' }))
  receiver = await startReceiver()
  const values = { url: gateway.url, secret: `whsec_${'a'.repeat(48)}`, channels: 'sms' }
  const everything = { countries: [], prefixes: [], applications: [] }
  service = await createTestService({
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_GUARD_MODE: 'off', OTPD_SEND_PER_MINUTE: '0' },
    delivery: {
      providers: [{ name: 'gateway', kind: 'http', values }],
      routes: [{ channel: 'sms', ...everything, providers: ['gateway'] }],
    },
  })
  developer = await service.createDeveloper()
  application = await service.createApplication(developer, { environment: 'live' })
})
afterAll(async () => {
  await service.dispose()
  await gateway.stop()
  await receiver.stop()
})

const send = (headers: Record<string, string>, phone = '+14155550142') =>
  service.request<{ requestId: string }>('POST', '/v1/otp/send', {
    as: application,
    headers,
    body: { phone },
  })

test('a valid traceparent is read as W3C Trace Context says', () => {
  const read = (value: string) => readTrace(new Request('http://otpd', { headers: { traceparent: value } }))
  expect(read(traceparent)).toEqual({ traceparent, traceId })
  expect(read(`cc-${traceId}-00f067aa0ba902b7-01-what.the.future-brings`)?.traceId).toBe(traceId)
  expect(readTrace(new Request('http://otpd'))).toBeUndefined()
  const invalid = [
    '',
    traceparent.toUpperCase(),
    `ff${traceparent.slice(2)}`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `${traceparent}-more`,
    traceparent.slice(0, -1),
    `${traceparent}, ${traceparent}`,
    `cc-${traceId}-00f067aa0ba902b7-01-${'x'.repeat(200)}`,
  ]
  expect(invalid.filter((value) => read(value) !== undefined)).toEqual([])
})

test('its trace id is the traceId of errors and of the audit trail; X-Request-Id stays ours', async () => {
  const refused = await send({ traceparent }, 'nonsense')
  expect(refused.error.traceId).toBe(traceId)
  expect(refused.headers.get('x-request-id')).toMatch(/^req_/)
  const untraced = await send({ traceparent: 'nonsense' }, 'nonsense')
  expect(untraced.error.traceId).toBe(untraced.headers.get('x-request-id') ?? '')

  await service.request('POST', '/v1/projects', {
    as: developer,
    headers: { traceparent },
    body: { name: 'Traced' },
  })
  const audit = await service.request<AuditEntry[]>('GET', '/v1/audit?limit=1', { as: developer })
  expect(audit.data).toMatchObject([{ action: 'project.created', traceId }])
})

test('it is passed to providers of kind http, and with each event to webhooks, also in retries', async () => {
  const webhook = await service.request<{ id: string }>('POST', '/v1/webhooks', {
    as: developer,
    body: { appId: application.id, url: `${receiver.url}/hook`, events: ['*'] },
  })
  const sent = await send({ traceparent })
  expect(gateway.received.at(-1)?.headers['traceparent']).toBe(traceparent)
  const { requestId } = sent.data
  const laterTrace = traceparent.replace('4bf9', 'aaaa')
  const cancel = { as: application, headers: { traceparent: laterTrace }, body: { requestId } }
  expect((await service.request('POST', '/v1/otp/cancel', cancel)).status).toBe(200)
  await send({})
  expect(gateway.received.at(-1)?.headers).not.toHaveProperty('traceparent')

  const path = `/v1/webhooks/${webhook.data.id}/deliveries`
  const deliveries = await service.request<Array<{ id: string }>>('GET', path, { as: developer })
  for (const { id } of deliveries.data.toReversed())
    await service.request('POST', `${path}/${id}/redeliver`, { as: developer })
  const received = receiver.received.map(({ headers, body }) => {
    const event = JSON.parse(body)
    return [event.type, headers['traceparent'], event.traceparent]
  })
  expect(received).toEqual([
    ['otp.sent', traceparent, traceparent],
    ['otp.canceled', laterTrace, laterTrace],
    ['otp.sent', undefined, undefined],
  ])
})

test('metadata of the caller cannot pass for it', async () => {
  receiver.received.length = 0
  const body = { phone: '+14155550143', metadata: { traceparent: `${traceparent}"}` } }
  await service.request('POST', '/v1/otp/send', { as: application, body })
  const webhooks = await service.request<Array<{ id: string }>>('GET', '/v1/webhooks', { as: developer })
  const path = `/v1/webhooks/${webhooks.data[0]?.id}/deliveries`
  const [newest] = (await service.request<Array<{ id: string }>>('GET', path, { as: developer })).data
  await service.request('POST', `${path}/${newest?.id}/redeliver`, { as: developer })
  expect(receiver.received.map(({ headers }) => headers['traceparent'])).toEqual([undefined])
})
