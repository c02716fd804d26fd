import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { telegram } from '../../../src/delivery/providers/telegram.ts'
import { startProviderApi, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { createOutcomeReport, longTimeout, makeProvider } from '../../helpers/provider-server.ts'
import type { OutcomeReport, ReportResult } from '../../../src/delivery/kit/provider.ts'

const settings = { token: 'AAE-token', senderUsername: '@acme_codes' }

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(telegram, settings)
})
afterEach(() => api.stop())

const acceptedBody = {
  ok: true,
  result: { request_id: '1234567890', phone_number: '31612345678', delivery_status: { status: 'sent' } },
}

describe('sending by Telegram Gateway', () => {
  test('posts the code as its API documents it', async () => {
    api.setResponse(200, acceptedBody)
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: '1234567890' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/sendVerificationMessage' })
    expect(headers['authorization']).toBe('Bearer AAE-token')
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      phone_number: '+31612345678',
      code: '482913',
      ttl: 300,
      payload: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      sender_username: 'acme_codes',
      callback_url: 'https://otp.example.com/v1/callbacks/main/k8s2',
    })
  })

  test('keeps the lifetime within its bounds, and sends nothing that could arrive too late', async () => {
    api.setResponse(200, acceptedBody)
    await api.send({ validitySeconds: 9_999 })
    expect(JSON.parse(api.takeCall().body)).toMatchObject({ ttl: 3_600 })
    expect(await api.send({ validitySeconds: 29 })).toMatchObject({ kind: 'refused' })
    expect(() => api.takeCall()).toThrow()
  })

  test.each(['abc123', '123', '123456789'])('sends no code that Telegram does not take: %s', async (code) => {
    expect(await api.send({ code })).toMatchObject({
      kind: 'refused',
      failure: { class: 'content_blocked', at: 'route', permanent: true },
    })
    expect(() => api.takeCall()).toThrow()
  })

  test('leaves out a callback URL that is too long for Telegram', async () => {
    api.setResponse(200, acceptedBody)
    const base = 'https://otp.example.com/'
    await api.send({ callbackUrl: base.padEnd(256, 'x') })
    expect(JSON.parse(api.takeCall().body)).toHaveProperty('callback_url')
    await api.send({ callbackUrl: base.padEnd(257, 'x') })
    expect(JSON.parse(api.takeCall().body)).not.toHaveProperty('callback_url')
  })

  test.each([
    [200, 'PHONE_NUMBER_INVALID', 'invalid_number', 'number', true],
    [200, 'PHONE_NUMBER_NOT_AVAILABLE', 'unreachable', 'number', false],
    [400, 'PHONE_NUMBER_NOT_FOUND', 'unreachable', 'number', false],
    [200, 'SENDER_NOT_VERIFIED', 'sender_invalid', 'route', true],
    [401, 'ACCESS_TOKEN_INVALID', 'auth_failed', 'account', true],
    [200, 'BALANCE_NOT_ENOUGH', 'no_credit', 'account', true],
    [200, 'FLOOD_WAIT', 'throttled', 'route', false],
    [200, 'A_NAME_OF_TOMORROW', 'unknown', 'route', false],
    [500, 'FLOOD_WAIT_3', 'provider_down', 'route', false],
  ])('%i with %s is %s', async (status, error, failureClass, at, permanent) => {
    api.setResponse(status, { ok: false, error })
    expect(await api.send()).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: error }),
    })
  })

  test('waits as long as the error name says', async () => {
    api.setResponse(200, { ok: false, error: 'FLOOD_WAIT_42' })
    expect(await api.send()).toMatchObject({ failure: { class: 'throttled', retryAfterSeconds: 42 } })
  })

  test.each([
    ['a message that was sent before', { ok: false, error: 'MESSAGE_ALREADY_SENT' }],
    ['a success without an id', { ok: true, result: {} }],
    ['a success that is a page', '<html>'],
  ])('%s is uncertain', async (_, body) => {
    api.setResponse(200, body)
    expect(await api.send()).toMatchObject({ kind: 'uncertain' })
  })
})

