import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { awsHost } from '../../../src/delivery/providers/aws.ts'
import { awsSms } from '../../../src/delivery/providers/aws-sms.ts'
import { computeAwsSignature } from '../../helpers/aws-signature.ts'
import { testClock } from '../../helpers/clock.ts'
import { signAsSns } from '../../helpers/carriers/signed-callbacks.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  makeProvider,
  providerNeeds,
  readCallback,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const settings = {
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE0123456',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  baseUrl: server.url,
}
const provider = makeProvider(awsSms, settings)
const errorBody = (type: string, extraFields: object = {}) => ({
  __type: `com.amazonaws.pinpointsmsvoicev2#${type}`,
  Message: 'words',
  ...extraFields,
})

describe('a message', () => {
  test('is posted as AWS documents it, signed, with its lifetime and its reference', async () => {
    server.setResponse(200, { MessageId: 'm1' })
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'm1' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/'])
    expect(call.headers['content-type']).toBe('application/x-amz-json-1.0')
    expect(call.headers['x-amz-target']).toBe('PinpointSMSVoiceV2.SendTextMessage')
    expect(call.headers['authorization']).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0123456/20261120/eu-central-1/sms-voice/aws4_request, ' +
        'SignedHeaders=content-type;host;x-amz-date;x-amz-target, ' +
        `Signature=${computeAwsSignature(call, settings.secretAccessKey)}`,
    )
    expect(JSON.parse(call.body)).toEqual({
      DestinationPhoneNumber: '+31612345678',
      MessageBody: '482913 is your verification code. It is valid for 5 minutes.',
      MessageType: 'TRANSACTIONAL',
      TimeToLive: 300,
      Context: { requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5' },
      MessageFeedbackEnabled: true,
    })
  })

  test('contains all optional settings', async () => {
    const other = makeProvider(awsSms, {
      ...settings,
      originationIdentity: 'ACME',
      configurationSet: 'otp',
      protectConfigurationId: 'protect-1',
      maxPrice: '0.10',
      dltEntityId: '1101',
      dltTemplateId: '1107',
    })
    server.setResponse(200, { MessageId: 'm1' })
    await sendTo(other, { validitySeconds: 1 })
    expect(JSON.parse(server.takeCall().body)).toMatchObject({
      OriginationIdentity: 'ACME',
      ConfigurationSetName: 'otp',
      ProtectConfigurationId: 'protect-1',
      MaxPrice: '0.10',
      TimeToLive: 5,
      DestinationCountryParameters: { IN_ENTITY_ID: '1101', IN_TEMPLATE_ID: '1107' },
    })
  })

  test('goes to the host of the region', () => {
    expect(awsHost('sms-voice', 'eu-central-1')).toBe('sms-voice.eu-central-1.amazonaws.com')
    expect(awsHost('sns', 'cn-north-1')).toBe('sns.cn-north-1.amazonaws.com.cn')
  })
})

