import { afterAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { twilio } from '../../../src/delivery/providers/twilio.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  longTimeout,
  makeProvider,
  readCallback,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const accountSid = `AC${'0a'.repeat(16)}`
const settings = { accountSid, authToken: 'token-of-the-account', from: '+15005550006', baseUrl: server.url }
const provider = makeProvider(twilio, settings)
const parseForm = (body: string) => Object.fromEntries(new URLSearchParams(body))

const created = { sid: 'SM1', status: 'queued', num_segments: '1', error_code: null, error_message: null }
const refusal = (code: number, status = 400) => ({
  code,
  message: 'words',
  more_info: `https://www.twilio.com/docs/errors/${code}`,
  status,
})

describe('a message', () => {
  test('is posted as Twilio documents it, with its lifetime and its reference', async () => {
    server.setResponse(201, created)
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'SM1' })
    const call = server.takeCall()
    expect(call.method).toBe('POST')
    expect(call.path).toBe(`/2010-04-01/Accounts/${accountSid}/Messages.json`)
    expect(call.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(atob(call.headers['authorization']?.replace('Basic ', '') ?? '')).toBe(
      `${accountSid}:token-of-the-account`,
    )
    expect(parseForm(call.body)).toEqual({
      To: '+31612345678',
      From: '+15005550006',
      Body: '482913 is your verification code. It is valid for 5 minutes.',
      ProvideFeedback: 'true',
      ValidityPeriod: '300',
      StatusCallback: 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('is sent by an API key and a messaging service, and has no callback without a reachable URL', async () => {
    const other = makeProvider(twilio, {
      accountSid,
      authToken: 'token-of-the-account',
      apiKeySid: `SK${'1b'.repeat(16)}`,
      apiKeySecret: 'key-secret',
      messagingServiceSid: `MG${'2c'.repeat(16)}`,
      baseUrl: `${server.url}/`,
    })
    server.setResponse(201, created)
    await sendTo(other, { callbackUrl: null, validitySeconds: 90_000 })
    const call = server.takeCall()
    expect(call.path).toBe(`/2010-04-01/Accounts/${accountSid}/Messages.json`)
    expect(atob(call.headers['authorization']?.replace('Basic ', '') ?? '')).toBe(
      `SK${'1b'.repeat(16)}:key-secret`,
    )
    expect(parseForm(call.body)).toMatchObject({
      MessagingServiceSid: `MG${'2c'.repeat(16)}`,
      ValidityPeriod: '36000',
    })
    expect(parseForm(call.body)).not.toContainAnyKeys(['From', 'StatusCallback'])
  })

  test('fills the WhatsApp template with the code alone', async () => {
    const withBoth = {
      ...settings,
      whatsappFrom: '+15005550007',
      whatsappContentSid: `HX${'3d'.repeat(16)}`,
    }
    const providerWithBoth = makeProvider(twilio, withBoth)
    expect(enabledChannels(twilio, settings)).toEqual(['sms'])
    expect(enabledChannels(twilio, withBoth)).toEqual(['sms', 'whatsapp'])
    server.setResponse(201, created)
    await sendTo(providerWithBoth, { channel: 'whatsapp', callbackUrl: null })
    expect(parseForm(server.takeCall().body)).toEqual({
      To: 'whatsapp:+31612345678',
      From: 'whatsapp:+15005550007',
      ContentSid: `HX${'3d'.repeat(16)}`,
      ContentVariables: '{"1":"482913"}',
      ValidityPeriod: '300',
    })
  })

  test('that fails at once is refused', async () => {
    server.setResponse(201, { ...created, status: 'failed', error_code: 30007 })
    expect(await sendTo(provider)).toMatchObject({ kind: 'refused', failure: { class: 'content_blocked' } })
    server.takeCall()
  })
})

describe('an error', () => {
  test.each([
    [401, 20003, 'auth_failed', 'account', true],
    [400, 21211, 'invalid_number', 'number', true],
    [400, 21614, 'invalid_number', 'number', true],
    [400, 21612, 'unreachable', 'route', true],
    [400, 21606, 'sender_invalid', 'route', true],
    [400, 21608, 'sender_invalid', 'route', true],
    [400, 21408, 'geo_blocked', 'route', true],
    [400, 21610, 'opted_out', 'number', true],
    [400, 21609, 'unknown', 'route', true],
    [400, 30001, 'throttled', 'route', false],
    [400, 63024, 'invalid_number', 'route', true],
    [500, 20500, 'provider_down', 'route', false],
    [400, 99999, 'unknown', 'route', false],
  ])('HTTP %i with code %i is %s of the %s', async (status, code, failureClass, at, permanent) => {
    server.setResponse(status, refusal(code, status))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: String(code) }),
    })
    server.takeCall()
  })

  test('for too many messages says when to retry', async () => {
    server.setResponse(429, refusal(20429, 429), { 'retry-after': '3' })
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: {
        class: 'throttled',
        permanent: false,
        at: 'route',
        providerCode: '20429',
        retryAfterSeconds: 3,
      },
    })
    server.takeCall()
  })
})

