import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { whatsapp } from '../../../src/delivery/providers/whatsapp.ts'
import { startProviderApi, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider } from '../../helpers/provider-server.ts'

const appSecret = '0123456789abcdef0123456789abcdef'
const settings = {
  accessToken: 'EAAG-token',
  phoneNumberId: '106540352242922',
  template: 'otp_code',
  languages: 'en_US, nl, pt_BR',
  appSecret,
  verifyToken: 'meat is murder',
}

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(whatsapp, settings)
})
afterEach(() => api.stop())

const acceptedBody = {
  messaging_product: 'whatsapp',
  contacts: [{ input: '31612345678', wa_id: '31612345678' }],
  messages: [{ id: 'wamid.HBgL', message_status: 'accepted' }],
}

describe('sending by WhatsApp', () => {
  test('posts the template with the code in its text and its button', async () => {
    api.setResponse(200, acceptedBody)
    expect(await api.send({ channel: 'whatsapp' })).toEqual({ kind: 'accepted', messageId: 'wamid.HBgL' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/v23.0/106540352242922/messages' })
    expect(headers['authorization']).toBe('Bearer EAAG-token')
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: '31612345678',
      type: 'template',
      template: {
        name: 'otp_code',
        language: { code: 'en_US' },
        components: [
          { type: 'body', parameters: [{ type: 'text', text: '482913' }] },
          { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: '482913' }] },
        ],
      },
      biz_opaque_callback_data: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test.each([
    ['nl', 'nl'],
    ['nl-BE', 'nl'],
    ['pt-BR', 'pt_BR'],
    ['pt', 'pt_BR'],
    ['pt-Latn-PT', 'pt_BR'],
    ['ar', 'en_US'],
  ])('for %s it uses the template in %s', async (locale, language) => {
    api.setResponse(200, acceptedBody)
    await api.send({ locale })
    expect(JSON.parse(api.takeCall().body)).toMatchObject({ template: { language: { code: language } } })
  })

  test.each([
    [400, 131026, 'unreachable', 'number', false],
    [400, 131021, 'invalid_number', 'number', true],
    [400, 131056, 'throttled', 'number', false],
    [400, 130429, 'throttled', 'route', false],
    [400, 131030, 'sender_invalid', 'route', true],
    [400, 130497, 'geo_blocked', 'route', true],
    [404, 132001, 'content_blocked', 'route', true],
    [401, 190, 'auth_failed', 'account', true],
    [400, 131042, 'no_credit', 'account', true],
    [500, 131000, 'provider_down', 'route', false],
    [400, 100, 'unknown', 'route', true],
    [400, 131037, 'sender_invalid', 'route', true],
    [500, 3, 'auth_failed', 'account', true],
    [500, 131045, 'sender_invalid', 'route', true],
    [500, 131016, 'provider_down', 'route', false],
    [400, 999999, 'unknown', 'route', false],
  ])('%i with code %i is %s', async (status, code, failureClass, at, permanent) => {
    api.setResponse(status, { error: { message: `(#${code}) A title`, type: 'OAuthException', code } })
    expect(await api.send()).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: String(code) }),
    })
  })

  test('a success that cannot be read is uncertain', async () => {
    api.setResponse(200, { messages: [] })
    expect(await api.send()).toMatchObject({ kind: 'uncertain' })
  })
})

describe('receipts of WhatsApp', () => {
  const call = (body: string, secret = appSecret) => ({
    headers: { 'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` },
    body,
  })
  const event = (...statuses: object[]) =>
    JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '1', changes: [{ field: 'messages', value: { statuses } }] }],
    })
  const status = (name: string, errors: object[] = []) => ({
    id: 'wamid.HBgL',
    status: name,
    timestamp: '1763640000',
    recipient_id: '31612345678',
    biz_opaque_callback_data: 'otp_7',
    errors,
  })
  const ids = { messageId: 'wamid.HBgL', requestId: 'otp_7' }

  test('reads every status of a callback, and skips unknown ones', async () => {
    const failed = status('failed', [{ code: 131026, title: 'Message undeliverable' }])
    const body = event(status('sent'), status('delivered'), status('read'), status('deleted'), failed)
    expect(await api.readCallback(call(body))).toEqual({
      kind: 'receipts',
      receipts: [
        { ...ids, status: 'sent', failure: null },
        { ...ids, status: 'delivered', failure: null },
        { ...ids, status: 'delivered', failure: null },
        {
          ...ids,
          status: 'undelivered',
          failure: { class: 'unreachable', permanent: false, at: 'number', providerCode: '131026' },
        },
      ],
    })
  })

  test('a failure without a code is unknown', async () => {
    expect(await api.readCallback(call(event(status('failed'))))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: 'unknown', providerCode: null } }],
    })
  })

  test('incoming messages report nothing', async () => {
    const body = JSON.stringify({ entry: [{ changes: [{ value: { messages: [{ id: 'wamid.X' }] } }] }] })
    expect(await api.readCallback(call(body))).toEqual({ kind: 'receipts', receipts: [] })
  })

  test('refuses another secret, another body and a missing signature', async () => {
    const genuineCallback = call(event(status('delivered')))
    const forgeries = [
      call(genuineCallback.body, 'f'.repeat(32)),
      { ...genuineCallback, body: event(status('sent')) },
      { ...genuineCallback, headers: {} },
      { ...genuineCallback, headers: { 'x-hub-signature-256': 'sha256=' } },
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
  })

  test('reports a signed callback that cannot be read', async () => {
    for (const body of ['no', '{}', '{"entry":{}}']) {
      expect(await api.readCallback(call(body))).toEqual({ kind: 'unreadable' })
    }
  })

  const challenge = (query: Record<string, string>) =>
    api.readCallback({ method: 'GET', url: `https://otp.example.com/c?${new URLSearchParams(query)}` })
  const verificationQuery = {
    'hub.mode': 'subscribe',
    'hub.verify_token': 'meat is murder',
    'hub.challenge': '1158201444',
  }

  test('echoes the challenge to callers that know the verify token', async () => {
    expect(await challenge(verificationQuery)).toEqual({ kind: 'challenge', text: '1158201444' })
    expect(await challenge({ ...verificationQuery, 'hub.verify_token': 'another' })).toEqual({
      kind: 'forged',
    })
    expect(await challenge({ ...verificationQuery, 'hub.mode': 'unsubscribe' })).toEqual({ kind: 'forged' })
    expect(await challenge({})).toEqual({ kind: 'forged' })
  })

  test('echoes nothing that a browser could render as a page', async () => {
    expect(await challenge({ ...verificationQuery, 'hub.challenge': '<script>' })).toEqual({
      kind: 'unreadable',
    })
  })
})

describeHttpFaults((baseUrl) => makeProvider(whatsapp, { ...settings, baseUrl }))