describe('an error', () => {
  const phoneField = { Fields: [{ Name: 'DestinationPhoneNumber', Message: 'words' }] }

  test.each([
    ['ValidationException', { Reason: 'DESTINATION_COUNTRY_BLOCKED' }, 'geo_blocked', 'route', true],
    ['ValidationException', { Reason: 'SENDER_ID_REQUIRES_REGISTRATION' }, 'sender_invalid', 'route', true],
    ['ValidationException', { Reason: 'INVALID_PARAMETER', ...phoneField }, 'invalid_number', 'number', true],
    ['ValidationException', { Reason: 'FIELD_VALIDATION_FAILED' }, 'unknown', 'route', true],
    ['ConflictException', { Reason: 'DESTINATION_PHONE_NUMBER_OPTED_OUT' }, 'opted_out', 'number', true],
    [
      'ConflictException',
      { Reason: 'DESTINATION_PHONE_NUMBER_NOT_VERIFIED' },
      'sender_invalid',
      'route',
      true,
    ],
    [
      'ConflictException',
      { Reason: 'DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION' },
      'geo_blocked',
      'route',
      true,
    ],
    [
      'ServiceQuotaExceededException',
      { Reason: 'MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT' },
      'no_credit',
      'account',
      true,
    ],
    ['AccessDeniedException', { Reason: 'ACCOUNT_DISABLED' }, 'auth_failed', 'account', true],
    ['UnrecognizedClientException', {}, 'auth_failed', 'account', true],
    ['ResourceNotFoundException', { ResourceType: 'sender-id' }, 'sender_invalid', 'route', true],
    ['ThrottlingException', {}, 'throttled', 'route', false],
    ['SomethingNewException', {}, 'unknown', 'route', false],
  ])('HTTP 400 with %s %j is %s of the %s', async (type, extraFields, failureClass, at, permanent) => {
    server.setResponse(400, errorBody(type, extraFields))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({
        class: failureClass,
        at,
        permanent,
        providerCode: 'Reason' in extraFields ? extraFields.Reason : type,
      }),
    })
    server.takeCall()
  })

  test('of AWS itself is a temporary refusal', async () => {
    server.setResponse(500, errorBody('InternalServerException'))
    expect(await sendTo(provider)).toMatchObject({ kind: 'refused', failure: { class: 'provider_down' } })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(awsSms, { ...settings, baseUrl }))

describe('a receipt by an SNS topic', () => {
  const receiptTopicArn = 'arn:aws:sns:eu-central-1:123456789012:otp-receipts'
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const otherKeys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const certificate = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const now = testClock().now()
  const withTopic = () => makeProvider(awsSms, { ...settings, receiptTopicArn })

  const event = (eventType: string) => ({
    eventType,
    eventVersion: '1.0',
    eventTimestamp: now,
    isFinal: true,
    destinationPhoneNumber: '+31612345678',
    messageId: 'm1',
    messageType: 'TRANSACTIONAL',
    messageStatus: 'STATUS',
    context: { requestId: 'otp_1' },
    totalMessageParts: 1,
    totalMessagePrice: 0.00581,
    totalCarrierFee: 0.00302,
  })
  const snsEnvelope = (message: string, changes: Record<string, string> = {}) => ({
    Type: 'Notification',
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: receiptTopicArn,
    Message: message,
    Timestamp: new Date(now).toISOString(),
    SignatureVersion: '2',
    SigningCertURL: `${server.url}/SimpleNotificationService-1.pem`,
    ...changes,
  })
  const signed = (envelope: Record<string, string>, key = privateKey) =>
    createCallback(signAsSns(envelope, key))
  const eventCallback = (eventType: string, changes: Record<string, string> = {}) =>
    signed(snsEnvelope(JSON.stringify(event(eventType)), changes))

  beforeEach(() => {
    server.calls.splice(0)
    server.setHandler(({ path }) =>
      path.endsWith('.pem') ? new Response(certificate) : new Response('<ConfirmSubscriptionResponse/>'),
    )
  })

  test.each([
    ['TEXT_DELIVERED', 'delivered'],
    ['TEXT_SUCCESSFUL', 'sent'],
    ['TEXT_SENT', 'sent'],
  ])('of %s is %s', async (type, expected) => {
    expect(await readCallback(withTopic(), eventCallback(type))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'm1',
          requestId: 'otp_1',
          status: expected === 'sent' ? 'sent' : 'delivered',
          failure: null,
          charge: { amount: 8_830, currency: 'USD' },
        },
      ],
    })
  })

  test.each([
    ['TEXT_INVALID', 'invalid_number', 'number', true],
    ['TEXT_INVALID_MESSAGE', 'content_blocked', 'route', true],
    ['TEXT_UNREACHABLE', 'unreachable', 'number', false],
    ['TEXT_CARRIER_UNREACHABLE', 'unreachable', 'route', false],
    ['TEXT_BLOCKED', 'opted_out', 'number', true],
    ['TEXT_CARRIER_BLOCKED', 'content_blocked', 'route', true],
    ['TEXT_SPAM', 'content_blocked', 'route', true],
    ['TEXT_TTL_EXPIRED', 'unreachable', 'number', false],
    ['TEXT_PROTECT_BLOCKED', 'geo_blocked', 'route', true],
  ])('of %s says %s', async (type, failureClass, at, permanent) => {
    expect(await readCallback(withTopic(), eventCallback(type))).toMatchObject({
      receipts: [
        {
          requestId: 'otp_1',
          status: 'undelivered',
          failure: { class: failureClass, at, permanent, providerCode: type },
        },
      ],
    })
  })

  test('of an event that is not about delivery is ignored; one without fields is unreadable', async () => {
    for (const type of ['TEXT_PENDING', 'TEXT_QUEUED', 'TEXT_UNKNOWN', 'RCS_NEW']) {
      expect(await readCallback(withTopic(), eventCallback(type))).toEqual({ kind: 'receipts', receipts: [] })
    }
    expect(await readCallback(withTopic(), signed(snsEnvelope('{}')))).toEqual({ kind: 'unreadable' })
    expect(await readCallback(withTopic(), createCallback({ body: '{}' }))).toEqual({ kind: 'unreadable' })
    expect(await readCallback(withTopic(), createCallback({ body: 'no JSON' }))).toEqual({
      kind: 'unreadable',
    })
  })

  test('is valid with signature version 1 and with a subject; the certificate is fetched once', async () => {
    const topic = withTopic()
    await readCallback(topic, eventCallback('TEXT_DELIVERED', { SignatureVersion: '1', Subject: 'words' }))
    expect(
      await readCallback(topic, eventCallback('TEXT_DELIVERED', { SignatureVersion: '1' })),
    ).toMatchObject({
      receipts: [{ status: 'delivered' }],
    })
    expect(server.calls).toHaveLength(1)
  })

  test('is signed in the region of its topic, which may be another than that of the account', async () => {
    const asked: string[] = []
    const needs = providerNeeds()
    const request = async ({ url }: { url: string }) => {
      asked.push(url)
      return { kind: 'response', status: 200, text: certificate, headers: {} } as const
    }
    const topic = 'arn:aws:sns:us-east-1:123456789012:otp-receipts'
    const reader = makeProvider(
      awsSms,
      { ...settings, receiptTopicArn: topic },
      { ...needs, http: { ...needs.http, request } },
    )
    const url = (region: string) => `https://sns.${region}.amazonaws.com/a.pem`
    const read = (region: string) =>
      readCallback(reader, eventCallback('TEXT_DELIVERED', { TopicArn: topic, SigningCertURL: url(region) }))
    expect(await read('eu-central-1')).toEqual({ kind: 'forged' })
    expect(await read('us-east-1')).toMatchObject({ receipts: [{ status: 'delivered' }] })
    expect(asked).toEqual([url('us-east-1')])
  })

  test('is forged with another key, text, topic or certificate host', async () => {
    const envelope = snsEnvelope(JSON.stringify(event('TEXT_DELIVERED')))
    const genuineCallback = signed(envelope)
    const forgeries = [
      signed(envelope, otherKeys.privateKey),
      { ...genuineCallback, body: genuineCallback.body.replace('TEXT_DELIVERED', 'TEXT_SPAM') },
      eventCallback('TEXT_DELIVERED', { TopicArn: 'arn:aws:sns:eu-central-1:999999999999:otp-receipts' }),
      eventCallback('TEXT_DELIVERED', {
        SigningCertURL: 'https://sns.eu-central-1.amazonaws.com.evil.example/a.pem',
      }),
      eventCallback('TEXT_DELIVERED', {
        SigningCertURL: 'https://evil.example/sns.eu-central-1.amazonaws.com.pem',
      }),
      eventCallback('TEXT_DELIVERED', { SigningCertURL: `${server.url}/certificate` }),
      eventCallback('TEXT_DELIVERED', { SigningCertURL: 'not a URL.pem' }),
      createCallback({ body: JSON.stringify(envelope) }),
    ]
    for (const forgery of forgeries)
      expect(await readCallback(withTopic(), forgery)).toEqual({ kind: 'forged' })
  })

  test('is forged if it is over an hour old, or its timestamp is invalid', async () => {
    const genuineCallback = eventCallback('TEXT_DELIVERED')
    expect(await readCallback(withTopic(), genuineCallback, now + 3_599_000)).toMatchObject({
      kind: 'receipts',
    })
    expect(await readCallback(withTopic(), genuineCallback, now + 3_601_000)).toEqual({ kind: 'forged' })
    expect(await readCallback(withTopic(), eventCallback('TEXT_DELIVERED', { Timestamp: 'noon' }))).toEqual({
      kind: 'forged',
    })
  })

  test('is unverifiable while the RSA certificate cannot be loaded, so that SNS repeats it', async () => {
    const read = () => readCallback(withTopic(), eventCallback('TEXT_DELIVERED'))
    server.setResponse(503)
    expect(await read()).toEqual({ kind: 'unverifiable' })
    server.setResponse(200, 'no certificate')
    expect(await read()).toEqual({ kind: 'unverifiable' })
    const { publicKey: another } = generateKeyPairSync('ed25519')
    server.setResponse(200, another.export({ type: 'spki', format: 'pem' }).toString())
    expect(await read()).toEqual({ kind: 'unverifiable' })
  })

  test('of an unknown signature version is forged, and of an unknown type unreadable', async () => {
    const envelope = snsEnvelope(JSON.stringify(event('TEXT_DELIVERED')), { SignatureVersion: '1' })
    const { body } = signed(envelope)
    const withVersion = createCallback({
      body: body.replace('"SignatureVersion":"1"', '"SignatureVersion":"3"'),
    })
    expect(await readCallback(withTopic(), withVersion)).toEqual({ kind: 'forged' })
    for (const Type of ['News', 'constructor', '__proto__'])
      expect(await readCallback(withTopic(), eventCallback('TEXT_DELIVERED', { Type }))).toEqual({
        kind: 'unreadable',
      })
  })

  test('is not read if no topic is set', () => {
    expect(provider.readCallback).toBeUndefined()
  })

  describe('asks to confirm the subscription', () => {
    const confirmation = (SubscribeURL: string) =>
      snsEnvelope('You have chosen to subscribe to the topic.', {
        Type: 'SubscriptionConfirmation',
        Token: '2336412f37',
        SubscribeURL,
      })
    const confirmUrl = `${server.url}/?Action=ConfirmSubscription&Token=2336412f37`

    test('and is confirmed', async () => {
      expect(await readCallback(withTopic(), signed(confirmation(confirmUrl)))).toEqual({
        kind: 'receipts',
        receipts: [],
      })
      expect(server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
        'GET /SimpleNotificationService-1.pem',
        'GET /?Action=ConfirmSubscription&Token=2336412f37',
      ])
    })

    test('and is repeated if the confirmation fails', async () => {
      server.setHandler(
        ({ path }) => new Response(certificate, { status: path.endsWith('.pem') ? 200 : 503 }),
      )
      expect(await readCallback(withTopic(), signed(confirmation(confirmUrl)))).toEqual({
        kind: 'unverifiable',
      })
    })

    test('and is not confirmed if it is forged, or if its URL has another host', async () => {
      const topic = withTopic()
      expect(await readCallback(topic, signed(confirmation(confirmUrl), otherKeys.privateKey))).toEqual({
        kind: 'forged',
      })
      const confirmationElsewhere = signed(confirmation('https://evil.example/?Action=ConfirmSubscription'))
      expect(await readCallback(topic, confirmationElsewhere)).toEqual({ kind: 'receipts', receipts: [] })
      expect(server.calls).toHaveLength(1)
    })
  })
})
