import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { SignJWT } from 'jose'
import { messagebird } from '../../../src/delivery/providers/messagebird.ts'
import { makeProvider } from '../../helpers/provider-server.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { startProviderApi, trickyText, type ProviderApi } from '../../helpers/provider-api.ts'

const settings = { accessKey: 'live_key', originator: 'ACME', signingKey: 'signing-key' }

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(messagebird, settings)
})
afterEach(() => api.stop())

describe('sending by MessageBird', () => {
  test('posts the message as its API documents it', async () => {
    const items = [{ recipient: 31612345678, status: 'sent' }]
    api.setResponse(201, { id: 'e8077d80', recipients: { totalSentCount: 1, items } })
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: 'e8077d80' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/messages' })
    expect(headers['authorization']).toBe('AccessKey live_key')
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      type: 'sms',
      originator: 'ACME',
      recipients: ['31612345678'],
      body: trickyText,
      datacoding: 'auto',
      validity: 300,
      reference: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      reportUrl: 'https://otp.example.com/v1/callbacks/main/k8s2',
    })
  })

  test('requests no receipts if they could not be verified', async () => {
    const other = startProviderApi(messagebird, { accessKey: 'live_key', originator: 'ACME' })
    await other.send()
    expect(JSON.parse(other.takeCall().body)).not.toHaveProperty('reportUrl')
    expect(other.provider.readCallback).toBeUndefined()
    await other.stop()
  })

  test.each([
    [401, 2, 'access_key', 'auth_failed'],
    [422, 9, 'recipients', 'invalid_number'],
    [422, 10, 'originator', 'sender_invalid'],
    [422, 25, null, 'no_credit'],
    [402, 77, null, 'no_credit'],
    [422, 10, 'body', 'unknown'],
    [500, 99, null, 'provider_down'],
    [429, 77, null, 'throttled'],
  ])('%i with code %i about %s is %s', async (status, code, parameter, failureClass) => {
    api.setResponse(status, { errors: [{ code, description: 'A description', parameter }] })
    expect(await api.send()).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, providerCode: String(code) },
    })
  })

  test('a message that fails at once is refused', async () => {
    const items = [{ recipient: 31612345678, status: 'delivery_failed' }]
    api.setResponse(201, { id: 'e8', recipients: { totalSentCount: 0, items } })
    expect(await api.send()).toMatchObject({ kind: 'refused', failure: { class: 'unknown' } })
  })

  test('a success that cannot be read is uncertain', async () => {
    api.setResponse(201, '<html>')
    expect(await api.send()).toMatchObject({ kind: 'uncertain' })
  })
})

describe('receipts of MessageBird', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

  async function call(
    query: Record<string, string>,
    { key = 'signing-key', url = '', claims = {}, ageSeconds = 0, body = '' } = {},
  ) {
    const address = `https://otp.example.com/v1/callbacks/main/k8s2?${new URLSearchParams(query)}`
    const issued = api.nowSeconds() - ageSeconds
    const payload = {
      jti: '93e55006',
      url_hash: sha256(url || address),
      ...(body !== '' && { payload_hash: sha256(body) }),
      ...claims,
    }
    const jwt = await new SignJWT(payload)
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer('MessageBird')
      .setNotBefore(issued)
      .setExpirationTime(issued + 60)
      .sign(Buffer.from(key))
    return { method: 'GET', url: address, headers: { 'messagebird-signature-jwt': jwt }, body }
  }
  const query = (status: string, extraFields: Record<string, string> = {}) => ({
    id: 'e8077d80',
    reference: 'otp_7',
    recipient: '31612345678',
    status,
    ...extraFields,
  })

  test.each([
    ['sent', 'sent'],
    ['buffered', 'sent'],
    ['delivered', 'delivered'],
  ] as const)('%s says %s', async (status, expected) => {
    expect(await api.readCallback(await call(query(status)))).toEqual({
      kind: 'receipts',
      receipts: [{ messageId: 'e8077d80', requestId: 'otp_7', status: expected, failure: null }],
    })
  })

  test.each([
    ['expired', '', '', 'unreachable', 'expired'],
    ['expired', 'expired', '8', 'unreachable', '8'],
    ['delivery_failed', 'incorrect number', '', 'invalid_number', 'incorrect_number'],
    ['delivery_failed', 'carrier rejected', '104', 'content_blocked', '104'],
    ['delivery_failed', 'unknown subscriber', '1', 'unreachable', '1'],
    ['delivery_failed', 'opted_out', '105', 'opted_out', '105'],
    ['delivery_failed', 'a word of tomorrow', '7', 'unknown', '7'],
  ])('%s with %s is a failure of class %s', async (status, reason, code, failureClass, providerCode) => {
    const extraFields = { ...(reason && { statusReason: reason }), ...(code && { statusErrorCode: code }) }
    expect(await api.readCallback(await call(query(status, extraFields)))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: failureClass, providerCode } }],
    })
  })

  test.each(['expired', 'delivery_failed'])(
    '%s because the network never reported says sent: the code may have arrived',
    async (status) => {
      const callback = await call(query(status, { statusReason: 'DLR not received' }))
      expect(await api.readCallback(callback)).toMatchObject({
        receipts: [{ status: 'sent', failure: null }],
      })
    },
  )

  test('an unknown status reports nothing', async () => {
    expect(await api.readCallback(await call(query('scheduled')))).toEqual({ kind: 'receipts', receipts: [] })
  })

  test('refuses other keys, URLs and bodies, and old calls', async () => {
    const genuineCallback = await call(query('delivered'))
    const forgeries = [
      await call(query('delivered'), { key: 'another' }),
      { ...genuineCallback, url: genuineCallback.url.replace('delivered', 'sent') },
      { ...genuineCallback, body: 'status=sent' },
      { ...genuineCallback, headers: {} },
      await call(query('delivered'), { ageSeconds: 66 }),
      await call(query('delivered'), { ageSeconds: -6 }),
      await call(query('delivered'), { claims: { url_hash: undefined } }),
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
    expect(await api.readCallback(genuineCallback)).toMatchObject({ kind: 'receipts' })
  })

  test('refuses a token without a signature', async () => {
    const genuineCallback = await call(query('delivered'))
    const [, payload] = genuineCallback.headers['messagebird-signature-jwt'].split('.')
    const header = Buffer.from('{"alg":"none"}').toString('base64url')
    const unsigned = { ...genuineCallback, headers: { 'messagebird-signature-jwt': `${header}.${payload}.` } }
    expect(await api.readCallback(unsigned)).toEqual({ kind: 'forged' })
  })

  test('reports a signed callback that lacks its fields', async () => {
    expect(await api.readCallback(await call({ id: 'e8' }))).toEqual({ kind: 'unreadable' })
    expect(await api.readCallback(await call({ status: 'sent' }))).toEqual({ kind: 'unreadable' })
  })
})

describeHttpFaults((baseUrl) => makeProvider(messagebird, { ...settings, baseUrl }))
