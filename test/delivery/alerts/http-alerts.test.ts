import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { AlertNotice } from '../../../src/domain/model/alert.ts'
import type { AlertDestinationKind } from '../../../src/delivery/alerts/alert-kind.ts'
import {
  discordAlerts,
  ntfyAlerts,
  slackAlerts,
  webhookAlerts,
} from '../../../src/delivery/alerts/http-alerts.ts'
import { createProviderHttp } from '../../../src/delivery/kit/http-client.ts'
import { hourMs } from '../../../src/shared/durations.ts'
import { startReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.ts'

const at = Date.parse('2026-11-20T12:00:00Z')
const notice: AlertNotice = {
  destination: 'ops',
  event: 'firing',
  kind: 'provider',
  subject: 'main',
  severity: 'critical',
  message: 'provider main: <b> & "x"',
  remedy: 'Test it.',
  since: at - 1000,
  at,
}

let receiver: WebhookReceiver
let answer: () => Response | Promise<Response>
const http = createProviderHttp({ version: '0.0.0' })
beforeEach(async () => {
  answer = () => new Response('ok')
  receiver = await startReceiver(() => answer())
})
afterEach(() => receiver.stop())

const send = (
  { create }: AlertDestinationKind,
  values: Record<string, string> = {},
  changes: Partial<AlertNotice> = {},
  signal = AbortSignal.timeout(5000),
) =>
  create(
    { url: `${receiver.url}/hook/s3cret`, ...values },
    { http, server: () => 'https://otp.example.com' },
  )({ ...notice, ...changes }, signal)

test('a webhook gets JSON with an id that a repetition shares', async () => {
  expect(await send(webhookAlerts, { token: 'a-token' })).toBeNull()
  expect(await send(webhookAlerts, {}, { event: 'resolved', at: at + 1 })).toBeNull()
  const [first, second] = receiver.received
  expect(first).toMatchObject({
    path: '/hook/s3cret',
    headers: { 'webhook-id': `ops.provider.main.${at}`, authorization: 'Bearer a-token' },
  })
  expect(JSON.parse(first?.body ?? '')).toEqual({
    type: 'alert.firing',
    timestamp: '2026-11-20T12:00:00.000Z',
    data: {
      kind: 'provider',
      subject: 'main',
      severity: 'critical',
      message: notice.message,
      remedy: 'Test it.',
      since: '2026-11-20T11:59:59.000Z',
      server: 'https://otp.example.com',
    },
  })
  expect(second?.headers).not.toHaveProperty('authorization')
  expect(JSON.parse(second?.body ?? '')).toMatchObject({ type: 'alert.resolved' })
})

test('Slack gets text in which nothing is markup', async () => {
  expect(await send(slackAlerts)).toBeNull()
  expect(JSON.parse(receiver.received[0]?.body ?? '')).toEqual({
    text: '*Critical: provider main: &lt;b&gt; &amp; "x"*\nTest it.\nSince 2026-11-20T11:59:59.000Z\nServer https://otp.example.com',
  })
})

test('Discord gets text without mentions, within its limit', async () => {
  expect(await send(discordAlerts, {}, { message: `@everyone ${'x'.repeat(3000)}` })).toBeNull()
  const body = JSON.parse(receiver.received[0]?.body ?? '')
  expect(body).toMatchObject({ allowed_mentions: { parse: [] } })
  expect(body.content).toHaveLength(2000)
})

test('ntfy gets text with a priority by severity', async () => {
  expect(await send(ntfyAlerts, { token: 'tk_abc' })).toBeNull()
  const url = `${receiver.url}/hook/s3cret/`
  expect(await send(ntfyAlerts, { url }, { event: 'resolved', at: at + 3 * hourMs })).toBeNull()
  const [first, second] = receiver.received
  expect(second?.path).toBe('/hook/s3cret')
  expect(first?.headers).toMatchObject({ title: 'otpd', priority: 'urgent', authorization: 'Bearer tk_abc' })
  expect(first?.body).toStartWith('Critical: provider main: <b> & "x"\nTest it.\nSince ')
  expect(second?.headers).toMatchObject({ priority: 'default' })
  expect(second?.body).toStartWith('Resolved after 2 h 55 min: provider main:')
  expect(second?.body).not.toContain('Test it.')
})

test.each([webhookAlerts, slackAlerts, discordAlerts, ntfyAlerts])(
  '$kind fails without its URL in the cause, and follows no redirect',
  async (kind) => {
    answer = () => new Response(`no_service ${receiver.url}/hook/s3cret`, { status: 403 })
    expect(await send(kind)).toBe('HTTP 403')
    answer = () => new Response(null, { status: 302, headers: { location: `${receiver.url}/other` } })
    expect(await send(kind)).toBe('HTTP 302')
    answer = () => new Promise(() => {})
    expect(await send(kind, {}, {}, AbortSignal.timeout(50))).toBe(
      `no answer in time: ${new URL(receiver.url).host}`,
    )
    const count = receiver.received.length
    receiver.stop()
    expect(await send(kind, { url: 'http://127.0.0.1:1/hook/s3cret' })).toBe(
      'connection refused: 127.0.0.1:1',
    )
    expect(receiver.received).toHaveLength(count)
  },
)
