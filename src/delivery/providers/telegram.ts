import { createHash, createHmac } from 'node:crypto'
import { forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromErrorCode,
  outcomeFromResult,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { clamp, omitNullish } from '../kit/message-fields.ts'
import { readReportResult, reportDone } from '../kit/outcome-reports.ts'
import { accepted, refused, uncertain } from '../kit/provider.ts'
import type { Callback, CallbackResult, Provider, ReportResult, SendOutcome } from '../kit/provider.ts'
import { timingSafeEqualBytes, isWithinTolerance } from '../kit/signature-checks.ts'
import { hourMs, secondMs } from '../../shared/durations.ts'

const fields = {
  token: {
    description: 'the access token (gateway.telegram.org/account/api)',
    required: true,
    secret: true,
  },
  senderUsername: {
    description: 'the verified channel that sends the codes',
    pattern: /^@?[A-Za-z]\w{3,31}$/,
    example: 'acme',
  },
  baseUrl: baseUrlField('https://gatewayapi.telegram.org'),
} as const

const ttlSecondsMin = 30
const ttlSecondsMax = hourMs / secondMs
const callbackUrlLengthMax = 256
/** Codes of other systems may have letters, or more digits. */
const codeFormat = /^\d{4,8}$/
const toleranceSeconds = 300

/** Error names observed in responses; the documentation (February 2025) has ACCESS_TOKEN_INVALID as its only example. */
const codes: CodeTable = {
  ACCESS_TOKEN_INVALID: 'auth_failed',
  ACCESS_TOKEN_REQUIRED: 'auth_failed',
  PHONE_NUMBER_INVALID: 'invalid_number',
  // Not on Telegram; the number may be valid for other channels.
  PHONE_NUMBER_NOT_FOUND: 'unreachable',
  PHONE_NUMBER_NOT_AVAILABLE: 'unreachable',
  SENDER_NOT_VERIFIED: 'sender_invalid',
  SENDER_NOT_OWNED: 'sender_invalid',
  BALANCE_NOT_ENOUGH: 'no_credit',
}

/**
 * Sends codes as Telegram messages. Telegram chooses the text, and refunds messages not delivered in time.
 */
export const telegram = defineKind({
  kind: 'telegram',
  title: 'Telegram Gateway',
  channels: ['telegram'],
  textByProvider: ['telegram'],
  fields,
  create: createTelegram,
})

function createTelegram(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const headers = { authorization: `Bearer ${settings.token}` }
  const post = (method: string, json: object, signal: AbortSignal) =>
    http.request({ method: 'POST', url: `${settings.baseUrl}/${method}`, headers, json }, signal)
  return {
    async send({ to, code, requestId, validitySeconds, callbackUrl }, signal) {
      // Telegram's shortest lifetime would outlast the code.
      if (validitySeconds < ttlSecondsMin) return refused(createFailure('unknown', 'TTL_INVALID'))
      if (!codeFormat.test(code)) return refused(createFailure('content_blocked', 'CODE_INVALID'))
      const isUrlShortEnough = callbackUrl !== null && callbackUrl.length <= callbackUrlLengthMax
      const fields = omitNullish<unknown>({
        phone_number: to,
        code,
        ttl: clamp(validitySeconds, ttlSecondsMin, ttlSecondsMax),
        payload: requestId,
        sender_username: settings.senderUsername?.replace(/^@/, ''),
        callback_url: isUrlShortEnough ? callbackUrl : null,
      })
      return outcomeFromResult(await post('sendVerificationMessage', fields, signal), readResponse)
    },

    // Telegram asks for this call when the right code was entered; it has none for codes that were not.
    async reportOutcome({ messageId, code, outcome }, signal) {
      if (outcome !== 'verified') return reportDone
      const result = await post('checkVerificationStatus', { request_id: messageId, code }, signal)
      return result.kind === 'response' ? readReport(result) : readReportResult(result)
    },

    readCallback: (callback, nowMs) => readCallback(callback, settings.token, nowMs),
  }
}

/** Errors can have any status, including 200. */
function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  const id = textAt(body, 'result', 'request_id')
  if (isSuccess(response) && valueAt(body, 'ok') === true && id !== undefined) return accepted(id)
  const error = textAt(body, 'error')
  if (isSuccess(response) && error === undefined) return uncertain(`HTTP ${response.status}`)
  // An earlier attempt arrived after all, ours or another sender's.
  if (error === 'MESSAGE_ALREADY_SENT') return uncertain(error)
  const floodWait = /^FLOOD_WAIT(?:_(\d{1,6}))?/.exec(error ?? '')
  if (!floodWait || response.status >= 500) return outcomeFromErrorCode(response, error, codes)
  const overrides = floodWait[1] === undefined ? {} : { retryAfterSeconds: Number(floodWait[1]) }
  return refused(createFailure('throttled', error ?? null, overrides))
}

/** Reads the response to a report, whose errors can have status 200, too. */
function readReport(response: HttpResponse): ReportResult {
  const error = textAt(parseJson(response.text), 'error')
  if (error === undefined || response.status >= 500) return readReportResult(response)
  const wait = /^FLOOD_WAIT(?:_(\d{1,5}))?/.exec(error)
  if (wait) {
    const retryAfterSeconds = wait[1] === undefined ? {} : { retryAfterSeconds: Number(wait[1]) }
    return { kind: 'retry', providerCode: error, ...retryAfterSeconds }
  }
  const isAccount = findFailure(codes, error)?.at === 'account'
  return { kind: isAccount ? 'retry' : 'rejected', providerCode: error }
}

/**
 * Verifies the HMAC-SHA-256 over timestamp and body, whose key is the SHA-256 of the token; then reads the
 * report.
 */
function readCallback({ headers, body }: Callback, token: string, nowMs: number): CallbackResult {
  const timestamp = headers['x-request-timestamp'] ?? ''
  const signature = Buffer.from(headers['x-request-signature'] ?? '', 'hex')
  const key = createHash('sha256').update(token).digest()
  const expected = createHmac('sha256', key).update(`${timestamp}\n${body}`).digest()
  if (!isWithinTolerance(timestamp, nowMs, toleranceSeconds) || !timingSafeEqualBytes(signature, expected))
    return forged

  const report = parseJson(body)
  const messageId = textAt(report, 'request_id')
  const status = textAt(report, 'delivery_status', 'status')
  if (messageId === undefined || status === undefined) return unreadable
  const ids = { messageId, requestId: textAt(report, 'payload') ?? null }
  if (status === 'sent') return receiptResult(ids, 'sent')
  if (status === 'delivered' || status === 'read') return receiptResult(ids, 'delivered')
  if (status === 'expired') return receiptResult(ids, 'undelivered', createFailure('unreachable', status))
  if (status === 'revoked') return receiptResult(ids, 'undelivered', createFailure('unknown', status))
  return noReceipt
}
