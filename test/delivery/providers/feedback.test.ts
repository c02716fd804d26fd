import { afterAll, describe, expect, test } from 'bun:test'
import { awsSms } from '../../../src/delivery/providers/aws-sms.ts'
import { httpTemplate } from '../../../src/delivery/providers/http-template.ts'
import { infobip } from '../../../src/delivery/providers/infobip.ts'
import { twilio } from '../../../src/delivery/providers/twilio.ts'
import { vonageSms } from '../../../src/delivery/providers/vonage-sms.ts'
import type { OutcomeReport, Provider } from '../../../src/delivery/kit/provider.ts'
import {
  createOutcomeReport,
  longTimeout,
  makeProvider,
  providerNeeds,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const baseUrl = server.url
const accountSid = `AC${'0a'.repeat(16)}`
const twilioSettings = { accountSid, authToken: 'token', from: '+15005550006', baseUrl }
const report = (provider: Provider, changes: Partial<OutcomeReport> = {}) =>
  provider.reportOutcome?.(createOutcomeReport(changes), longTimeout())
const notVerified = ['expired', 'canceled', 'failed'] as const

describe('Twilio', () => {
  const provider = makeProvider(twilio, twilioSettings)
  const messageId = `SM${'1b'.repeat(16)}`

  test('hears that a message was used, by Message Feedback of twilio_api_v2010.json', async () => {
    server.setResponse(201, { outcome: 'confirmed' })
    expect(await report(provider, { messageId })).toEqual({ kind: 'done' })
    const { method, path, body } = server.takeCall()
    expect([method, path, body]).toEqual([
      'POST',
      `/2010-04-01/Accounts/${accountSid}/Messages/${messageId}/Feedback.json`,
      'Outcome=confirmed',
    ])
  })

  test('hears neither of other outcomes nor of calls', async () => {
    for (const outcome of notVerified)
      expect(await report(provider, { messageId, outcome })).toEqual({ kind: 'done' })
    expect(await report(provider, { messageId: `CA${'1b'.repeat(16)}` })).toEqual({ kind: 'done' })
    expect(server.calls).toEqual([])
  })

  test('is told with the message that feedback follows, unless it does not', async () => {
    server.setResponse(201, { sid: 'SM1', status: 'queued' })
    await sendTo(provider)
    expect(new URLSearchParams(server.takeCall().body).get('ProvideFeedback')).toBe('true')
    await sendTo(makeProvider(twilio, twilioSettings, { ...providerNeeds(), feedback: false }))
    expect(new URLSearchParams(server.takeCall().body).has('ProvideFeedback')).toBe(false)
  })
})

describe('Vonage SMS', () => {
  const provider = makeProvider(vonageSms, { apiKey: 'abcd1234', apiSecret: 's', from: 'Acme', baseUrl })

  test.each([
    ['verified', 'true'],
    ['expired', 'false'],
  ] as const)('hears %s as delivered=%s, by its Conversion API 1.0.1', async (outcome, delivered) => {
    server.setResponse(200)
    const endedAt = Date.UTC(2026, 10, 20, 12, 30, 5)
    expect(await report(provider, { outcome, endedAt })).toEqual({ kind: 'done' })
    const { method, path, headers } = server.takeCall()
    expect([method, path]).toEqual([
      'POST',
      `/conversions/sms?message-id=m1&delivered=${delivered}&timestamp=2026-11-20+12%3A30%3A05`,
    ])
    expect(headers['authorization']).toBe(`Basic ${btoa('abcd1234:s')}`)
  })

  test('is not asked again if the account has no Conversion API', async () => {
    server.setResponse(402)
    expect(await report(provider)).toEqual({ kind: 'rejected', providerCode: 'HTTP 402' })
    server.takeCall()
  })
})

describe('Infobip', () => {
  const provider = makeProvider(infobip, { apiKey: 'k', from: 'Acme', baseUrl })

  test('hears that a tracked message converted, and nothing else', async () => {
    server.setResponse(200, { processKey: 'p1' })
    expect(await report(provider, { messageId: '1688025180464000014' })).toEqual({ kind: 'done' })
    const { method, path, headers } = server.takeCall()
    expect([method, path]).toEqual(['POST', '/ct/1/log/end/1688025180464000014'])
    expect(headers['authorization']).toBe('App k')
    for (const outcome of notVerified) await report(provider, { outcome })
    await report(provider, { channel: 'voice' })
    expect(server.calls).toEqual([])
  })
})

test('AWS hears of every outcome, and is told with the message unless feedback is off', async () => {
  const settings = {
    region: 'eu-central-1',
    accessKeyId: 'AKIDEXAMPLE0123456',
    secretAccessKey: 's',
    baseUrl,
  }
  const provider = makeProvider(awsSms, settings)
  server.setResponse(200, {})
  await report(provider, { outcome: 'expired' })
  const call = server.takeCall()
  expect(call.headers['x-amz-target']).toBe('PinpointSMSVoiceV2.PutMessageFeedback')
  expect(JSON.parse(call.body)).toEqual({ MessageId: 'm1', MessageFeedbackStatus: 'FAILED' })
  const silent = makeProvider(awsSms, settings, { ...providerNeeds(), feedback: false })
  expect(silent.reportOutcome).toBeUndefined()
  await sendTo(silent)
  expect(JSON.parse(server.takeCall().body)).not.toHaveProperty('MessageFeedbackEnabled')
})

describe('a gateway described by templates', () => {
  const settings = {
    url: `${baseUrl}/send`,
    body: '"{{code}}"',
    headers: 'Authorization: {{basic}}',
    username: 'otpd',
    password: 'pa&ss',
    messageIdPath: 'id',
  }

  test('hears of outcomes at reportUrl, with escaped values', async () => {
    const provider = makeProvider(httpTemplate, {
      ...settings,
      reportUrl: `${baseUrl}/messages/{{messageId}}/outcome`,
      reportBody: '{"to": "{{digits}}", "outcome": "{{outcome}}", "request": "{{requestId}}"}',
    })
    server.setResponse(204)
    expect(await report(provider, { messageId: 'a/b?c', outcome: 'canceled' })).toEqual({ kind: 'done' })
    const { method, path, headers, body } = server.takeCall()
    expect([method, path]).toEqual(['POST', '/messages/a%2Fb%3Fc/outcome'])
    expect([headers['authorization'], headers['content-type']]).toEqual([
      `Basic ${btoa('otpd:pa&ss')}`,
      'application/json',
    ])
    expect(JSON.parse(body)).toEqual({
      to: '31612345678',
      outcome: 'canceled',
      request: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('hears nothing without reportUrl', () => {
    expect(makeProvider(httpTemplate, settings).reportOutcome).toBeUndefined()
  })
})

test.each([
  [401, 'retry'],
  [403, 'retry'],
  [429, 'retry'],
  [500, 'retry'],
  [503, 'retry'],
  [400, 'rejected'],
  [404, 'rejected'],
  [409, 'rejected'],
])('HTTP %i to a report is %s', async (status, kind) => {
  server.setResponse(status, '', { 'retry-after': '17' })
  const result = await report(makeProvider(infobip, { apiKey: 'k', from: 'Acme', baseUrl }))
  expect(result).toMatchObject({ kind, providerCode: `HTTP ${status}` })
  server.takeCall()
})
