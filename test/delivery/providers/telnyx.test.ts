import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { telnyx } from '../../../src/delivery/providers/telnyx.ts'
import { makeProvider } from '../../helpers/provider-server.ts'
import { signAsTelnyx } from '../../helpers/carriers/signed-callbacks.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { startProviderApi, trickyText, type ProviderApi } from '../../helpers/provider-api.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const rawKey = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
const settings = {
  apiKey: 'KEY0123_secret',
  messagingProfileId: '40017f8e-49c2-4b6a-9f0a-5d2c4d3e1b7a',
  from: '+15551230000',
  publicKey: rawKey,
}

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(telnyx, settings)
})
afterEach(() => api.stop())

const problem = (code: string) => ({ errors: [{ code, title: 'A title', detail: 'A detail' }] })

describe('sending by Telnyx', () => {
  test('posts the message as its API documents it', async () => {
    api.setResponse(200, { data: { id: '40385f64-5717-4562-b3fc-2c963f66afa6', to: [{ status: 'queued' }] } })
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: '40385f64-5717-4562-b3fc-2c963f66afa6' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/v2/messages' })
    expect(headers['authorization']).toBe('Bearer KEY0123_secret')
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      from: '+15551230000',
      messaging_profile_id: '40017f8e-49c2-4b6a-9f0a-5d2c4d3e1b7a',
      to: '+31612345678',
      text: trickyText,
      type: 'SMS',
      use_profile_webhooks: false,
      webhook_url: 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('requests no receipts without a reachable URL or a key to verify them', async () => {
    await api.send({ callbackUrl: null })
    const { publicKey: _, ...unsigned } = settings
    const other = startProviderApi(telnyx, unsigned)
    await other.send()
    for (const one of [api, other]) expect(JSON.parse(one.takeCall().body)).not.toHaveProperty('webhook_url')
    expect(other.provider.readCallback).toBeUndefined()
    await other.stop()
  })

  test.each([
    [422, '40310', 'invalid_number', 'number', true],
    [409, '40300', 'opted_out', 'number', true],
    [403, '40300', 'opted_out', 'number', true],
    [400, '40309', 'geo_blocked', 'route', true],
    [400, '40322', 'content_blocked', 'route', true],
    [400, '40305', 'sender_invalid', 'route', true],
    [401, '10009', 'auth_failed', 'account', true],
    [403, '20100', 'no_credit', 'account', true],
    [429, '40333', 'no_credit', 'account', true],
    [400, '40318', 'throttled', 'route', false],
    [500, '10007', 'provider_down', 'route', false],
    [503, '40310', 'provider_down', 'route', false],
    [400, '99999', 'unknown', 'route', false],
  ])('%i with code %s is %s', async (status, code, failureClass, at, permanent) => {
    api.setResponse(status, problem(code))
    expect(await api.send()).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: code }),
    })
  })

  test('429 waits as long as Telnyx says', async () => {
    api.setResponse(429, problem('10011'), { 'retry-after': '7' })
    expect(await api.send()).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled', retryAfterSeconds: 7 },
    })
  })

  test.each([
    ['a success without an id', 200, { data: {} }],
    ['a success that is a page', 200, '<html>'],
    ['a time-out on its side', 408, ''],
    ['a gateway timeout', 504, ''],
  ])('%s is uncertain', async (_, status, body) => {
    api.setResponse(status, body)
    expect(await api.send()).toMatchObject({ kind: 'uncertain' })
  })
})

describe('receipts of Telnyx', () => {
  const call = (body: string, timestamp: string, key = privateKey) => ({
    url: 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_7',
    ...signAsTelnyx(body, key, timestamp),
  })
  const now = () => String(api.nowSeconds())
  const event = (type: string, status: string, errors: unknown[] = []) =>
    JSON.stringify({
      data: {
        event_type: type,
        id: 'evt',
        payload: { id: 'msg-1', to: [{ status }], errors, cost: { amount: 0.0051, currency: 'USD' } },
      },
    })

  test.each([
    ['message.sent', 'sent', 'sent'],
    ['message.finalized', 'delivered', 'delivered'],
    ['message.finalized', 'delivery_unconfirmed', 'sent'],
  ])('%s with %s says %s', async (type, status, expected) => {
    expect(await api.readCallback(call(event(type, status), now()))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'msg-1',
          requestId: 'otp_7',
          status: expected as 'sent' | 'delivered',
          failure: null,
          charge: { amount: 5_100, currency: 'USD' },
        },
      ],
    })
  })

  test.each([
    ['40001', 'Not routable', 'invalid_number'],
    ['40002', 'Blocked as spam', 'content_blocked'],
    ['40300', 'Blocked due to STOP message', 'opted_out'],
    ['40300', 'Unreachable', 'unreachable'],
    ['40008', 'Undeliverable', 'unknown'],
  ])('a failed delivery with %s (%s) is %s', async (code, title, failureClass) => {
    const body = event('message.finalized', 'delivery_failed', [{ code, title }])
    expect(await api.readCallback(call(body, now()))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: failureClass, providerCode: code } }],
    })
  })

  test('an expired message was not delivered', async () => {
    expect(await api.readCallback(call(event('message.finalized', 'expired'), now()))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: 'unreachable' } }],
    })
  })

  test.each([
    ['message.received', 'webhook_delivered'],
    ['message.finalized', 'a word of tomorrow'],
  ])('%s with %s reports nothing', async (type, status) => {
    expect(await api.readCallback(call(event(type, status), now()))).toEqual({
      kind: 'receipts',
      receipts: [],
    })
  })

  test('refuses callbacks that are signed with another key, modified or old', async () => {
    const body = event('message.finalized', 'delivered')
    const genuineCallback = call(body, now())
    const forgeries = [
      call(body, now(), generateKeyPairSync('ed25519').privateKey),
      { ...genuineCallback, body: body.replace('delivered', 'sent') },
      {
        ...genuineCallback,
        headers: { ...genuineCallback.headers, 'telnyx-timestamp': String(Number(now()) - 1) },
      },
      call(body, String(Number(now()) - 301)),
      call(body, String(Number(now()) + 301)),
      { ...genuineCallback, headers: {} },
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
    expect(await api.readCallback(genuineCallback)).toMatchObject({ kind: 'receipts' })
  })

  test('reports a signed callback that cannot be read', async () => {
    for (const body of ['', 'no', '[]', '{"data":{"event_type":"message.sent","payload":{}}}']) {
      expect(await api.readCallback(call(body, now()))).toEqual({ kind: 'unreadable' })
    }
  })
})

describeHttpFaults((baseUrl) => makeProvider(telnyx, { ...settings, baseUrl }))
