import { afterAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { SignJWT } from 'jose'
import { vonageMessages } from '../../../src/delivery/providers/vonage-messages.ts'
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
const provider = makeProvider(vonageMessages, settings)

const problem = (code: number | string) => ({
  type: `https://developer.vonage.com/api-errors/messages#${code}`,
  title: 'Words',
  detail: 'More words',
  instance: 'bf0ca0bf927b3b52e3cb03217e1a1ddf',
})

describe('a message', () => {
  test('is posted as Vonage documents it, with its lifetime and its reference', async () => {
    server.setResponse(202, { message_uuid: 'aaaaaaaa-bbbb-4ccc-dddd-0123456789ab' })
    expect(await sendTo(provider)).toEqual({
      kind: 'accepted',
      messageId: 'aaaaaaaa-bbbb-4ccc-dddd-0123456789ab',
    })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/v1/messages'])
    expect(call.headers['content-type']).toBe('application/json')
    expect(call.headers['authorization']).toBe(`Basic ${btoa('abcd1234:secret-of-vonage')}`)
    expect(JSON.parse(call.body)).toEqual({
      message_type: 'text',
      channel: 'sms',
      to: '31612345678',
      from: 'Acme',
      text: '482913 is your verification code. It is valid for 5 minutes.',
      ttl: 300,
      client_ref: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      webhook_url: 'https://otp.example.com/v1/callbacks/main/k8s2',
      webhook_version: 'v1',
    })
  })

  test('contains the ids required in India, and no callback without a reachable URL', async () => {
    const india = makeProvider(vonageMessages, { ...settings, entityId: '1101', contentId: '1107' })
    server.setResponse(202, { message_uuid: 'u1' })
    await sendTo(india, { callbackUrl: null })
    const body: unknown = JSON.parse(server.takeCall().body)
    expect(body).toMatchObject({ sms: { entity_id: '1101', content_id: '1107' } })
    expect(body).not.toContainAnyKeys(['webhook_url', 'webhook_version'])
  })
})

describe('an error', () => {
  test.each([
    [401, 'unauthorized', 'auth_failed', 'account', true, 'HTTP 401'],
    [402, 1070, 'no_credit', 'account', true, '1070'],
    [422, 1020, 'unknown', 'route', true, '1020'],
    [422, 1040, 'invalid_number', 'number', true, '1040'],
    [422, 1050, 'opted_out', 'number', true, '1050'],
    [422, 1120, 'sender_invalid', 'route', true, '1120'],
    [422, 1160, 'sender_invalid', 'route', true, '1160'],
    [422, 8888, 'unknown', 'route', true, '8888'],
    [403, 1060, 'auth_failed', 'account', true, '1060'],
    [500, 1030, 'provider_down', 'route', false, '1030'],
  ])('HTTP %i with %s is %s of the %s', async (status, code, failureClass, at, permanent, providerCode) => {
    server.setResponse(status, problem(code))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: {
        class: expect.stringMatching(failureClass),
        at: expect.stringMatching(at),
        permanent,
        providerCode,
      },
    })
    server.takeCall()
  })

  test('for too many messages says when to retry', async () => {
    server.setResponse(429, problem(1000), { 'retry-after': '2' })
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled', providerCode: '1000', retryAfterSeconds: 2 },
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(vonageMessages, { ...settings, baseUrl }))

const receipt = {
  message_uuid: 'u1',
  to: '31612345678',
  from: 'Acme',
  timestamp: '2026-11-20T12:00:00.000Z',
  status: 'delivered',
  client_ref: 'otp_1',
  usage: { currency: 'EUR', price: '0.0333' },
  channel: 'sms',
}
const ids = { messageId: 'u1', requestId: 'otp_1' }
const receiptCallback = (body: unknown) => createCallback({ body: JSON.stringify(body) })

describe('a receipt', () => {
  test.each([
    ['submitted', 'sent'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
  ])('of %s is %s', async (status, expected) => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status }))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          ...ids,
          status: expected === 'sent' ? 'sent' : 'delivered',
          failure: null,
          charge: { amount: 33_300, currency: 'EUR' },
        },
      ],
    })
  })

  test.each([
    [
      'rejected',
      { type: 'https://developer.vonage.com/api-errors/messages#1040', title: 1040 },
      'invalid_number',
    ],
    ['rejected', { type: 'https://developer.vonage.com/api-errors/messages', title: '1070' }, 'no_credit'],
    ['undeliverable', { title: 1180 }, 'unreachable'],
    ['rejected', { title: 7777 }, 'unknown'],
    ['rejected', undefined, 'unknown'],
  ])('of %s with %j says %s', async (status, error, failureClass) => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status, error }))).toMatchObject({
      receipts: [{ ...ids, status: 'undelivered', failure: { class: failureClass } }],
    })
  })

  test('of an unknown status reports nothing, and without fields is unreadable', async () => {
    expect(await readCallback(provider, receiptCallback({ ...receipt, status: 'pondered' }))).toEqual({
      kind: 'receipts',
      receipts: [],
    })
    expect(await readCallback(provider, receiptCallback({ status: 'delivered' }))).toEqual({
      kind: 'unreadable',
    })
    expect(await readCallback(provider, createCallback({ body: 'no JSON' }))).toEqual({ kind: 'unreadable' })
  })
})

describe('a signed receipt', () => {
  const now = testClock().now()
  const secret = 'a-signature-secret-of-32-letters'
  const signing = makeProvider(vonageMessages, { ...settings, signatureSecret: secret })
  const body = JSON.stringify(receipt)
  const hash = createHash('sha256').update(body).digest('hex')

  const sign = async (
    claims: Record<string, unknown> = { payload_hash: hash },
    { key = secret, alg = 'HS256' }: { key?: string; alg?: string } = {},
  ) => {
    const token = await new SignJWT({ api_key: 'abcd1234', iss: 'Vonage', ...claims })
      .setProtectedHeader({ alg, typ: 'JWT' })
      .setIssuedAt(now / 1000)
      .sign(new TextEncoder().encode(key))
    return createCallback({ body, headers: { authorization: `Bearer ${token}` } })
  }

  test('with the hash of its body is valid', async () => {
    expect(await readCallback(signing, await sign())).toMatchObject({
      receipts: [{ ...ids, status: 'delivered' }],
    })
  })

  test('is forged with another secret, body or algorithm, or without hash or token', async () => {
    const genuineCallback = await sign()
    const [header, payload] =
      genuineCallback.headers['authorization']?.replace('Bearer ', '').split('.') ?? []
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    const forgeries = [
      await sign({ payload_hash: hash }, { key: 'another-signature-secret-letters' }),
      await sign({ payload_hash: hash }, { alg: 'HS512', key: secret.repeat(2) }),
      { ...genuineCallback, body: body.replace('delivered', 'rejected') },
      await sign({}),
      { ...genuineCallback, headers: { authorization: `Bearer ${none}.${payload}.` } },
      { ...genuineCallback, headers: { authorization: `Bearer ${header}.${payload}.AAAA` } },
      { ...genuineCallback, headers: { authorization: 'Bearer ..' } },
      { ...genuineCallback, headers: {} },
    ]
    for (const one of forgeries) expect(await readCallback(signing, one)).toEqual({ kind: 'forged' })
  })

  test('is forged if it is replayed too late', async () => {
    expect(await readCallback(signing, await sign(), now + 3_599_000)).toMatchObject({ kind: 'receipts' })
    expect(await readCallback(signing, await sign(), now + 3_601_000)).toEqual({ kind: 'forged' })
  })
})
