import { awsFields, awsHost, postToAws } from './aws.ts'
import { createSnsNotificationReader } from './aws-receipts.ts'
import { failedCallEvents, voiceFields, voiceReasons } from './aws-voice.ts'
import { noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromResult,
  outcomeFromStatus,
  throttledFailure,
  type CodeTable,
} from '../kit/failures.ts'
import type { HttpResponse } from '../kit/http-client.ts'
import { listAt, parseJson, textAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { clamp, omitNullish } from '../kit/message-fields.ts'
import { accepted, refused } from '../kit/provider.ts'
import type { CallbackResult, OutgoingMessage, Provider, SendOutcome } from '../kit/provider.ts'

const fields = {
  ...awsFields,
  originationIdentity: { description: 'the number, sender name, pool or ARN to send from' },
  voiceOriginationIdentity: { description: 'the number, pool or ARN to call from, for voice' },
  configurationSet: { description: 'the configuration set, whose event destination reports receipts' },
  receiptTopicArn: {
    description: 'the SNS topic of that event destination, to which the callback URL is subscribed',
    pattern: /^arn:[\w-]+:sns:[\w-]+:\d{12}:[\w.-]+$/,
    example: 'arn:aws:sns:eu-central-1:123456789012:otp-receipts',
  },
  protectConfigurationId: { description: 'the protect configuration' },
  maxPrice: {
    description: 'the maximum price per part, in USD',
    pattern: /^\d{1,2}\.\d{1,5}$/,
    example: '0.10',
  },
  dltEntityId: { description: 'the DLT entity id, for India' },
  dltTemplateId: { description: 'the DLT template id, for India' },
} as const

/** Values of `Reason` in an exception, from the service's API model. */
const reasons: CodeTable = {
  ...voiceReasons,
  COUNTRY_CODE_MISMATCH: 'sender_invalid',
  COUNTRY_NOT_ENABLED: 'geo_blocked',
  DESTINATION_COUNTRY_BLOCKED: 'geo_blocked',
  DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION: 'geo_blocked',
  DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE: 'opted_out',
  DESTINATION_PHONE_NUMBER_NOT_VERIFIED: 'sender_invalid', // the account is in the sandbox
  DESTINATION_PHONE_NUMBER_OPTED_OUT: 'opted_out',
  INTERNATIONAL_SENDING_NOT_SUPPORTED: 'geo_blocked',
  INVALID_IDENTITY_FOR_DESTINATION_COUNTRY: 'sender_invalid',
  MESSAGE_TYPE_MISMATCH: 'sender_invalid',
  NO_ORIGINATION_IDENTITIES_FOUND: 'sender_invalid',
  NUMBER_CAPABILITIES_MISMATCH: 'sender_invalid',
  PRICE_OVER_THRESHOLD: 'geo_blocked',
  RESOURCE_NOT_ACTIVE: 'sender_invalid',
  SENDER_ID_NOT_REGISTERED: 'sender_invalid',
  SENDER_ID_NOT_SUPPORTED: 'sender_invalid',
  SENDER_ID_REQUIRES_REGISTRATION: 'sender_invalid',
  MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT: 'no_credit',
  ACCOUNT_DISABLED: 'auth_failed',
  INSUFFICIENT_ACCOUNT_REPUTATION: 'auth_failed',
}

/** Values of `__type` of an exception; signing errors are common to all AWS services. */
const exceptions: CodeTable = {
  AccessDeniedException: 'auth_failed',
  ExpiredTokenException: 'auth_failed',
  IncompleteSignatureException: 'auth_failed',
  InvalidSignatureException: 'auth_failed',
  MissingAuthenticationTokenException: 'auth_failed',
  UnrecognizedClientException: 'auth_failed',
  ResourceNotFoundException: 'sender_invalid',
  ServiceQuotaExceededException: 'throttled',
  ValidationException: ['unknown', { permanent: true }],
  ConflictException: ['unknown', { permanent: true }],
  InternalServerException: 'provider_down',
  ServiceUnavailableException: 'provider_down',
}

/** Values of `eventType` for messages that did not arrive. */
const failedEvents: CodeTable = {
  ...failedCallEvents,
  TEXT_INVALID: 'invalid_number',
  TEXT_INVALID_MESSAGE: 'content_blocked',
  TEXT_UNREACHABLE: 'unreachable',
  TEXT_CARRIER_UNREACHABLE: ['unreachable', { at: 'route' }],
  TEXT_BLOCKED: 'opted_out', // the phone refuses messages of this sender
  TEXT_CARRIER_BLOCKED: 'content_blocked',
  TEXT_SPAM: 'content_blocked',
  TEXT_TTL_EXPIRED: 'unreachable',
  TEXT_PROTECT_BLOCKED: 'geo_blocked',
}

/**
 * AWS End User Messaging SMS and its voice messages (`PinpointSMSVoiceV2`). It has no callbacks per message:
 * receipts are events of a configuration set, delivered through an SNS topic.
 */
export const awsSms = defineKind({
  kind: 'aws-sms',
  title: 'AWS End User Messaging SMS',
  channels: ['sms', 'voice'],
  fields,
  create: createAwsSms,
})

function createAwsSms(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const url = `${settings.baseUrl ?? `https://${awsHost('sms-voice', settings.region)}`}/`
  const dltParameters = omitNullish<string>({
    IN_ENTITY_ID: settings.dltEntityId,
    IN_TEMPLATE_ID: settings.dltTemplateId,
  })
  const textFields = ({ text }: OutgoingMessage) => ({
    OriginationIdentity: settings.originationIdentity,
    MessageBody: text,
    MessageType: 'TRANSACTIONAL',
    MaxPrice: settings.maxPrice,
    DestinationCountryParameters: Object.keys(dltParameters).length > 0 ? dltParameters : undefined,
  })
  const callFields = (message: OutgoingMessage) => ({
    OriginationIdentity: settings.voiceOriginationIdentity,
    ...voiceFields(message),
  })
  const { receiptTopicArn } = settings
  const readNotification =
    receiptTopicArn === undefined
      ? undefined
      : createSnsNotificationReader({ ...settings, receiptTopicArn }, needs)

  return {
    channels: settings.voiceOriginationIdentity === undefined ? ['sms'] : ['sms', 'voice'],

    async send(message, signal) {
      const isCall = message.channel === 'voice'
      const headers = {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `PinpointSMSVoiceV2.${isCall ? 'SendVoiceMessage' : 'SendTextMessage'}`,
      }
      const body = JSON.stringify(
        omitNullish<unknown>({
          DestinationPhoneNumber: message.to,
          ...(isCall ? callFields(message) : textFields(message)),
          TimeToLive: clamp(message.validitySeconds, 5, 259_200),
          Context: { requestId: message.requestId },
          ConfigurationSetName: settings.configurationSet,
          ProtectConfigurationId: settings.protectConfigurationId,
        }),
      )
      return outcomeFromResult(
        await postToAws(settings, needs, { service: 'sms-voice', url, headers, body }, signal),
        readResponse,
      )
    },

    ...(readNotification && {
      async readCallback(callback, nowMs) {
        const event = await readNotification(callback, nowMs)
        return 'kind' in event ? event : readEvent(event.message)
      },
    }),
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (response.status >= 200 && response.status < 300) return accepted(textAt(body, 'MessageId') ?? null)
  const exception = textAt(body, '__type')?.replace(/^.*#/, '')
  const reason = textAt(body, 'Reason')
  if (response.status === 429 || exception === 'ThrottlingException') {
    return refused(throttledFailure(response, exception ?? null))
  }
  const knownFailure = findFailure(reasons, reason)
  if (knownFailure) return refused(knownFailure)
  if (listAt(body, 'Fields').some((field) => textAt(field, 'Name') === 'DestinationPhoneNumber')) {
    return refused(createFailure('invalid_number', reason ?? exception ?? null))
  }
  const failure = findFailure(exceptions, exception)
  return failure
    ? refused({ ...failure, providerCode: reason ?? failure.providerCode })
    : outcomeFromStatus(response, exception)
}

function readEvent(text: string): CallbackResult {
  const event = parseJson(text)
  const type = textAt(event, 'eventType')
  const messageId = textAt(event, 'messageId')
  if (type === undefined || messageId === undefined) return unreadable
  const ids = { messageId, requestId: textAt(event, 'context', 'requestId') ?? null }
  if (type === 'TEXT_DELIVERED' || type === 'VOICE_COMPLETED') return receiptResult(ids, 'delivered')
  // These say only that the carrier accepted the message, even if the event is final.
  if (type === 'TEXT_SUCCESSFUL' || type === 'TEXT_SENT') return receiptResult(ids, 'sent')
  // Answered, but not yet played to the end.
  if (type === 'VOICE_ANSWERED') return receiptResult(ids, 'sent')
  const failure = findFailure(failedEvents, type)
  return failure ? receiptResult(ids, 'undelivered', failure) : noReceipt
}
