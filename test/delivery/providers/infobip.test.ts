import { afterAll, describe, expect, test } from 'bun:test'
import { infobip } from '../../../src/delivery/providers/infobip.ts'
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

const settings = { baseUrl: server.url, apiKey: 'key-of-infobip', from: 'Acme' }
const provider = makeProvider(infobip, settings)

const responseBody = (groupId: number, id: number, name: string) => ({
  bulkId: '1688025180464000013',
  messages: [
    {
      messageId: '1688025180464000014',
      status: { groupId, groupName: 'GROUP', id, name, description: 'words' },
      destination: '31612345678',
      details: { messageCount: 1 },
    },
  ],
})
const errorBody = (status: number, violations: { property: string; violation: string }[] = []) => ({
  errorCode: `E${status}`,
  description: 'words',
  action: 'words',
  violations,
  resources: [],
})

describe('a message', () => {
  test('is posted as Infobip documents it, with its lifetime and its reference', async () => {
    server.setResponse(200, responseBody(1, 26, 'PENDING_ACCEPTED'))
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: '1688025180464000014' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/sms/3/messages'])
    expect(call.headers['content-type']).toBe('application/json')
    expect(call.headers['authorization']).toBe('App key-of-infobip')
    expect(JSON.parse(call.body)).toEqual({
      messages: [
        {
          sender: 'Acme',
          destinations: [{ to: '31612345678' }],
          content: { text: '482913 is your verification code. It is valid for 5 minutes.' },
          options: { validityPeriod: { amount: 300, timeUnit: 'SECONDS' } },
          webhooks: {
            delivery: { url: 'https://otp.example.com/v1/callbacks/main/k8s2' },
            contentType: 'application/json',
            callbackData: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
          },
        },
      ],
      options: {
        conversionTracking: { useConversionTracking: true, conversionTrackingName: 'ONE_TIME_PIN' },
      },
    })
  })

  test('contains the ids required in India, and no callback without a reachable URL', async () => {
    const india = makeProvider(infobip, { ...settings, dltEntityId: '1101', dltTemplateId: '1107' })
    server.setResponse(200, responseBody(1, 26, 'PENDING_ACCEPTED'))
    await sendTo(india, { callbackUrl: null })
    const { messages } = JSON.parse(server.takeCall().body)
    expect(messages[0].options.regional).toEqual({
      indiaDlt: { principalEntityId: '1101', contentTemplateId: '1107' },
    })
    expect(messages[0].webhooks.delivery).toBeUndefined()
  })

  test.each([[''], ['<html>'], [{ bulkId: '1' }], [{ messages: [{ messageId: '1' }] }]])(
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

describe('a rejection within HTTP 200', () => {
  test.each([
    [5, 6, 'REJECTED_NETWORK', 'unreachable', 'route', true, '6'],
    [5, 8, 'REJECTED_PREFIX_MISSING', 'invalid_number', 'number', true, '8'],
    [5, 10, 'REJECTED_DND', 'opted_out', 'number', true, '10'],
    [5, 11, 'REJECTED_SOURCE', 'sender_invalid', 'route', true, '11'],
    [5, 12, 'REJECTED_NOT_ENOUGH_CREDITS', 'no_credit', 'account', true, '12'],
    [5, 19, 'REJECTED_ROUTE_NOT_AVAILABLE', 'geo_blocked', 'route', true, '19'],
    [5, 20, 'REJECTED_FLOODING_FILTER', 'throttled', 'number', false, '20'],
    [5, 21, 'REJECTED_SYSTEM_ERROR', 'provider_down', 'route', false, '21'],
    [5, 52, 'REJECTED_DESTINATION', 'invalid_number', 'number', true, '52'],
    [5, 999, 'REJECTED_ANEW', 'unknown', 'route', false, 'REJECTED_ANEW'],
    [2, 9, 'UNDELIVERABLE_NOT_DELIVERED', 'unreachable', 'number', false, '9'],
    [9, 999, 'NEVER_HEARD_OF', 'unknown', 'route', false, 'NEVER_HEARD_OF'],
  ])(
    'of group %i with %i %s is %s of the %s',
    async (group, id, name, failureClass, at, permanent, providerCode) => {
      server.setResponse(200, responseBody(group, id, name))
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
    },
  )
})

describe('an error', () => {
  test.each([
    [401, [], 'auth_failed', 'account', true],
    [403, [], 'auth_failed', 'account', true],
    [500, [], 'provider_down', 'route', false],
    [
      400,
      [{ property: 'messages[0].destinations[0].to', violation: 'words' }],
      'invalid_number',
      'number',
      true,
    ],
    [400, [{ property: 'messages[0].sender', violation: 'words' }], 'sender_invalid', 'route', true],
    [400, [], 'unknown', 'route', true],
  ])('HTTP %i with %j is %s of the %s', async (status, violations, failureClass, at, permanent) => {
    server.setResponse(status, errorBody(status, violations))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: `E${status}` }),
    })
    server.takeCall()
  })

  test('for too many messages says when to retry', async () => {
    server.setResponse(429, errorBody(429), { 'retry-after': '5' })
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled', providerCode: 'E429', retryAfterSeconds: 5 },
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(infobip, { ...settings, baseUrl }))

describe('a receipt', () => {
  const result = (
    groupId: number,
    id: number,
    name: string,
    error: object = { id: 0, permanent: false },
  ) => ({
    bulkId: 'b1',
    messageId: 'm1',
    to: '31612345678',
    sentAt: '2026-11-20T12:00:00.000+0000',
    doneAt: '2026-11-20T12:00:02.000+0000',
    messageCount: 1,
    callbackData: 'otp_1',
    status: { groupId, groupName: 'GROUP', id, name, description: 'words' },
    error,
  })
  const reportCallback = (...results: unknown[]) => createCallback({ body: JSON.stringify({ results }) })
  const ids = { messageId: 'm1', requestId: 'otp_1' }

  test('reports all messages in it', async () => {
    const twoReports = reportCallback(result(3, 5, 'DELIVERED_TO_HANDSET'), {
      ...result(1, 7, 'PENDING_ENROUTE'),
      messageId: 'm2',
    })
    expect(await readCallback(provider, twoReports)).toEqual({
      kind: 'receipts',
      receipts: [
        { ...ids, status: 'delivered', failure: null },
        { ...ids, messageId: 'm2', status: 'sent', failure: null },
      ],
    })
  })

  test.each([
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 603 }, 'opted_out', 'number', true],
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 607 }, 'content_blocked', 'route', true],
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 608 }, 'blocked_by_carrier', 'message', true],
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 368, permanent: true }, 'sender_invalid', 'route', true],
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 592, permanent: true }, 'unreachable', 'route', true],
    [4, 87, 'SIGNALS_BLOCKED', { id: 0 }, 'blocked_by_carrier', 'message', true],
    [2, 9, 'UNDELIVERABLE_NOT_DELIVERED', { id: 1, permanent: true }, 'unreachable', 'number', true],
    [2, 9, 'UNDELIVERABLE_NOT_DELIVERED', { id: 27, permanent: false }, 'unreachable', 'number', false],
    [2, 4, 'UNDELIVERABLE_REJECTED_OPERATOR', { id: 5, permanent: true }, 'unreachable', 'number', true],
    [4, 15, 'EXPIRED_EXPIRED', { id: 0 }, 'unreachable', 'number', false],
    [5, 14, 'REJECTED_DESTINATION', { id: 0 }, 'opted_out', 'number', true],
    [5, 12, 'REJECTED_NOT_ENOUGH_CREDITS', { id: 0 }, 'no_credit', 'account', true],
  ])('of group %i with %i %s and %j says %s', async (group, id, name, error, failureClass, at, permanent) => {
    expect(await readCallback(provider, reportCallback(result(group, id, name, error)))).toMatchObject({
      receipts: [{ ...ids, status: 'undelivered', failure: { class: failureClass, at, permanent } }],
    })
  })

  test.each([
    [1, 3, 'PENDING_WAITING_DELIVERY'],
    [3, 2, 'DELIVERED_TO_OPERATOR'],
    [4, 29, 'EXPIRED_DLR_UNKNOWN'],
  ])('of group %i with %i %s does not say whether it arrived', async (group, id, name) => {
    expect(await readCallback(provider, reportCallback(result(group, id, name)))).toMatchObject({
      receipts: [{ ...ids, status: 'sent', failure: null }],
    })
  })

  test('of an unknown group, or without an id, reports nothing', async () => {
    const receiptWithoutName = {
      ...result(3, 5, 'DELIVERED_TO_HANDSET'),
      messageId: undefined,
      callbackData: undefined,
    }
    expect(await readCallback(provider, reportCallback(result(8, 1, 'NEW'), receiptWithoutName))).toEqual({
      kind: 'receipts',
      receipts: [],
    })
  })

  test.each(['', '{}', '[]', 'null', '{"results":{}}'])('with the body %j is unreadable', async (body) => {
    expect(await readCallback(provider, createCallback({ body }))).toEqual({ kind: 'unreadable' })
  })
})