describe('the price', () => {
  const find = (messageId: string) => {
    const provider = makeProvider(twilio, { ...settings, baseUrl: server.url })
    return provider.findCharge?.({ messageId, channel: 'sms' }, longTimeout())
  }

  test('is that of the message or call, which is negative in the documentation', async () => {
    server.setResponse(200, { sid: 'SM1', status: 'delivered', price: '-0.00750', price_unit: 'USD' })
    expect(await find('SM1')).toEqual({ kind: 'charge', charge: { amount: 7_500, currency: 'USD' } })
    const { method, path, headers } = server.takeCall()
    expect([method, path]).toEqual(['GET', `/2010-04-01/Accounts/${accountSid}/Messages/SM1.json`])
    expect(headers['authorization']).toStartWith('Basic ')
    await find('CA1')
    expect(server.takeCall().path).toEndWith('/Calls/CA1.json')
  })

  test('may come later, unless Twilio does not know the message', async () => {
    for (const response of [{ status: 'sent', price: null, price_unit: 'USD' }, 'not JSON']) {
      server.setResponse(200, response)
      expect(await find('SM1')).toEqual({ kind: 'pending' })
    }
    server.setResponse(429, { code: 20429 })
    expect(await find('SM1')).toEqual({ kind: 'pending' })
    server.setResponse(404, { code: 20404 })
    expect(await find('SM1')).toEqual({ kind: 'none' })
  })
})

describeHttpFaults((baseUrl) => makeProvider(twilio, { ...settings, baseUrl }))

describe('a receipt', () => {
  const url = 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_1'
  const signed = (fields: Record<string, string>, token = settings.authToken) => {
    const text = Object.keys(fields)
      .toSorted()
      .reduce((sum, name) => `${sum}${name}${fields[name]}`, url)
    const signature = createHmac('sha1', token).update(text).digest('base64')
    const body = new URLSearchParams(fields).toString()
    return createCallback({ url, body, headers: { 'x-twilio-signature': signature } })
  }
  const fields = {
    MessageSid: 'SM1',
    SmsSid: 'SM1',
    MessageStatus: 'delivered',
    To: '+31612345678',
    From: '+15005550006',
    AccountSid: accountSid,
    ApiVersion: '2010-04-01',
  }

  test.each([
    ['sent', 'sent'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
  ])('of %s is %s', async (MessageStatus, status) => {
    expect(await readCallback(provider, signed({ ...fields, MessageStatus }))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'SM1',
          requestId: 'otp_1',
          status: status === 'sent' ? 'sent' : 'delivered',
          failure: null,
        },
      ],
    })
  })

  test.each([
    ['undelivered', '30003', 'unreachable', 'number', false],
    ['undelivered', '30005', 'unreachable', 'number', true],
    ['failed', '30007', 'content_blocked', 'route', true],
    ['failed', '30002', 'auth_failed', 'account', true],
    ['undelivered', '30032', 'sender_invalid', 'route', true],
    ['undelivered', '30450', 'blocked_by_carrier', 'message', true],
    ['undelivered', '30453', 'blocked_by_carrier', 'message', true],
    ['failed', '77777', 'unknown', 'route', false],
  ])('of %s with %s says %s', async (MessageStatus, ErrorCode, failureClass, at, permanent) => {
    const result = await readCallback(provider, signed({ ...fields, MessageStatus, ErrorCode }))
    expect(result).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'SM1',
          requestId: 'otp_1',
          status: 'undelivered',
          failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: ErrorCode }),
        },
      ],
    })
  })

  test.each(['queued', 'sending', 'accepted', 'some-day-new'])(
    'of %s reports nothing',
    async (MessageStatus) => {
      expect(await readCallback(provider, signed({ ...fields, MessageStatus }))).toEqual({
        kind: 'receipts',
        receipts: [],
      })
    },
  )

  test('is forged with another token, field or URL, or without a signature', async () => {
    const genuineCallback = signed(fields)
    const forgeries = [
      signed(fields, 'another token'),
      { ...genuineCallback, body: genuineCallback.body.replace('delivered', 'failed') },
      { ...genuineCallback, url: genuineCallback.url.replace('otp_1', 'otp_2') },
      { ...genuineCallback, headers: {} },
      { ...genuineCallback, headers: { 'x-twilio-signature': 'AAAA' } },
    ]
    for (const one of forgeries) expect(await readCallback(provider, one)).toEqual({ kind: 'forged' })
  })

  test('without its fields is unreadable', async () => {
    expect(await readCallback(provider, signed({ AccountSid: accountSid }))).toEqual({ kind: 'unreadable' })
  })

  test('is signed as in the example of the documentation', async () => {
    // https://www.twilio.com/docs/usage/security: token 12345, this URL and these fields.
    const example = makeProvider(twilio, { ...settings, authToken: '12345' })
    const body = new URLSearchParams({
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675309',
      Digits: '1234',
      From: '+14158675309',
      To: '+18005551212',
    }).toString()
    const result = await readCallback(
      example,
      createCallback({
        url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
        body,
        headers: { 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' },
      }),
    )
    expect(result).toEqual({ kind: 'unreadable' })
  })
})

describe('settings', () => {
  const names = (values: Record<string, string>) => findSettingFaults(twilio, values).map(({ name }) => name)

  test('must name an account and one sender', () => {
    expect(names({})).toEqual(['accountSid', 'authToken', 'from'])
    expect(names({ ...settings, messagingServiceSid: `MG${'2c'.repeat(16)}` })).toEqual(['from'])
  })

  test('must contain both settings of a pair', () => {
    expect(names({ ...settings, apiKeySid: `SK${'1b'.repeat(16)}` })).toEqual(['apiKeySecret'])
    expect(names({ ...settings, whatsappContentSid: `HX${'3d'.repeat(16)}` })).toEqual(['whatsappFrom'])
  })
})
