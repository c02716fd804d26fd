import { createHmac } from 'node:crypto'
import { accountFaulty, accountReady, readAccountCheck } from '../kit/account-check.ts'
import {
  callbackUrlFor,
  forged,
  parseForm,
  noReceipt,
  readCharge,
  receiptResult,
  requestIdFromUrl,
  unreadable,
} from '../kit/callbacks.ts'
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
import { parseJson, textAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { basicAuth, clamp, omitNullish } from '../kit/message-fields.ts'
import { readReportResult, reportDone } from '../kit/outcome-reports.ts'
import { refused, type Callback, type OutgoingMessage, type Provider } from '../kit/provider.ts'
import { timingSafeEqualBytes } from '../kit/signature-checks.ts'
import { callCodes, callFields, readCallStatus } from './twilio-voice.ts'

const fields = {
  accountSid: {
    description: 'the Account SID of the Twilio Console',
    required: true,
    pattern: /^AC[0-9a-f]{32}$/i,
    example: 'AC followed by 32 hexadecimal digits',
  },
  authToken: {
    description: 'the Auth Token of the Twilio Console; it signs receipts even if you send with an API key',
    required: true,
    secret: true,
  },
  apiKeySid: {
    description: 'the SID of an API key to send with',
    pattern: /^SK[0-9a-f]{32}$/i,
    example: 'SK followed by 32 hexadecimal digits',
  },
  apiKeySecret: { description: 'the secret of that API key', secret: true },
  from: { description: 'the number or the sender name', example: '+15005550006' },
  messagingServiceSid: {
    description: 'the Messaging Service that chooses the sender',
    pattern: /^MG[0-9a-f]{32}$/i,
    example: 'MG followed by 32 hexadecimal digits',
  },
  whatsappFrom: { description: 'the WhatsApp sender', pattern: /^\+\d{5,15}$/, example: '+15005550006' },
  whatsappContentSid: {
    description: 'the approved authentication template, whose variable 1 is the code',
    pattern: /^HX[0-9a-f]{32}$/i,
    example: 'HX followed by 32 hexadecimal digits',
  },
  rcsFrom: {
    description: 'the RCS sender, for RCS',
    pattern: /^rcs:[\w.-]{1,100}$/,
    example: 'rcs:acme_agent',
  },
  voiceFrom: {
    description: 'the number that calls, for voice: of Twilio or a verified caller id',
    pattern: /^\+\d{5,15}$/,
    example: '+15005550006',
  },
  baseUrl: baseUrlField('https://api.twilio.com'),
} as const

/** https://www.twilio.com/docs/api/errors. Codes from 30000 on appear in receipts. */
const codes: CodeTable = {
  ...callCodes,
  20003: 'auth_failed',
  20005: 'auth_failed', // account not active
  20429: 'throttled',
  21211: 'invalid_number',
  21217: 'invalid_number',
  21614: 'invalid_number', // not a mobile number
  21635: 'invalid_number', // a landline
  21612: ['unreachable', { permanent: true, at: 'route' }], // this sender cannot reach this number
  21212: 'sender_invalid',
  21603: 'sender_invalid',
  21606: 'sender_invalid',
  21608: 'sender_invalid', // a trial account may only write to verified numbers
  21659: 'sender_invalid',
  21660: 'sender_invalid',
  21408: 'geo_blocked',
  21610: 'opted_out',
  21609: ['unknown', { permanent: true }], // the callback URL
  21617: ['unknown', { permanent: true }], // too long
  30001: 'throttled',
  30002: 'auth_failed', // account suspended
  30003: 'unreachable',
  30004: ['unreachable', { permanent: true }], // blocked for this number
  30005: ['unreachable', { permanent: true }], // unknown destination
  30006: ['unreachable', { permanent: true }], // landline or unreachable carrier
  30007: 'content_blocked',
  30008: 'unknown',
  30022: 'throttled',
  30032: 'sender_invalid', // a toll-free number that is not verified
  30034: 'sender_invalid', // not registered for A2P 10DLC
  30036: 'unreachable', // the validity period ended
  // SMS Pumping Protection; neither was observed on a live account.
  30450: 'blocked_by_carrier',
  30453: 'blocked_by_carrier',
  63003: ['invalid_number', { at: 'route' }], // not on WhatsApp
  63016: 'content_blocked', // free-form text outside the 24-hour window
  63018: 'throttled',
  63024: ['invalid_number', { at: 'route' }], // not on WhatsApp
  63038: 'throttled', // messages of the account in 24 hours
}

/**
 * Twilio's Messages and Calls resources, version 2010-04-01. Receipts carry `X-Twilio-Signature`; it covers
 * no timestamp, so a captured receipt can be replayed but not altered.
 */
export const twilio = defineKind({
  kind: 'twilio',
  title: 'Twilio',
  channels: ['sms', 'whatsapp', 'voice', 'rcs'],
  channelSettings: { whatsapp: 'whatsappFrom', voice: 'voiceFrom', rcs: 'rcsFrom' },
  textByProvider: ['whatsapp'],
  fields,
  oneOf: ['from', 'messagingServiceSid'],
  together: [
    ['apiKeySid', 'apiKeySecret'],
    ['whatsappFrom', 'whatsappContentSid'],
  ],
  create: createTwilio,
})

function createTwilio(settings: SettingValues<typeof fields>, { http, feedback }: ProviderNeeds): Provider {
  const account = `${settings.baseUrl}/2010-04-01/Accounts/${settings.accountSid}`
  const authorization = basicAuth(
    settings.apiKeySid ?? settings.accountSid,
    settings.apiKeySecret ?? settings.authToken,
  )

  const messageFields = ({ channel, to, text, code }: OutgoingMessage) => {
    // The page on error 21664: to an `rcs:` address, Twilio sends nothing but RCS; otpd falls back by its routes.
    if (channel === 'rcs') return { To: `rcs:${to}`, From: settings.rcsFrom, Body: text }
    return channel === 'whatsapp'
      ? {
          To: `whatsapp:${to}`,
          From: `whatsapp:${settings.whatsappFrom}`,
          ContentSid: settings.whatsappContentSid,
          ContentVariables: JSON.stringify({ 1: code }),
        }
      : {
          To: to,
          From: settings.from,
          MessagingServiceSid: settings.messagingServiceSid,
          Body: text,
          ProvideFeedback: feedback ? 'true' : undefined,
        }
  }

  return {
    async send(message, signal) {
      const isCall = message.channel === 'voice'
      const url = `${account}/${isCall ? 'Calls' : 'Messages'}.json`
      const ValidityPeriod = String(clamp(message.validitySeconds, 1, 36_000))
      const form = omitNullish<string>({
        ...(isCall ? callFields(message, settings.voiceFrom) : { ...messageFields(message), ValidityPeriod }),
        StatusCallback: callbackUrlFor(message),
      })
      const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
      const body = new URLSearchParams(form).toString()
      return outcomeFromResult(
        await http.request({ method: 'POST', url, headers, body }, signal),
        readResponse,
      )
    },

    // Only that the person used the message can be reported; calls, WhatsApp and RCS take no feedback.
    async reportOutcome({ messageId, outcome, channel }, signal) {
      if (outcome !== 'verified' || channel === 'rcs' || !/^(SM|MM)/.test(messageId)) return reportDone
      const url = `${account}/Messages/${messageId}/Feedback.json`
      const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
      const result = await http.request({ method: 'POST', url, headers, body: 'Outcome=confirmed' }, signal)
      return readReportResult(result, ({ text }) => textAt(parseJson(text), 'code'))
    },

    // A status callback has no price. Twilio sets it on the resource after the final status, as a negative number.
    async findCharge({ messageId }, signal) {
      const resource = messageId.startsWith('CA') ? 'Calls' : 'Messages'
      const url = `${account}/${resource}/${encodeURIComponent(messageId)}.json`
      const result = await http.request({ method: 'GET', url, headers: { authorization } }, signal)
      if (result.kind !== 'response') return { kind: 'pending' }
      if (result.status === 404) return { kind: 'none' }
      const body = parseJson(result.text)
      const charge = readCharge(textAt(body, 'price')?.replace(/^-/, ''), textAt(body, 'price_unit'))
      return charge ? { kind: 'charge', charge } : { kind: 'pending' }
    },

    async checkAccount(signal) {
      const url = `${account}.json`
      const result = await http.request({ method: 'GET', url, headers: { authorization } }, signal)
      return readAccountCheck(result, 'this account', ({ text }) => {
        const body = parseJson(text)
        const status = textAt(body, 'status') ?? 'unknown'
        return status === 'active'
          ? accountReady(
              ['Account', textAt(body, 'friendly_name') ?? '-'],
              ['Type', textAt(body, 'type') ?? '-'],
            )
          : accountFaulty(`The account is ${status}.`, 'See why in the Twilio Console.')
      })
    },

    readCallback(callback) {
      if (!isSigned(callback, settings.authToken)) return forged
      const form = parseForm(callback)
      if (form.has('CallStatus')) return readCallStatus(form, requestIdFromUrl(callback))
      const status = form.get('MessageStatus')
      const messageId = form.get('MessageSid')
      if (status === null || messageId === null) return unreadable
      const ids = { messageId, requestId: requestIdFromUrl(callback) }
      if (status === 'delivered' || status === 'read') return receiptResult(ids, 'delivered')
      if (status === 'sent') return receiptResult(ids, 'sent')
      if (status !== 'undelivered' && status !== 'failed' && status !== 'canceled') return noReceipt
      const code = form.get('ErrorCode') ?? status
      return receiptResult(ids, 'undelivered', findFailure(codes, code) ?? createFailure('unknown', code))
    },
  }
}

function readResponse(response: HttpResponse) {
  const body = parseJson(response.text)
  if (isSuccess(response)) {
    const status = textAt(body, 'status')
    if (status !== 'failed' && status !== 'undelivered') return outcomeFromId(response, textAt(body, 'sid'))
    const code = textAt(body, 'error_code')
    return refused(findFailure(codes, code) ?? createFailure('unknown', code ?? status))
  }
  const code = textAt(body, 'code')
  if (response.status === 429) return refused(throttledFailure(response, code ?? null))
  const failure = findFailure(codes, code)
  return failure ? refused(failure) : outcomeFromStatus(response, code)
}

/** HMAC-SHA-1 over the URL and the fields sorted by name (https://www.twilio.com/docs/usage/security). */
function isSigned({ url, body, method, headers }: Callback, authToken: string): boolean {
  const entries = method === 'GET' ? [] : [...new URLSearchParams(body)]
  const sortedEntries = entries.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const expected = createHmac('sha1', authToken)
    .update(url + sortedEntries.flat().join(''))
    .digest()
  return timingSafeEqualBytes(Buffer.from(headers['x-twilio-signature'] ?? '', 'base64'), expected)
}
