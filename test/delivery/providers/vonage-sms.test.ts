import { afterAll, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { vonageSms } from '../../../src/delivery/providers/vonage-sms.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  makeProvider,
  readCallback,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const settings = { apiKey: 'abcd1234', apiSecret: 'secret-of-vonage', from: 'Acme', baseUrl: server.url }
const provider = makeProvider(vonageSms, settings)
const parseForm = (body: string) => Object.fromEntries(new URLSearchParams(body))

const acceptedBody = {
  'message-count': '1',
  messages: [
    {
      to: '31612345678',
      'message-id': '0A0000000123ABCD1',
      status: '0',
      'remaining-balance': '3.14159265',
      'message-price': '0.03330000',
      network: '12345',
    },
  ],
}
const refusal = (status: string) => ({ 'message-count': '1', messages: [{ status, 'error-text': 'words' }] })

describe('a message', () => {
  test('is posted as Vonage documents it, with its lifetime and its reference', async () => {
    server.setResponse(200, acceptedBody)
    expect(await sendTo(provider)).toEqual({
      kind: 'accepted',
      messageId: '0A0000000123ABCD1',
      charge: { amount: 33_300, currency: 'EUR' },
    })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/sms/json'])
    expect(call.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(parseForm(call.body)).toEqual({
      api_key: 'abcd1234',
      api_secret: 'secret-of-vonage',
      from: 'Acme',
      to: '31612345678',
      text: '482913 is your verification code. It is valid for 5 minutes.',
      type: 'text',
      ttl: '300000',
      callback: 'https://otp.example.com/v1/callbacks/main/k8s2',
      'client-ref': 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('outside the GSM alphabet is sent as Unicode, and has a lifetime of at least 20 seconds', async () => {
    server.setResponse(200, acceptedBody)
    await sendTo(provider, { text: '482913 是您的验证码', validitySeconds: 4, callbackUrl: null })
    const form = parseForm(server.takeCall().body)
    expect(form).toMatchObject({ type: 'unicode', ttl: '20000', text: '482913 是您的验证码' })
    expect(form).not.toContainKey('callback')
  })

  test('of several parts is accepted if one of them was', async () => {
    server.setResponse(200, {
      'message-count': '2',
      messages: [...refusal('1').messages, ...acceptedBody.messages],
    })
    expect(await sendTo(provider)).toEqual({
      kind: 'accepted',
      messageId: '0A0000000123ABCD1',
      charge: { amount: 33_300, currency: 'EUR' },
    })
    server.takeCall()
  })

  test('costs what its accepted parts cost together, if each has a price', async () => {
    const [part] = acceptedBody.messages
    const sendParts = async (...prices: unknown[]) => {
      const messages = prices.map((price) => ({ ...part, 'message-price': price }))
      server.setResponse(200, { 'message-count': String(messages.length), messages })
      const outcome = await sendTo(provider)
      server.takeCall()
      return outcome.kind === 'accepted' ? outcome.charge : outcome
    }
    expect(await sendParts('0.0333', '0.0333')).toEqual({ amount: 66_600, currency: 'EUR' })
    for (const price of ['-1', 'free', null, undefined])
      expect(await sendParts('0.0333', price)).toBeUndefined()
  })

  test.each([[''], ['<html>'], [{ messages: [] }], [{ 'message-count': '1' }]])(
    'is uncertain after HTTP 200 with %j',
    async (body) => {
      server.setResponse(200, body)
      expect(await sendTo(provider)).toMatchObject({
        kind: 'uncertain',
        failure: { providerCode: 'HTTP 200' },
      })
      server.takeCall()
    },
  )
})

describe('an error within HTTP 200', () => {
  test.each([
    ['1', 'throttled', 'route', false],
    ['2', 'unknown', 'route', true],
    ['3', 'unknown', 'route', true],
    ['4', 'auth_failed', 'account', true],
    ['5', 'provider_down', 'route', false],
    ['6', 'invalid_number', 'number', true],
    ['7', 'opted_out', 'number', true],
    ['8', 'auth_failed', 'account', true],
    ['9', 'no_credit', 'account', true],
    ['15', 'sender_invalid', 'route', true],
    ['29', 'sender_invalid', 'route', true],
    ['33', 'invalid_number', 'number', true],
    ['777', 'unknown', 'route', false],
  ])('%s is %s of the %s', async (status, failureClass, at, permanent) => {
    server.setResponse(200, refusal(status))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: status }),
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(vonageSms, { ...settings, baseUrl }))

const receipt = {
  msisdn: '31612345678',
  to: 'Acme',
  'network-code': '12345',
  messageId: '0A0000000123ABCD1',
  price: '0.03330000',
  status: 'delivered',
  scts: '2011201200',
  'err-code': '0',
  'api-key': 'abcd1234',
  'client-ref': 'otp_1',
  'message-timestamp': '2026-11-20 12:00:00',
}
const ids = { messageId: '0A0000000123ABCD1', requestId: 'otp_1' }
const receiptCallback = (fields: Record<string, string>) =>
  createCallback({ body: new URLSearchParams(fields).toString() })

describe('a receipt', () => {
  test.each([
    ['delivered', 'delivered'],
    ['accepted', 'sent'],
    ['buffered', 'sent'],
  ])('of %s is %s', async (status, expected) => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status }))).toEqual({
      kind: 'receipts',
      receipts: [{ ...ids, status: expected === 'sent' ? 'sent' : 'delivered', failure: null }],
    })
  })

  test.each([
    ['failed', '2', 'unreachable', 'number', false],
    ['failed', '3', 'unreachable', 'number', true],
    ['rejected', '6', 'content_blocked', 'route', true],
    ['failed', '9', 'invalid_number', 'number', true],
    ['failed', '4', 'opted_out', 'number', true],
    ['failed', '11', 'unreachable', 'route', true],
    ['expired', '99', 'unreachable', 'number', false],
    ['failed', '99', 'unknown', 'route', false],
  ])('of %s with %s says %s', async (status, code, failureClass, at, permanent) => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status, 'err-code': code }))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          ...ids,
          status: 'undelivered',
          failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: code }),
        },
      ],
    })
  })

  test('is read from a form, the query of a GET or JSON', async () => {
    const query = new URLSearchParams(receipt).toString()
    const signatureMethods = [
      createCallback({ body: query }),
      createCallback({ method: 'GET', url: `https://otp.example.com/v1/callbacks/main/k8s2?${query}` }),
      createCallback({ body: JSON.stringify(receipt), headers: { 'content-type': 'application/json' } }),
    ]
    for (const way of signatureMethods) {
      expect(await readCallback(provider, way)).toEqual({
        kind: 'receipts',
        receipts: [{ ...ids, status: 'delivered', failure: null }],
      })
    }
  })

  test('of an unknown status reports nothing, and without fields is unreadable', async () => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status: 'unknown' }))).toEqual({
      kind: 'receipts',
      receipts: [],
    })
    expect(await readCallback(provider, receiptCallback({}))).toEqual({ kind: 'unreadable' })
    expect(await readCallback(provider, createCallback({ body: '{"broken' }))).toEqual({ kind: 'unreadable' })
  })
})

