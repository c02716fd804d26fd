import { afterAll, describe, expect, test } from 'bun:test'
import { enabledChannels } from '../../../src/delivery/kit/provider-kinds.ts'
import { readEvent } from '../../../src/delivery/providers/aws-end-user-messaging.ts'
import { awsNotify } from '../../../src/delivery/providers/aws-notify.ts'
import { computeAwsSignature } from '../../helpers/aws-signature.ts'
import { startAwsNotify } from '../../helpers/carriers/aws-notify-server.ts'
import { describeCarrier } from '../../helpers/carriers/carrier-contract.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { createOutcomeReport, longTimeout, makeProvider, sendTo } from '../../helpers/provider-server.ts'

const server = startAwsNotify()
afterAll(() => server.stop())

const settings = {
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE0123456',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  notifyConfigurationId: 'nc-1',
  templates: 'en = notify-code-verification-english-001, de = notify-code-verification-german-001',
}
const provider = makeProvider(awsNotify, { ...settings, baseUrl: server.url })
const takeCall = () => {
  const call = server.calls.splice(0).at(-1)
  if (!call) throw new Error('no call')
  return call
}

describe('a message', () => {
  test('is posted as the API model documents it, signed, with template, lifetime and feedback', async () => {
    const outcome = await sendTo(provider)
    const call = takeCall()
    expect(outcome).toEqual({ kind: 'accepted', messageId: server.messages[0]?.messageId ?? '' })
    expect(call.headers['x-amz-target']).toBe('PinpointSMSVoiceV2.SendNotifyTextMessage')
    expect(call.headers['authorization']).toEndWith(
      `Signature=${computeAwsSignature(call, settings.secretAccessKey)}`,
    )
    expect(JSON.parse(call.body)).toEqual({
      NotifyConfigurationId: 'nc-1',
      DestinationPhoneNumber: '+31612345678',
      TemplateId: 'notify-code-verification-english-001',
      TemplateVariables: { code: '482913' },
      TimeToLive: 300,
      Context: { requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5' },
      MessageFeedbackEnabled: true,
    })
  })

  test.each([
    ['de-AT', 'notify-code-verification-german-001'],
    ['en-GB', 'notify-code-verification-english-001'],
    ['ja', 'notify-code-verification-english-001'],
  ])('in %s uses the template %s', async (locale, templateId) => {
    await sendTo(provider, { locale })
    expect(JSON.parse(takeCall().body)).toMatchObject({ TemplateId: templateId })
  })

  test('as a call needs templates for calls, and spells the digits', async () => {
    expect(enabledChannels(awsNotify, settings)).toEqual(['sms'])
    const withCalls = { ...settings, voiceTemplates: 'en = call-001', baseUrl: server.url }
    const caller = makeProvider(awsNotify, withCalls)
    expect(enabledChannels(awsNotify, withCalls)).toEqual(['sms', 'voice'])
    await sendTo(caller, { channel: 'voice' })
    const call = takeCall()
    expect(call.headers['x-amz-target']).toBe('PinpointSMSVoiceV2.SendNotifyVoiceMessage')
    expect(JSON.parse(call.body)).toMatchObject({
      TemplateId: 'call-001',
      TemplateVariables: { code: '4. 8. 2. 9. 1. 3' },
    })
  })

  test('beyond the messages of the day pauses the provider for five minutes', async () => {
    server.setMode('throttle')
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: {
        class: 'throttled',
        permanent: false,
        at: 'route',
        providerCode: 'DAILY_NOTIFY_TIER_MESSAGE_LIMIT',
        retryAfterSeconds: 300,
      },
    })
    server.setMode('accept')
  })
})

describe('the outcome', () => {
  test.each([
    ['verified', 'RECEIVED'],
    ['expired', 'FAILED'],
    ['canceled', 'FAILED'],
    ['failed', 'FAILED'],
  ] as const)('%s is reported as %s', async (outcome, status) => {
    const sent = await sendTo(provider)
    const messageId = sent.kind === 'accepted' ? (sent.messageId ?? '') : ''
    const report = createOutcomeReport({ messageId, outcome })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
    expect(server.feedback.get(messageId)).toBe(status)
  })

  test('of a message that AWS does not know is rejected, and of wrong credentials tried again', async () => {
    const report = createOutcomeReport({ messageId: 'unknown' })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({
      kind: 'rejected',
      providerCode: 'ResourceNotFoundException',
    })
    server.setMode('unauthorized')
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({
      kind: 'retry',
      providerCode: 'UnrecognizedClientException',
    })
    server.setMode('accept')
  })
})

describe('the account check', () => {
  test('shows what the configuration allows, and sends nothing', async () => {
    const before = server.messages.length
    expect(await provider.checkAccount?.(longTimeout())).toEqual({
      kind: 'ready',
      facts: [
        ['Name that people see', 'Acme'],
        ['Tier', 'BASIC: 200 messages a day, 1 a second'],
        ['Channels', 'SMS, VOICE'],
        ['Countries', 'DE, NL'],
      ],
    })
    expect(server.messages).toHaveLength(before)
  })

  test('names wrong credentials, an unknown configuration and one that is not active', async () => {
    server.setMode('unauthorized')
    expect(await provider.checkAccount?.(longTimeout())).toMatchObject({
      problem: 'The provider refuses the credentials (HTTP 403).',
    })
    server.setMode('accept')
    const other = makeProvider(awsNotify, { ...settings, notifyConfigurationId: 'nc-2', baseUrl: server.url })
    expect(await other.checkAccount?.(longTimeout())).toMatchObject({
      problem: 'The provider does not know this Notify configuration (HTTP 404).',
    })
    server.configuration.Status = 'PENDING'
    expect(await provider.checkAccount?.(longTimeout())).toMatchObject({
      problem: 'The Notify configuration is PENDING, so it sends nothing.',
    })
    server.configuration.Status = 'ACTIVE'
  })
})

test('a receipt that the fraud filter blocked the message is of that class', () => {
  const event = (eventType: string) => JSON.stringify({ eventType, messageId: 'm1' })
  const codes = { TEXT_PROTECT_BLOCKED: 'blocked_by_carrier' } as const
  expect(readEvent(event('TEXT_PROTECT_BLOCKED'), codes)).toMatchObject({
    receipts: [{ status: 'undelivered', failure: { class: 'blocked_by_carrier', at: 'message' } }],
  })
})

describeCarrier({
  kind: 'aws-notify',
  server,
  settings,
  failures: { refuse: 'geo_blocked', throttle: 'throttled', unauthorized: 'auth_failed' },
  blocksAtOnce: false,
})
describeHttpFaults((baseUrl) => makeProvider(awsNotify, { ...settings, baseUrl }))
