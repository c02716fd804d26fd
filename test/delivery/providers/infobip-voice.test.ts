import { afterAll, describe, expect, test } from 'bun:test'
import { infobip } from '../../../src/delivery/providers/infobip.ts'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  makeProvider,
  readCallback,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'
import { withVoiceChannel } from '../../helpers/provider-voice.ts'

const server = startProviderServer()
afterAll(server.stop)

const sms = { baseUrl: server.url, apiKey: 'key-of-infobip', from: 'Acme' }
const settings = { ...sms, voiceFrom: '+442032864231' }
const provider = withVoiceChannel(makeProvider(infobip, settings))
const responseBody = (groupId: number, id: number, name: string) => ({
  bulkId: 'b1',
  messages: [{ to: '31612345678', status: { groupId, groupName: 'GROUP', id, name }, messageId: 'm1' }],
})

test('voice needs a number to call from', () => {
  expect(enabledChannels(infobip, sms)).toEqual(['sms'])
  expect(enabledChannels(infobip, settings)).toEqual(['sms', 'voice'])
  expect(infobip.channels).toContain('voice')
  expect(findSettingFaults(infobip, { ...sms, voiceFrom: 'Acme' })).toMatchObject([{ name: 'voiceFrom' }])
})

describe('a call', () => {
  test('is posted as Infobip documents it, with its lifetime and its reference', async () => {
    server.setResponse(200, responseBody(1, 26, 'PENDING_ACCEPTED'))
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'm1' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/tts/3/advanced'])
    expect(call.headers['authorization']).toBe('App key-of-infobip')
    expect(JSON.parse(call.body)).toEqual({
      messages: [
        {
          from: '442032864231',
          destinations: [{ to: '31612345678' }],
          text: '4, 8, 2, 9, 1, 3 is your Acme verification code. 4, 8, 2, 9, 1, 3.',
          language: 'en',
          machineDetection: 'hangup',
          ringTimeout: 25,
          validityPeriod: 5,
          notifyUrl: 'https://otp.example.com/v1/callbacks/main/k8s2',
          notifyContentType: 'application/json',
          callbackData: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
        },
      ],
    })
  })

  test.each([
    ['nb', 'no'],
    ['zh-TW', 'zh-tw'],
    ['fa', 'en'],
  ])('in %s is read as %s, and has no callback without a reachable URL', async (locale, language) => {
    server.setResponse(200, responseBody(1, 26, 'PENDING_ACCEPTED'))
    await sendTo(provider, { locale, callbackUrl: null, validitySeconds: 20 })
    const [message] = JSON.parse(server.takeCall().body).messages
    expect(message).toMatchObject({ language, validityPeriod: 1, ringTimeout: 20 })
    expect(message).not.toContainAnyKeys(['notifyUrl', 'notifyContentType'])
  })
})

describe('a rejection within HTTP 200', () => {
  test.each([
    [6, 'REJECTED_NETWORK', 'unreachable', 'route'],
    [10, 'REJECTED_DND', 'opted_out', 'number'],
    [11, 'REJECTED_SOURCE', 'sender_invalid', 'route'],
    [12, 'REJECTED_NOT_ENOUGH_CREDITS', 'no_credit', 'account'],
    [19, 'REJECTED_ROUTE_NOT_AVAILABLE', 'geo_blocked', 'route'],
    [20, 'REJECTED_FLOODING_FILTER', 'throttled', 'number'],
    [21, 'REJECTED_SYSTEM_ERROR', 'provider_down', 'route'],
    [52, 'REJECTED_DESTINATION', 'invalid_number', 'number'],
  ])('%i %s is %s of the %s', async (id, name, failureClass, at) => {
    server.setResponse(200, responseBody(5, id, name))
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, at, providerCode: String(id) },
    })
    server.takeCall()
  })
})

describe('an error', () => {
  test.each([
    [401, 'UNAUTHORIZED', {}, 'auth_failed'],
    [400, 'BAD_REQUEST', { 'messages[0].destinations[0].to': ['words'] }, 'invalid_number'],
    [400, 'BAD_REQUEST', { 'messages[0].from': ['words'] }, 'sender_invalid'],
    [400, 'BAD_REQUEST', {}, 'unknown'],
  ])('HTTP %i %s %j is %s', async (status, messageId, validationErrors, failureClass) => {
    server.setResponse(status, { requestError: { serviceException: { messageId, validationErrors } } })
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, permanent: true, providerCode: messageId },
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => withVoiceChannel(makeProvider(infobip, { ...settings, baseUrl })))

describe('a receipt', () => {
  const reportCallback = (groupId: number, error: object) => {
    const status = { groupId, groupName: 'GROUP', id: groupId === 3 ? 5 : 9, name: 'NAME' }
    const voiceCall = { duration: 21, feature: 'Text-to-Speech' }
    const result = { bulkId: 'b1', messageId: 'm1', callbackData: 'otp_1', voiceCall, status, error }
    return createCallback({ body: JSON.stringify({ results: [result] }) })
  }
  const ids = { messageId: 'm1', requestId: 'otp_1' }

  test('of a call that was answered is delivered', async () => {
    const answered = reportCallback(3, { groupId: 0, id: 5000, name: 'VOICE_ANSWERED', permanent: true })
    expect(await readCallback(provider, answered)).toEqual({
      kind: 'receipts',
      receipts: [{ ...ids, status: 'delivered', failure: null }],
    })
  })

  test.each([
    [2, { id: 5002, name: 'EC_VOICE_USER_BUSY', permanent: true }, 'EC_VOICE_USER_BUSY', false],
    [4, { id: 5003, name: 'EC_VOICE_NO_ANSWER', permanent: true }, 'EC_VOICE_NO_ANSWER', false],
    [3, { id: 5001, name: 'VOICE_ANSWERED_MACHINE', permanent: true }, 'VOICE_ANSWERED_MACHINE', false],
    [2, { id: 1, name: 'EC_UNKNOWN_SUBSCRIBER', permanent: true }, '1', true],
  ])(
    'of group %i with %j means that the call was not answered',
    async (groupId, error, providerCode, permanent) => {
      expect(await readCallback(provider, reportCallback(groupId, error))).toMatchObject({
        receipts: [
          { ...ids, status: 'undelivered', failure: { class: 'unreachable', permanent, providerCode } },
        ],
      })
    },
  )
})
