import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createSign, generateKeyPairSync } from 'node:crypto'
import { awsSms } from '../../../src/delivery/providers/aws-sms.ts'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { computeAwsSignature } from '../../helpers/aws-signature.ts'
import { testClock } from '../../helpers/clock.ts'
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

const sms = {
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE0123456',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  originationIdentity: 'ACME',
  maxPrice: '0.10',
  baseUrl: server.url,
}
const settings = { ...sms, voiceOriginationIdentity: '+12065550152', configurationSet: 'otp' }
const provider = withVoiceChannel(makeProvider(awsSms, settings))

test('voice needs a number to call from', () => {
  expect(enabledChannels(awsSms, sms)).toEqual(['sms'])
  expect(enabledChannels(awsSms, settings)).toEqual(['sms', 'voice'])
  expect(awsSms.channels).toContain('voice')
  expect(findSettingFaults(awsSms, { ...sms, voiceOriginationIdentity: '' })).toMatchObject([
    { name: 'voiceOriginationIdentity' },
  ])
})

describe('a call', () => {
  test('is posted as AWS documents it, signed, with its lifetime and its reference', async () => {
    server.setResponse(200, { MessageId: 'v1' })
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'v1' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/'])
    expect(call.headers['x-amz-target']).toBe('PinpointSMSVoiceV2.SendVoiceMessage')
    expect(call.headers['authorization']).toEndWith(
      `Signature=${computeAwsSignature(call, settings.secretAccessKey)}`,
    )
    expect(JSON.parse(call.body)).toEqual({
      DestinationPhoneNumber: '+31612345678',
      OriginationIdentity: '+12065550152',
      MessageBody:
        '<speak><break time="1s"/>4, 8, 2, 9, 1, 3 is your Acme verification code.' +
        '<break time="1s"/>4, 8, 2, 9, 1, 3.</speak>',
      MessageBodyTextType: 'SSML',
      VoiceId: 'JOANNA',
      TimeToLive: 300,
      Context: { requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5' },
      MessageFeedbackEnabled: true,
      ConfigurationSetName: 'otp',
    })
  })

  test.each([
    ['ja', 'MIZUKI', '認証コード'],
    ['pt-BR', 'CAMILA', 'seu código'],
    ['vi', 'JOANNA', 'is your A&#38;B verification code'],
  ])('in %s is read by %s', async (locale, VoiceId, text) => {
    server.setResponse(200, { MessageId: 'v1' })
    await sendTo(provider, { locale, applicationName: 'A&B' })
    const body = JSON.parse(server.takeCall().body)
    expect(body.VoiceId).toBe(VoiceId)
    expect(body.MessageBody).toContain(text)
  })
})

describe('an error', () => {
  const phoneField = { Fields: [{ Name: 'DestinationPhoneNumber', Message: 'words' }] }

  test.each([
    ['ServiceQuotaExceededException', 'MONTHLY_SPEND_LIMIT_REACHED_FOR_VOICE', {}, 'no_credit', 'account'],
    ['ServiceQuotaExceededException', 'DAILY_DESTINATION_CALL_LIMIT', {}, 'throttled', 'number'],
    ['ValidationException', 'VOICE_CAPABILITY_NOT_AVAILABLE', {}, 'sender_invalid', 'route'],
    ['ValidationException', 'DESTINATION_COUNTRY_BLOCKED', {}, 'geo_blocked', 'route'],
    ['ValidationException', 'INVALID_PARAMETER', phoneField, 'invalid_number', 'number'],
    ['ConflictException', 'DESTINATION_PHONE_NUMBER_OPTED_OUT', {}, 'opted_out', 'number'],
    ['AccessDeniedException', 'ACCOUNT_DISABLED', {}, 'auth_failed', 'account'],
    ['InternalServerException', undefined, {}, 'provider_down', 'route'],
    ['SomethingNewException', undefined, {}, 'unknown', 'route'],
  ])('%s %s %j is %s of the %s', async (type, Reason, extraFields, failureClass, at) => {
    server.setResponse(400, { __type: `com.amazonaws.pinpointsmsvoicev2#${type}`, Reason, ...extraFields })
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, at, providerCode: Reason ?? type },
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => withVoiceChannel(makeProvider(awsSms, { ...settings, baseUrl })))

describe('a receipt by an SNS topic', () => {
  const receiptTopicArn = 'arn:aws:sns:eu-central-1:123456789012:otp-receipts'
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const otherKeys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const withTopic = makeProvider(awsSms, { ...settings, receiptTopicArn })

  function eventCallback(eventType: string, key = privateKey) {
    const event = { eventType, messageId: 'v1', isFinal: true, context: { requestId: 'otp_1' } }
    const envelope = {
      Message: JSON.stringify(event),
      MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
      Timestamp: new Date(testClock().now()).toISOString(),
      TopicArn: receiptTopicArn,
      Type: 'Notification',
    }
    const text = Object.entries(envelope).map(([name, value]) => `${name}\n${value}\n`)
    const Signature = createSign('RSA-SHA256').update(text.join('')).sign(key, 'base64')
    const SigningCertURL = `${server.url}/SimpleNotificationService-1.pem`
    return createCallback({
      body: JSON.stringify({ ...envelope, SignatureVersion: '2', SigningCertURL, Signature }),
    })
  }

  beforeEach(() =>
    server.setHandler(() => new Response(publicKey.export({ type: 'spki', format: 'pem' }).toString())),
  )

  test.each([
    ['VOICE_COMPLETED', 'delivered'],
    ['VOICE_ANSWERED', 'sent'],
  ])('of %s is %s', async (type, status) => {
    expect(await readCallback(withTopic, eventCallback(type))).toMatchObject({
      receipts: [{ messageId: 'v1', requestId: 'otp_1', status, failure: null }],
    })
  })

  test.each([
    ['VOICE_BUSY', 'unreachable', 'number'],
    ['VOICE_NO_ANSWER', 'unreachable', 'number'],
    ['VOICE_TTL_EXPIRED', 'unreachable', 'number'],
    ['VOICE_FAILED', 'unknown', 'route'],
  ])('of %s says %s of the %s', async (type, failureClass, at) => {
    expect(await readCallback(withTopic, eventCallback(type))).toMatchObject({
      receipts: [
        {
          requestId: 'otp_1',
          status: 'undelivered',
          failure: { class: failureClass, at, permanent: false, providerCode: type },
        },
      ],
    })
  })

  test('of a call in progress reports nothing, and with a foreign key is forged', async () => {
    for (const type of ['VOICE_INITIATED', 'VOICE_RINGING']) {
      expect(await readCallback(withTopic, eventCallback(type))).toEqual({ kind: 'receipts', receipts: [] })
    }
    const forgery = eventCallback('VOICE_COMPLETED', otherKeys.privateKey)
    expect(await readCallback(withTopic, forgery)).toEqual({ kind: 'forged' })
  })
})
