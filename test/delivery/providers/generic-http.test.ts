import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { genericHttp } from '../../../src/delivery/providers/generic-http.ts'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { startProviderApi, trickyText, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider } from '../../helpers/provider-server.ts'

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
const settings = (origin: string) => ({ url: `${origin}/otp/?source=otpd`, secret, channels: 'sms, voice' })

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(genericHttp, settings)
})
afterEach(() => api.stop())

describe("sending through the operator's own service", () => {
  test('posts an event that a stock Standard Webhooks library verifies', async () => {
    api.setResponse(200, { messageId: 'msg-1' })
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: 'msg-1' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/otp/?source=otpd' })
    expect(headers['content-type']).toBe('application/json')
    expect(headers['webhook-timestamp']).toBe(String(api.nowSeconds()))
    // The library uses the machine's clock; the time is checked above.
    const signature = new Webhook(secret).sign(headers['webhook-id'] ?? '', new Date(api.now()), body)
    expect(headers['webhook-signature']).toBe(signature)
    expect(JSON.parse(body)).toEqual({
      type: 'otp.deliver',
      timestamp: new Date(api.now()).toISOString(),
      data: {
        requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
        messageNumber: 0,
        attempt: 1,
        channel: 'sms',
        phone: '+31612345678',
        country: 'NL',
        text: trickyText,
        code: '482913',
        locale: 'en',
        applicationName: 'Acme',
        validitySeconds: 300,
        callbackUrl: 'https://otp.example.com/v1/callbacks/main/k8s2',
      },
    })
  })

  test('gives every attempt of every message its own id, as receivers drop those that repeat', async () => {
    api.setResponse(204)
    const ids = new Set<string | undefined>()
    for (const numbers of [{}, { attempt: 2 }, { messageNumber: 1 }, { messageNumber: 1, attempt: 2 }]) {
      expect(await api.send(numbers)).toEqual({ kind: 'accepted', messageId: null })
      ids.add(api.takeCall().headers['webhook-id'])
    }
    expect(ids.size).toBe(4)
  })

  test('has the channels of its settings', () => {
    expect(enabledChannels(genericHttp, settings('https://x.example'))).toEqual(['sms', 'voice'])
  })

  test.each([
    ['invalid_number', 'number', true],
    ['unreachable', 'number', false],
    ['opted_out', 'number', true],
    ['geo_blocked', 'route', true],
    ['content_blocked', 'route', true],
    ['sender_invalid', 'route', true],
    ['no_credit', 'account', true],
  ])('422 with the reason %s has the failure class of that name', async (reason, at, permanent) => {
    api.setResponse(422, { reason })
    expect(await api.send()).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: reason, at, permanent, providerCode: reason }),
    })
  })

  test('waits as long as a busy service asks for', async () => {
    api.setResponse(422, { reason: 'throttled' }, { 'retry-after': '9' })
    expect(await api.send()).toMatchObject({ failure: { class: 'throttled', retryAfterSeconds: 9 } })
  })

  test.each([
    [422, { reason: 'uncertain' }, 'unknown'],
    [422, 'no', 'unknown'],
    [400, { reason: 'invalid_number' }, 'unknown'],
    [401, {}, 'auth_failed'],
    [302, {}, 'unknown'],
    [500, {}, 'provider_down'],
  ])('%i with %j is %s', async (status, body, failureClass) => {
    api.setResponse(status, body)
    expect(await api.send()).toMatchObject({ kind: 'refused', failure: { class: failureClass } })
  })
})

describe('settings', () => {
  const findFaults = (url: string) => findSettingFaults(genericHttp, { url, secret })

  test.each([
    'https://sms.example.com',
    'https://sms.example.com:8443/otp?a=b&c=%20',
    'http://127.0.0.1:8080/otp',
    'http://localhost?x=1',
    'http://[::1]:80/',
  ])('the URL %s is valid', (url) => {
    expect(findFaults(url)).toEqual([])
  })

  test.each([
    'http://sms.example.com/otp',
    'http://localhost.example.com/',
    'http://127.0.0.999/',
    'http://127.1/',
    'http://127.0.0.1@sms.example.com/',
    'http://127.0.0.1:80@sms.example.com/',
    'https://user:password@sms.example.com/',
    'https://sms.example.com/#part',
    'https://{{to}}.example.com/',
    'ftp://sms.example.com',
    'sms.example.com',
  ])('the URL %s is invalid', (url) => {
    expect(findFaults(url)).toMatchObject([{ name: 'url' }])
  })

  test('a secret that no library accepts is rejected, and the error does not contain it', () => {
    const faults = findSettingFaults(genericHttp, { url: 'https://sms.example.com', secret: 'swordfish' })
    expect(faults).toMatchObject([{ name: 'secret' }])
    expect(JSON.stringify(faults)).not.toContain('swordfish')
  })
})

describe("receipts from the operator's own service", () => {
  const call = (body: string, { ageSeconds = 0, signingSecret = secret } = {}) => {
    const at = new Date(api.now() - ageSeconds * 1000)
    return {
      headers: {
        'webhook-id': 'msg-1',
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': new Webhook(signingSecret).sign('msg-1', at, body),
      },
      body,
    }
  }
  const otherSecret = `whsec_${Buffer.from('ffffffffffffffffffffffffffffffff').toString('base64')}`

  test.each(['sent', 'delivered'] as const)('reads that a message was %s', async (status) => {
    const body = JSON.stringify({ requestId: 'otp_7', messageId: 'msg-1', status })
    expect(await api.readCallback(call(body))).toEqual({
      kind: 'receipts',
      receipts: [{ requestId: 'otp_7', messageId: 'msg-1', status, failure: null }],
    })
  })

  test.each([
    ['opted_out', 'opted_out'],
    ['tomorrow', 'unknown'],
  ])('reads that a message was undelivered because of %s', async (reason, failureClass) => {
    const body = JSON.stringify({ requestId: 'otp_7', status: 'undelivered', reason })
    expect(await api.readCallback(call(body))).toMatchObject({
      receipts: [
        { messageId: null, status: 'undelivered', failure: { class: failureClass, providerCode: reason } },
      ],
    })
  })

  test('accepts one of several signatures', async () => {
    const genuineCallback = call('{"requestId":"otp_7","status":"sent"}')
    const twoSignatures = `v1,AAAA v2,xyz ${genuineCallback.headers['webhook-signature']}`
    expect(
      await api.readCallback({
        ...genuineCallback,
        headers: { ...genuineCallback.headers, 'webhook-signature': twoSignatures },
      }),
    ).toMatchObject({ kind: 'receipts' })
  })

  test('rejects a wrong secret, id or body, and a timestamp more than five minutes off', async () => {
    const body = '{"requestId":"otp_7","status":"delivered"}'
    const genuineCallback = call(body)
    const forgeries = [
      call(body, { signingSecret: otherSecret }),
      { ...genuineCallback, body: body.replace('delivered', 'sent') },
      { ...genuineCallback, headers: { ...genuineCallback.headers, 'webhook-id': 'msg-2' } },
      call(body, { ageSeconds: 301 }),
      call(body, { ageSeconds: -301 }),
      { ...genuineCallback, headers: {} },
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
  })

  test('reports a signed callback that cannot be read', async () => {
    for (const body of ['no', '{"status":"sent"}', '{"requestId":"otp_7","status":"tomorrow"}']) {
      expect(await api.readCallback(call(body))).toEqual({ kind: 'unreadable' })
    }
  })
})

describeHttpFaults((baseUrl) => makeProvider(genericHttp, { url: baseUrl, secret }), { statusSuffices: true })