describe('outcomes for Telegram Gateway', () => {
  const report = (changes: Partial<OutcomeReport> = {}) =>
    api.provider.reportOutcome?.(createOutcomeReport({ messageId: '1234567890', ...changes }), longTimeout())

  test('reports that the code was entered, as its API asks for', async () => {
    api.setResponse(200, { ok: true, result: { request_id: '1234567890', verification_status: {} } })
    expect(await report()).toEqual({ kind: 'done' })
    const { path, headers, body } = api.takeCall()
    expect(path).toBe('/checkVerificationStatus')
    expect(headers['authorization']).toBe('Bearer AAE-token')
    expect(JSON.parse(body)).toEqual({ request_id: '1234567890', code: '482913' })
  })

  test('reports no codes that were not entered', async () => {
    for (const outcome of ['expired', 'canceled', 'failed'] as const)
      expect(await report({ outcome })).toEqual({ kind: 'done' })
    expect(() => api.takeCall()).toThrow()
  })

  test.each([
    [200, 'FLOOD_WAIT_7', { kind: 'retry', providerCode: 'FLOOD_WAIT_7', retryAfterSeconds: 7 }],
    [200, 'FLOOD_WAIT', { kind: 'retry', providerCode: 'FLOOD_WAIT' }],
    [200, 'ACCESS_TOKEN_INVALID', { kind: 'retry', providerCode: 'ACCESS_TOKEN_INVALID' }],
    [200, 'REQUEST_ID_INVALID', { kind: 'rejected', providerCode: 'REQUEST_ID_INVALID' }],
    [502, 'INTERNAL', { kind: 'retry', providerCode: 'HTTP 502' }],
  ])('%i with %s: %j', async (status, error, expected) => {
    api.setResponse(status, { ok: false, error })
    expect(await report()).toEqual(expected as ReportResult)
  })
})

describe('receipts of Telegram Gateway', () => {
  const call = (body: string, { token = 'AAE-token', at = api.nowSeconds() } = {}) => ({
    headers: {
      'x-request-timestamp': String(at),
      'x-request-signature': createHmac('sha256', createHash('sha256').update(token).digest())
        .update(`${at}\n${body}`)
        .digest('hex'),
    },
    body,
  })
  const report = (status: string) =>
    JSON.stringify({ request_id: '123', payload: 'otp_7', delivery_status: { status, updated_at: 1 } })

  test.each([
    ['sent', 'sent', null],
    ['delivered', 'delivered', null],
    ['read', 'delivered', null],
    ['expired', 'undelivered', 'unreachable'],
    ['revoked', 'undelivered', 'unknown'],
  ] as const)('%s says %s', async (status, expected, failureClass) => {
    expect(await api.readCallback(call(report(status)))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: '123',
          requestId: 'otp_7',
          status: expected,
          failure: failureClass && expect.objectContaining({ class: failureClass, providerCode: status }),
        },
      ],
    })
  })

  test('an unknown status reports nothing', async () => {
    expect(await api.readCallback(call(report('tomorrow')))).toEqual({ kind: 'receipts', receipts: [] })
  })

  test('refuses other tokens, bodies and times, and old calls', async () => {
    const genuineCallback = call(report('delivered'))
    const forgeries = [
      call(report('delivered'), { token: 'another' }),
      { ...genuineCallback, body: report('expired') },
      {
        ...genuineCallback,
        headers: { ...genuineCallback.headers, 'x-request-timestamp': String(api.nowSeconds() + 1) },
      },
      call(report('delivered'), { at: api.nowSeconds() - 301 }),
      { ...genuineCallback, headers: {} },
    ]
    for (const forgery of forgeries) expect(await api.readCallback(forgery)).toEqual({ kind: 'forged' })
    expect(await api.readCallback(genuineCallback)).toMatchObject({ kind: 'receipts' })
  })

  test('reports a signed callback that cannot be read', async () => {
    for (const body of ['no', '{}', '{"request_id":"123"}']) {
      expect(await api.readCallback(call(body))).toEqual({ kind: 'unreadable' })
    }
  })
})

describeHttpFaults((baseUrl) => makeProvider(telegram, { ...settings, baseUrl }))
