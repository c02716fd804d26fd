import { awsHost, postToAws, type AwsAccount } from './aws.ts'
import { createSnsNotificationReader } from './aws-receipts.ts'
import { failedCallEvents, voiceReasons } from './aws-voice.ts'
import { readAccountCheck, type AccountCheck } from '../kit/account-check.ts'
import { noReceipt, receiptResult, unreadable, withCharge } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromId,
  outcomeFromResult,
  outcomeFromStatus,
  throttledFailure,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { listAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { clamp, omitNullish } from '../kit/message-fields.ts'
import { readReportResult, reportDone } from '../kit/outcome-reports.ts'
import type { ProviderNeeds } from '../kit/provider-kinds.ts'
import { refused } from '../kit/provider.ts'
import type {
  Callback,
  CallbackResult,
  OutcomeReport,
  OutgoingMessage,
  Provider,
  Receipt,
  ReportResult,
  SendOutcome,
} from '../kit/provider.ts'

/** Names, ids and ARNs in the service's API model. */
export const nameOrArnPattern = /^[\w:/-]{1,256}$/

/** Settings that `aws-sms` and `aws-notify` share. */
export const messagingFields = {
  configurationSet: {
    description: 'the configuration set, whose event destination reports receipts',
    pattern: nameOrArnPattern,
    example: 'otp',
  },
  receiptTopicArn: {
    description: 'the SNS topic of that event destination, to which the callback URL is subscribed',
    pattern: /^arn:[\w-]+:sns:[\w-]+:\d{12}:[\w.-]+$/,
    example: 'arn:aws:sns:eu-central-1:123456789012:otp-receipts',
  },
} as const

type MessagingSettings = AwsAccount & Record<'baseUrl' | keyof typeof messagingFields, string | undefined>

/**
 * Calls operations of `PinpointSMSVoiceV2`, which the kinds `aws-sms` and `aws-notify` share.
 *
 * @param eventCodes event types that mean something else for this kind
 */
export function createEndUserMessaging(
  settings: MessagingSettings,
  needs: ProviderNeeds,
  eventCodes: CodeTable = {},
) {
  const { baseUrl, configurationSet, receiptTopicArn } = settings
  const url = `${baseUrl ?? `https://${awsHost('sms-voice', settings.region)}`}/`
  const call = (operation: string, fields: Record<string, unknown>, signal: AbortSignal) => {
    const headers = {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': `PinpointSMSVoiceV2.${operation}`,
    }
    const body = JSON.stringify(omitNullish(fields))
    return postToAws(settings, needs, { service: 'sms-voice', url, headers, body }, signal)
  }
  const readNotification =
    receiptTopicArn === undefined
      ? undefined
      : createSnsNotificationReader({ ...settings, receiptTopicArn }, needs)

  return {
    /** Sends a message by one of the operations that send. @param fields those of its kind */
    async send(
      operation: string,
      { to, requestId, validitySeconds }: OutgoingMessage,
      fields: Record<string, unknown>,
      signal: AbortSignal,
    ): Promise<SendOutcome> {
      const common = {
        DestinationPhoneNumber: to,
        TimeToLive: clamp(validitySeconds, 5, 259_200),
        Context: { requestId },
        ConfigurationSetName: configurationSet,
        // Without it, AWS takes no feedback; with it, an hour of silence counts as failed.
        MessageFeedbackEnabled: needs.feedback || undefined,
      }
      return outcomeFromResult(await call(operation, { ...common, ...fields }, signal), readSendResponse)
    },

    /** Looks something up, to try the account. AWS answers 400 where HTTP has 403 and 404. */
    async checkAccount(
      {
        operation,
        fields,
        resource,
      }: { operation: string; fields: Record<string, unknown>; resource: string },
      readFound: (body: unknown) => AccountCheck,
      signal: AbortSignal,
    ): Promise<AccountCheck> {
      const result = await call(operation, fields, signal)
      if (result.kind !== 'response') return readAccountCheck(result, resource)
      const exception = readException(result) ?? ''
      const isUnknown = exception === 'ResourceNotFoundException'
      const status = credentialExceptions.has(exception) ? 403 : isUnknown ? 404 : result.status
      return readAccountCheck({ ...result, status }, resource, ({ text }) => readFound(parseJson(text)))
    },

    /** Reports of outcomes and receipts, if the settings switch them on. */
    reporting: {
      ...(needs.feedback && { reportOutcome }),
      ...(readNotification && {
        async readCallback(callback: Callback, nowMs: number): Promise<CallbackResult> {
          const event = await readNotification(callback, nowMs)
          return 'kind' in event ? event : readEvent(event.message, eventCodes)
        },
      }),
    } satisfies Partial<Provider>,
  }

  /** Sets the feedback of a message. AWS knows only that the code was entered, or that it was not. */
  async function reportOutcome(
    { messageId, outcome }: OutcomeReport,
    signal: AbortSignal,
  ): Promise<ReportResult> {
    // AWS's ids; a longer or different one is not of a message of this API.
    if (!/^[\w:/-]{1,64}$/.test(messageId)) return reportDone
    const MessageFeedbackStatus = outcome === 'verified' ? 'RECEIVED' : 'FAILED'
    const result = await call('PutMessageFeedback', { MessageId: messageId, MessageFeedbackStatus }, signal)
    const exception = result.kind === 'response' ? readException(result) : undefined
    // Throttling is HTTP 400, as all exceptions that the caller causes.
    if (exception === 'ThrottlingException' || credentialExceptions.has(exception ?? ''))
      return { kind: 'retry', providerCode: exception ?? '' }
    return readReportResult(result, readException)
  }
}

const credentialExceptions: ReadonlySet<string> = new Set([
  'AccessDeniedException',
  'ExpiredTokenException',
  'InvalidSignatureException',
  'UnrecognizedClientException',
])

const readException = ({ text }: HttpResponse) => textAt(parseJson(text), '__type')?.replace(/^.*#/, '')

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
  CHANNEL_NOT_ENABLED: 'sender_invalid',
  NOTIFY_CONFIGURATION_NOT_ACTIVE: 'sender_invalid',
  MONTHLY_SPEND_LIMIT_REACHED_FOR_NOTIFY: 'no_credit',
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

/** Reads the response to one of the operations that send. */
function readSendResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (isSuccess(response)) return outcomeFromId(response, textAt(body, 'MessageId'))
  const exception = readException(response)
  const reason = textAt(body, 'Reason')
  if (response.status === 429 || exception === 'ThrottlingException') {
    return refused(throttledFailure(response, exception ?? null))
  }
  // The tier's messages of the day are used up: asking every second would change nothing.
  if (reason === 'DAILY_NOTIFY_TIER_MESSAGE_LIMIT')
    return refused(createFailure('throttled', reason, { retryAfterSeconds: 300 }))
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

/**
 * Reads an event of a configuration set.
 *
 * @param codes event types that mean something else for this kind
 */
export function readEvent(text: string, codes: CodeTable = {}): CallbackResult {
  const event = parseJson(text)
  const type = textAt(event, 'eventType')
  const messageId = textAt(event, 'messageId')
  if (type === undefined || messageId === undefined) return unreadable
  const ids = { messageId, requestId: textAt(event, 'context', 'requestId') ?? null }
  return withCharge(readEventType(type, ids, codes), readPrice(event), 'USD')
}

/** Price of all parts with the fee of the carrier. AWS names no currency: it bills in US dollars. */
function readPrice(event: unknown): unknown {
  const [price, fee] = [valueAt(event, 'totalMessagePrice'), valueAt(event, 'totalCarrierFee')]
  return typeof price === 'number' ? price + (typeof fee === 'number' ? fee : 0) : undefined
}

function readEventType(type: string, ids: Pick<Receipt, 'messageId' | 'requestId'>, codes: CodeTable) {
  if (type === 'TEXT_DELIVERED' || type === 'VOICE_COMPLETED') return receiptResult(ids, 'delivered')
  // These say only that the carrier accepted the message, even if the event is final.
  if (type === 'TEXT_SUCCESSFUL' || type === 'TEXT_SENT') return receiptResult(ids, 'sent')
  // Answered, but not yet played to the end.
  if (type === 'VOICE_ANSWERED') return receiptResult(ids, 'sent')
  const failure = findFailure({ ...failedEvents, ...codes }, type)
  return failure ? receiptResult(ids, 'undelivered', failure) : noReceipt
}
