import { createTelnyxSignatureCheck, telnyxPublicKeyField } from './telnyx-signature.ts'
import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import {
  callbackUrlFor,
  forged,
  noReceipt,
  receiptResult,
  requestIdFromUrl,
  unreadable,
  withCharge,
} from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromErrorCode,
  outcomeFromId,
  outcomeFromResult,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import {
  baseUrlField,
  defineKind,
  uuidPattern,
  type ProviderNeeds,
  type SettingValues,
} from '../kit/provider-kinds.ts'
import { omitNullish } from '../kit/message-fields.ts'
import { refused } from '../kit/provider.ts'
import type { Callback, CallbackResult, Failure, Provider, Receipt, SendOutcome } from '../kit/provider.ts'

/**
 * https://support.telnyx.com/en/articles/6505121-telnyx-messaging-error-codes and
 * https://developers.telnyx.com/docs/messaging/messages/error-codes
 */
const codes: CodeTable = {
  10001: 'invalid_number',
  10002: 'invalid_number',
  10007: 'provider_down', // unexpected error
  10009: 'auth_failed',
  10010: 'auth_failed',
  10011: 'throttled',
  10016: 'invalid_number',
  20002: 'auth_failed',
  20006: 'auth_failed',
  20012: 'no_credit', // inactive, mostly for lack of funds
  20013: 'auth_failed',
  20014: 'auth_failed',
  20015: 'auth_failed',
  20016: 'auth_failed',
  20017: 'auth_failed',
  20100: 'no_credit',
  40001: 'invalid_number', // a landline
  40002: 'content_blocked',
  40003: 'content_blocked',
  40005: 'unreachable', // expired in transit
  40006: 'unreachable',
  40009: 'content_blocked',
  40010: 'sender_invalid', // not registered for 10DLC
  40011: 'throttled',
  40012: 'unreachable', // disconnected, without credit or blocks short codes
  40013: 'sender_invalid',
  40014: 'unreachable', // expired in the queue
  40015: 'content_blocked',
  40016: 'throttled', // daily limit of T-Mobile
  40017: 'content_blocked',
  40018: 'throttled', // limit of AT&T
  40100: 'sender_invalid',
  40150: 'sender_invalid',
  40151: 'sender_invalid',
  40300: 'opted_out',
  40301: 'sender_invalid',
  40302: 'content_blocked',
  40305: 'sender_invalid',
  40306: 'sender_invalid',
  40309: 'geo_blocked', // not on the allow-list of the profile
  40310: 'invalid_number',
  40311: 'auth_failed',
  40312: 'sender_invalid', // profile disabled
  40313: 'auth_failed',
  40314: 'auth_failed',
  40315: 'sender_invalid',
  40318: 'throttled', // queue full
  40319: 'sender_invalid',
  40320: 'sender_invalid',
  40321: 'sender_invalid', // no number left in the pool
  40322: 'content_blocked',
  40329: 'sender_invalid', // toll-free number not verified
}

const fields = {
  apiKey: { description: 'an API key (Account, Keys & Credentials)', required: true, secret: true },
  messagingProfileId: {
    description: 'the id of the messaging profile to send with',
    required: true,
    pattern: uuidPattern,
    example: '40017f8e-49c2-4b6a-9f0a-5d2c4d3e1b7a',
  },
  from: {
    description:
      'the sender: a number with +, a short code or up to 11 letters; default: a sender of the profile',
    pattern: /^(\+?\d{3,15}|[A-Za-z0-9 ]{1,11})$/,
    example: '+15551230000',
  },
  publicKey: telnyxPublicKeyField,
  baseUrl: baseUrlField('https://api.telnyx.com'),
} as const

/** SMS through Telnyx, `POST /v2/messages`. It has no message lifetime: Telnyx decides how long it tries. */
export const telnyx = defineKind({
  kind: 'telnyx',
  title: 'Telnyx',
  channels: ['sms'],
  fields,
  create: createTelnyx,
})

function createTelnyx(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const { publicKey } = settings
  const isSigned = publicKey === undefined ? undefined : createTelnyxSignatureCheck(publicKey)
  return {
    async send(message, signal) {
      const json = omitNullish<unknown>({
        from: settings.from,
        messaging_profile_id: settings.messagingProfileId,
        to: message.to,
        text: message.text,
        type: 'SMS',
        // Otherwise Telnyx also reports the message to the webhook URL of the profile.
        use_profile_webhooks: false,
        webhook_url: isSigned && callbackUrlFor(message),
      })
      const url = `${settings.baseUrl}/v2/messages`
      const headers = { authorization: `Bearer ${settings.apiKey}` }
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    ...(isSigned && {
      readCallback: (callback: Callback, nowMs: number) =>
        isSigned(callback, nowMs) ? readCallback(callback) : forged,
    }),

    async checkAccount(signal) {
      const url = `${settings.baseUrl}/v2/messaging_profiles/${settings.messagingProfileId}`
      const headers = { authorization: `Bearer ${settings.apiKey}` }
      const result = await http.request({ method: 'GET', url, headers }, signal)
      return readAccountCheck(result, 'this messaging profile', ({ text }) =>
        accountReady(['Messaging profile', textAt(parseJson(text), 'data', 'name') ?? '-']),
      )
    },
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) {
    const code = textAt(body, 'errors', 0, 'code')
    // A spend limit is answered 429 too, and lasts until midnight.
    if (code === '40333') return refused(createFailure('no_credit', code))
    return outcomeFromErrorCode(response, code, codes)
  }
  // Not a documented response: it is not from Telnyx, or its format has changed and the message was accepted.
  return outcomeFromId(response, textAt(body, 'data', 'id'))
}

/** Reads a verified callback. */
function readCallback(callback: Callback): CallbackResult {
  const event = parseJson(callback.body)
  const type = textAt(event, 'data', 'event_type')
  if (type === undefined) return unreadable
  // Other events of the account, such as incoming messages.
  if (type !== 'message.sent' && type !== 'message.finalized') return noReceipt
  const payload = valueAt(event, 'data', 'payload')
  const messageId = textAt(payload, 'id')
  if (messageId === undefined) return unreadable
  const receipt = readReceipt(payload, { messageId, requestId: requestIdFromUrl(callback) })
  return withCharge(receipt, valueAt(payload, 'cost', 'amount'), textAt(payload, 'cost', 'currency'))
}

function readReceipt(payload: unknown, ids: Pick<Receipt, 'messageId' | 'requestId'>): CallbackResult {
  switch (textAt(payload, 'to', 0, 'status')) {
    case 'sent':
    // The carrier accepted the message and reports nothing more.
    case 'delivery_unconfirmed':
      return receiptResult(ids, 'sent')
    case 'delivered':
      return receiptResult(ids, 'delivered')
    case 'expired':
      return receiptResult(ids, 'undelivered', createFailure('unreachable', 'expired'))
    case 'sending_failed':
    case 'delivery_failed':
      return receiptResult(ids, 'undelivered', readFailure(valueAt(payload, 'errors', 0)))
    default:
      return noReceipt
  }
}

function readFailure(error: unknown): Failure {
  const code = textAt(error, 'code')
  // In receipts, code 40300 also covers disconnected phones; only the title tells them from opt-outs.
  if (code === '40300' && !/\bSTOP\b/.test(textAt(error, 'title') ?? ''))
    return createFailure('unreachable', code)
  return findFailure(codes, code) ?? createFailure('unknown', code ?? null)
}
