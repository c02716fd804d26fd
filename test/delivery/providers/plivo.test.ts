import { afterAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { plivo } from '../../../src/delivery/providers/plivo.ts'
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

const settings = {
  authId: 'MAXXXXXXXXXXXXXXXXXX',
  authToken: 'token-of-plivo',
  from: '15005550006',
  baseUrl: server.url,
}
const provider = makeProvider(plivo, settings)
const queued = { message: 'message(s) queued', message_uuid: ['db3ce55a-7f1d'], api_id: '5a9fcb68' }

describe('a message', () => {
  test('is posted as Plivo documents it, with its lifetime and its reference, hidden from the console', async () => {
    server.setResponse(202, queued)
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'db3ce55a-7f1d' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/v1/Account/MAXXXXXXXXXXXXXXXXXX/Message/'])
    expect(call.headers['content-type']).toBe('application/json')
    expect(call.headers['authorization']).toBe(`Basic ${btoa('MAXXXXXXXXXXXXXXXXXX:token-of-plivo')}`)
    expect(JSON.parse(call.body)).toEqual({
      src: '15005550006',
      dst: '31612345678',
      text: '482913 is your verification code. It is valid for 5 minutes.',
      url: 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      method: 'POST',
      log: 'false',
      message_expiry: 300,
    })
  })

  test('is sent by a Powerpack with the ids required in India, and no callback without a reachable URL', async () => {
    const other = makeProvider(plivo, {
      authId: 'MA1',
      authToken: 'token-of-plivo',
      powerpackUuid: '86bbb125-97bb-4d72-89fd-81d5c515b015',
      dltEntityId: '1101',
      dltTemplateId: '1107',
      baseUrl: server.url,
    })
    server.setResponse(202, queued)
    await sendTo(other, { callbackUrl: null, validitySeconds: 1 })
    expect(JSON.parse(server.takeCall().body)).toEqual({
      powerpack_uuid: '86bbb125-97bb-4d72-89fd-81d5c515b015',
      dst: '31612345678',
      text: '482913 is your verification code. It is valid for 5 minutes.',
      log: 'false',
      message_expiry: 5,
      dlt_entity_id: '1101',
      dlt_template_id: '1107',
    })
  })

  test('that is invalid is refused permanently', async () => {
    server.setResponse(400, { api_id: '1', error: 'words' })
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: { class: 'unknown', permanent: true, at: 'route', providerCode: 'HTTP 400' },
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(plivo, { ...settings, baseUrl }))

describe('a receipt', () => {
  const url = 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_1'
  const nonce = '05429567804466091622'
  const fields = {
    From: '15005550006',
    MessageUUID: 'db3ce55a-7f1d',
    Status: 'delivered',
    To: '31612345678',
    TotalAmount: '0.0070',
    TotalRate: '0.0035',
    Units: '2',
  }

  /** Signs as Plivo's own libraries: URL with its query, a dot if it has one, the fields, the nonce. */
  const sign = (address: string, form: Record<string, string>, token = settings.authToken) => {
    const [path, query] = address.split('?')
    const sorted = Object.entries(form).toSorted(([a], [b]) => (a < b ? -1 : 1))
    const text = `${path}?${query === undefined ? '' : `${query}.`}${sorted.flat().join('')}.${nonce}`
    return createHmac('sha256', token).update(text).digest('base64')
  }
  const signed = (form: Record<string, string>, address = url, token?: string) =>
    createCallback({
      url: address,
      body: new URLSearchParams(form).toString(),
      headers: {
        'x-plivo-signature-v3': sign(address, form, token),
        'x-plivo-signature-v3-nonce': nonce,
      },
    })

  test.each([
    ['sent', 'sent'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
  ])('of %s is %s', async (Status, expected) => {
    expect(await readCallback(provider, signed({ ...fields, Status }))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'db3ce55a-7f1d',
          requestId: 'otp_1',
          status: expected === 'sent' ? 'sent' : 'delivered',
          failure: null,
          charge: { amount: 7_000, currency: 'USD' },
        },
      ],
    })
  })

  test.each([
    ['failed', '10', 'content_blocked', 'route', true],
    ['undelivered', '20', 'unreachable', 'route', false],
    ['rejected', '30', 'content_blocked', 'route', true],
    ['failed', '40', 'sender_invalid', 'route', true],
    ['undelivered', '50', 'invalid_number', 'number', true],
    ['undelivered', '80', 'unreachable', 'number', false],
    ['undelivered', '70', 'unreachable', 'number', true],
    ['undelivered', '90', 'unreachable', 'route', true],
    ['rejected', '100', 'content_blocked', 'route', true],
    ['rejected', '200', 'opted_out', 'number', true],
    ['failed', '201', 'sender_invalid', 'route', true],
    ['failed', '300', 'provider_down', 'route', false],
    ['failed', '420', 'unreachable', 'number', false],
    ['failed', '450', 'geo_blocked', 'route', true],
    ['failed', '900', 'no_credit', 'account', true],
    ['failed', '910', 'auth_failed', 'account', true],
    ['failed', '1000', 'unknown', 'route', false],
  ])('of %s with %s says %s', async (Status, ErrorCode, failureClass, at, permanent) => {
    expect(await readCallback(provider, signed({ ...fields, Status, ErrorCode }))).toMatchObject({
      receipts: [
        {
          requestId: 'otp_1',
          status: 'undelivered',
          failure: { class: failureClass, at, permanent, providerCode: ErrorCode },
        },
      ],
    })
  })

  test('of an unknown status reports nothing, and without fields is unreadable', async () => {
    expect(await readCallback(provider, signed({ ...fields, Status: 'queued' }))).toEqual({
      kind: 'receipts',
      receipts: [],
    })
    expect(await readCallback(provider, signed({ Units: '1' }))).toEqual({ kind: 'unreadable' })
  })

  test('is valid with version 2 alone, which covers the URL without its query', async () => {
    const path = 'https://otp.example.com/v1/callbacks/main/k8s2'
    const sign = (address: string, token = settings.authToken) =>
      createCallback({
        url,
        body: new URLSearchParams(fields).toString(),
        headers: {
          'x-plivo-signature-v2': createHmac('sha256', token).update(`${address}${nonce}`).digest('base64'),
          'x-plivo-signature-v2-nonce': nonce,
        },
      })
    expect(await readCallback(provider, sign(path))).toMatchObject({ receipts: [{ requestId: 'otp_1' }] })
    const forgeries = [
      sign(`${path}/other`),
      sign(path, 'another token'),
      { ...sign(path), headers: { ...sign(path).headers, 'x-plivo-signature-v2-nonce': '1' } },
      // If version 3 is present, version 2 does not count.
      { ...sign(path), headers: { ...sign(path).headers, 'x-plivo-signature-v3': 'AAAA' } },
    ]
    for (const one of forgeries) expect(await readCallback(provider, one)).toEqual({ kind: 'forged' })
  })

  test('is also signed over a URL without a query', async () => {
    const bare = 'https://otp.example.com/v1/callbacks/main/k8s2'
    expect(await readCallback(provider, signed(fields, bare))).toMatchObject({
      receipts: [{ requestId: null }],
    })
  })

  test('with the signatures of an old and a new token is valid', async () => {
    const signedTwice = signed(fields)
    const headers = {
      ...signedTwice.headers,
      'x-plivo-signature-v3': `${sign(url, fields, 'old')},${sign(url, fields)}`,
    }
    expect(await readCallback(provider, { ...signedTwice, headers })).toMatchObject({ kind: 'receipts' })
  })

  test('is forged with another token, field, URL or nonce, or without a signature', async () => {
    const genuineCallback = signed(fields)
    const forgeries = [
      signed(fields, url, 'another token'),
      { ...genuineCallback, body: genuineCallback.body.replace('delivered', 'failed') },
      { ...genuineCallback, url: genuineCallback.url.replace('otp_1', 'otp_2') },
      { ...genuineCallback, headers: { ...genuineCallback.headers, 'x-plivo-signature-v3-nonce': '1' } },
      {
        ...genuineCallback,
        headers: { 'x-plivo-signature-v3': genuineCallback.headers['x-plivo-signature-v3'] },
      },
      { ...genuineCallback, headers: { 'x-plivo-signature-v3-nonce': nonce } },
    ]
    for (const one of forgeries) expect(await readCallback(provider, one)).toEqual({ kind: 'forged' })
  })
})
