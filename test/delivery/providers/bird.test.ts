import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { bird } from '../../../src/delivery/providers/bird.ts'
import { startProviderApi, trickyText, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider } from '../../helpers/provider-server.ts'

const settings = {
  accessKey: 'access-key',
  workspaceId: '0b1c2d3e-0000-4000-8000-00000000000a',
  channelId: '0b1c2d3e-0000-4000-8000-00000000000b',
  signingKey: 'signing-key',
}

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(bird, settings)
})
afterEach(() => api.stop())

describe('sending by Bird', () => {
  test('posts the message as its API documents it', async () => {
    api.setResponse(202, { id: '3fa85f64-5717-4562-b3fc-2c963f66afa6', status: 'accepted' })
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: '3fa85f64-5717-4562-b3fc-2c963f66afa6' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({
      method: 'POST',
      path: `/workspaces/${settings.workspaceId}/channels/${settings.channelId}/messages`,
    })
    expect(headers['authorization']).toBe('AccessKey access-key')
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      receiver: { contacts: [{ identifierKey: 'phonenumber', identifierValue: '+31612345678' }] },
      body: { type: 'text', text: { text: trickyText } },
      reference: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test.each([
    [401, 'auth_failed'],
    [402, 'no_credit'],
    [422, 'unknown'],
    [429, 'throttled'],
    [503, 'provider_down'],
  ])('%i is %s', async (status, failureClass) => {
    api.setResponse(status, { code: 'AWord', message: 'A message' })
    expect(await api.send()).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, providerCode: 'AWord' },
    })
  })

  test('a success that cannot be read is uncertain', async () => {
    api.setResponse(200, '<html>')
    expect(await api.send()).toMatchObject({ kind: 'uncertain' })
  })
})

describe('receipts of Bird', () => {
  const url = 'https://otp.example.com/v1/callbacks/main/k8s2'
  const call = (body: string, { key = 'signing-key', at = api.nowSeconds(), signedUrl = url } = {}) => ({
    url,
    headers: {
      'messagebird-request-timestamp': String(at),
      'messagebird-signature': createHmac('sha256', key)
        .update(`${at}\n${signedUrl}\n`)
        .update(createHash('sha256').update(body).digest())
        .digest('base64'),
    },
    body,
  })
  const event = (status: string, extraFields: object = {}, name = 'sms.outbound') =>
    JSON.stringify({
      service: 'channels',
      event: name,
      payload: { id: 'msg-1', reference: 'otp_7', status, ...extraFields },
    })

  test.each(['sent', 'delivered'] as const)('%s says so', async (status) => {
    expect(await api.readCallback(call(event(status)))).toEqual({
      kind: 'receipts',
      receipts: [{ messageId: 'msg-1', requestId: 'otp_7', status, failure: null }],
    })
  })

  test.each([
    ['delivery_failed', 'unknown_subscriber', 'unreachable'],
    ['sending_failed', 'opted_out', 'opted_out'],
    ['rejected', 'insufficient_balance', 'no_credit'],
    ['delivery_failed', 'a word of tomorrow', 'unknown'],
  ])('%s for %s is %s', async (status, details, failureClass) => {
    const failure = { code: 15005, source: { name: 'sms-messagebird', code: '1' } }
    expect(await api.readCallback(call(event(status, { details, failure })))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: failureClass, providerCode: '15005' } }],
    })
  })

  test('a message that Bird could not bill says no credit', async () => {
    const failure = { code: 14001, source: { name: 'accounting', code: '402' } }
    expect(await api.readCallback(call(event('sending_failed', { failure })))).toMatchObject({
      receipts: [{ failure: { class: 'no_credit', at: 'account', providerCode: '14001' } }],
    })
  })

  test('a message that the network never reported on says sent: the code may have arrived', async () => {
    const body = event('delivery_failed', { details: 'dlr_not_received' })
    expect(await api.readCallback(call(body))).toMatchObject({
      receipts: [{ status: 'sent', failure: null }],
    })
  })

  test('messages in progress, incoming messages and unknown statuses report nothing', async () => {
    for (const body of [event('processing'), event('delivered', {}, 'sms.inbound'), event('tomorrow')]) {
      expect(await api.readCallback(call(body))).toEqual({ kind: 'receipts', receipts: [] })
    }
  })

  test('accepts a retry after eight hours, but nothing older', async () => {
    const at = (hours: number) => call(event('sent'), { at: api.nowSeconds() - hours * 3600 })
    expect(await api.readCallback(at(8))).toMatchObject({ kind: 'receipts' })
    expect(await api.readCallback(at(10))).toEqual({ kind: 'forged' })
    expect(await api.readCallback(at(-10))).toEqual({ kind: 'forged' })
  })

  test('refuses other keys, URLs, bodies and times', async () => {
    const genuineCallback = call(event('delivered'))
    const forgeries = [
      call(event('delivered'), { key: 'another' }),
      call(event('delivered'), { signedUrl: 'https://elsewhere.example/' }),
      { ...genuineCallback, body: event('sent') },
      {
        ...genuineCallback,
        headers: {
          ...genuineCallback.headers,
          'messagebird-request-timestamp': String(api.nowSeconds() - 1),
        },
      },
      { ...genuineCallback, headers: {} },
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
  })

  test('reports a signed callback that cannot be read', async () => {
    for (const body of ['no', '{}', '{"event":"sms.outbound","payload":{"id":"msg-1"}}']) {
      expect(await api.readCallback(call(body))).toEqual({ kind: 'unreadable' })
    }
  })
})

describeHttpFaults((baseUrl) => makeProvider(bird, { ...settings, baseUrl }))
