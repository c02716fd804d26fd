import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { SignJWT } from 'jose'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { messagebird } from '../../../src/delivery/providers/messagebird.ts'
import { startProviderApi, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider } from '../../helpers/provider-server.ts'
import { withVoiceChannel } from '../../helpers/provider-voice.ts'

const sms = { accessKey: 'live_key', originator: 'ACME' }
const settings = { ...sms, voiceOriginator: '+31201234567', signingKey: 'signing-key' }
const channel = 'voice'

let api: ProviderApi
beforeEach(() => {
  api = startProviderApi(messagebird, settings)
})
afterEach(() => api.stop())

test('voice needs a number to call from', () => {
  expect(enabledChannels(messagebird, sms)).toEqual(['sms'])
  expect(enabledChannels(messagebird, settings)).toEqual(['sms', 'voice'])
  expect(messagebird.channels).toContain('voice')
  expect(findSettingFaults(messagebird, { ...sms, voiceOriginator: 'ACME' })).toMatchObject([
    { name: 'voiceOriginator' },
  ])
})

describe('a call by MessageBird', () => {
  test('is posted as its API documents it', async () => {
    const items = [{ recipient: 31612345678, status: 'calling' }]
    api.setResponse(201, { id: '955c3130', recipients: { totalSentCount: 1, items } })
    expect(await api.send({ channel })).toEqual({ kind: 'accepted', messageId: '955c3130' })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/voicemessages' })
    expect(headers['authorization']).toBe('AccessKey live_key')
    expect(JSON.parse(body)).toEqual({
      originator: '31201234567',
      recipients: ['31612345678'],
      body: '4, 8, 2, 9, 1, 3 is your Acme verification code. 4, 8, 2, 9, 1, 3.',
      language: 'en-us',
      voice: 'female',
      ifMachine: 'hangup',
      reference: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      reportUrl: 'https://otp.example.com/v1/callbacks/main/k8s2',
    })
  })

  test.each([
    ['pt-BR', 'pt-br', 'seu código'],
    ['ar', 'en-us', 'verification code'],
  ])('in %s is read as %s', async (locale, language, text) => {
    await api.send({ channel, locale })
    const body = JSON.parse(api.takeCall().body)
    expect(body.language).toBe(language)
    expect(body.body).toContain(text)
  })

  test.each([
    [401, 2, 'access_key', 'auth_failed'],
    [422, 9, 'recipients', 'invalid_number'],
    [422, 10, 'originator', 'sender_invalid'],
    [422, 25, null, 'no_credit'],
    [422, 10, 'language', 'unknown'],
    [500, 99, null, 'provider_down'],
    [429, 77, null, 'throttled'],
  ])('%i with code %i about %s is %s', async (status, code, parameter, failureClass) => {
    api.setResponse(status, { errors: [{ code, description: 'A description', parameter }] })
    expect(await api.send({ channel })).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, providerCode: String(code) },
    })
  })

  test('that fails at once is refused', async () => {
    const items = [{ recipient: 31612345678, status: 'failed' }]
    api.setResponse(201, { id: '95', recipients: { totalSentCount: 0, items } })
    expect(await api.send({ channel })).toMatchObject({ kind: 'refused', failure: { class: 'unknown' } })
  })
})

describe('receipts of calls', () => {
  async function call(status: string, key = 'signing-key') {
    const query = new URLSearchParams({
      id: '955c3130',
      reference: 'otp_7',
      recipient: '31612345678',
      status,
    })
    const url = `https://otp.example.com/v1/callbacks/main/k8s2?${query}`
    const jwt = await new SignJWT({ url_hash: createHash('sha256').update(url).digest('hex') })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer('MessageBird')
      .setNotBefore(api.nowSeconds())
      .setExpirationTime(api.nowSeconds() + 60)
      .sign(Buffer.from(key))
    return { method: 'GET', url, headers: { 'messagebird-signature-jwt': jwt } }
  }
  const ids = { messageId: '955c3130', requestId: 'otp_7' }

  test.each([
    ['calling', 'sent'],
    ['answered', 'delivered'],
  ] as const)('%s says %s', async (status, expected) => {
    expect(await api.readCallback(await call(status))).toEqual({
      kind: 'receipts',
      receipts: [{ ...ids, status: expected, failure: null }],
    })
  })

  test.each(['busy', 'machine', 'failed'])('%s means that the call was not answered', async (status) => {
    expect(await api.readCallback(await call(status))).toMatchObject({
      receipts: [
        {
          ...ids,
          status: 'undelivered',
          failure: { class: 'unreachable', permanent: false, providerCode: status },
        },
      ],
    })
  })

  test('are forged with another key, and report nothing with an unknown status', async () => {
    expect(await api.readCallback(await call('answered', 'another'))).toEqual({ kind: 'forged' })
    expect(await api.readCallback(await call('humming'))).toEqual({ kind: 'receipts', receipts: [] })
  })
})

describeHttpFaults((baseUrl) => withVoiceChannel(makeProvider(messagebird, { ...settings, baseUrl })))