describe('a signed receipt', () => {
  const now = testClock().now()
  const signatureSecret = 'the-signature-secret'
  const withSignature = (signatureMethod: string) =>
    makeProvider(vonageSms, { ...settings, signatureSecret, signatureMethod })

  const sign = (method: string, fields: Record<string, string>) => {
    const text = Object.keys(fields)
      .toSorted()
      .map((name) => `&${name}=${fields[name]?.replace(/&/g, '_').replace(/=/g, '_')}`)
      .join('')
    const sig =
      method === 'md5hash'
        ? createHash('md5').update(`${text}${signatureSecret}`).digest('hex')
        : createHmac(method, signatureSecret).update(text).digest('hex').toUpperCase()
    return receiptCallback({ ...fields, sig })
  }
  const timedReceipt = { ...receipt, price: '1=2&3', timestamp: String(now / 1000), nonce: 'n1' }

  test.each(['md5hash', 'md5', 'sha1', 'sha256', 'sha512'])('by %s is valid', async (method) => {
    expect(await readCallback(withSignature(method), sign(method, timedReceipt))).toMatchObject({
      receipts: [{ ...ids, status: 'delivered' }],
    })
  })

  test('is forged if a field was changed, or with another method or secret, or unsigned', async () => {
    const signing = withSignature('sha256')
    const genuineCallback = sign('sha256', timedReceipt)
    const forgeries = [
      { ...genuineCallback, body: genuineCallback.body.replace('delivered', 'failed') },
      sign('sha1', timedReceipt),
      receiptCallback(timedReceipt),
      receiptCallback({ ...timedReceipt, sig: 'ff' }),
    ]
    for (const one of forgeries) expect(await readCallback(signing, one)).toEqual({ kind: 'forged' })
  })

  test('is forged if it is replayed too late, or has no timestamp', async () => {
    const signing = withSignature('sha256')
    expect(await readCallback(signing, sign('sha256', timedReceipt), now + 3_599_000)).toMatchObject({
      kind: 'receipts',
    })
    expect(await readCallback(signing, sign('sha256', timedReceipt), now + 3_601_000)).toEqual({
      kind: 'forged',
    })
    expect(await readCallback(signing, sign('sha256', receipt))).toEqual({ kind: 'forged' })
  })
})
