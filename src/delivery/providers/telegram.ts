import { createHash, createHmac } from 'node:crypto'
import { forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import { createFailure, outcomeFromErrorCode, outcomeFromResult, type CodeTable } from '../kit/failures.ts'
import type { HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { clamp, omitNullish } from '../kit/message-fields.ts'
import { accepted, refused, uncertain } from '../kit/provider.ts'
import type { Callback, CallbackResult, Provider, SendOutcome } from '../kit/provider.ts'
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
const toleranceSeconds = 300

/** Error names observed in responses; the documentation lists none. */
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
  const url = `${settings.baseUrl}/sendVerificationMessage`
  return {
    channels: ['telegram'],

    async send({ to, code, requestId, validitySeconds, callbackUrl }, signal) {
      // Telegram's shortest lifetime would outlast the code.
      if (validitySeconds < ttlSecondsMin) return refused(createFailure('unknown', 'TTL_INVALID'))
      const isUrlShortEnough = callbackUrl !== null && callbackUrl.length <= callbackUrlLengthMax
      const body = omitNullish<unknown>({
        phone_number: to,
        code,
        ttl: clamp(validitySeconds, ttlSecondsMin, ttlSecondsMax),
        payload: requestId,
        sender_username: settings.senderUsername?.replace(/^@/, ''),
        callback_url: isUrlShortEnough ? callbackUrl : null,
      })
      const headers = { authorization: `Bearer ${settings.token}`, 'content-type': 'application/json' }
      const request = { method: 'POST', url, headers, body: JSON.stringify(body) } as const
      return outcomeFromResult(await http.request(request, signal), readResponse)
    },

    readCallback: (callback, nowMs) => readCallback(callback, settings.token, nowMs),
  }
}

/** Errors can have any status, including 200. */
function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  const id = textAt(body, 'result', 'request_id')
  const isSuccess = response.status >= 200 && response.status < 300
  if (isSuccess && valueAt(body, 'ok') === true && id !== undefined) return accepted(id)
  const error = textAt(body, 'error')
  if (isSuccess && error === undefined) return uncertain(`HTTP ${response.status}`)
  // An earlier attempt arrived after all, ours or another sender's.
  if (error === 'MESSAGE_ALREADY_SENT') return uncertain(error)
  const floodWait = /^FLOOD_WAIT(?:_(\d{1,6}))?/.exec(error ?? '')
  if (!floodWait || response.status >= 500) return outcomeFromErrorCode(response, error, codes)
  const overrides = floodWait[1] === undefined ? {} : { retryAfterSeconds: Number(floodWait[1]) }
  return refused(createFailure('throttled', error ?? null, overrides))
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
