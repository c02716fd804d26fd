import { channels as allChannels } from '../../domain/model/request.ts'
import { loopbackHostPattern } from '../../shared/loopback.ts'
import { computeSignature, signatureHeaders } from '../../shared/webhook-signature.ts'
import { channelsField } from '../kit/channels.ts'
import { forged, receiptResult, unreadable } from '../kit/callbacks.ts'
import { createFailure, outcomeFromResult, outcomeFromStatus, throttledFailure } from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { accepted, refused } from '../kit/provider.ts'
import type {
  Callback,
  CallbackResult,
  FailureClass,
  OutgoingMessage,
  Provider,
  SendOutcome,
} from '../kit/provider.ts'
import { timingSafeEqualBytes, isWithinTolerance } from '../kit/signature-checks.ts'

/** Pattern of the origin of a URL: https, or http on loopback. */
export const urlOriginPattern = String.raw`(?:https://[^\s{}@/?#\\]+|http://${loopbackHostPattern}(?::\d+)?)`

const fields = {
  url: {
    description: 'the URL that messages are posted to',
    required: true,
    pattern: new RegExp(String.raw`^${urlOriginPattern}(?:[/?][^\s#{}\\]*)?$`),
    example: 'https://sms.example.com/otp',
  },
  secret: {
    description: 'the secret that signs messages and receipts: whsec_ and 24 to 64 bytes in base64',
    required: true,
    secret: true,
    pattern: /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/,
  },
  channels: channelsField(),
} as const

const toleranceSeconds = 300

/** Failure classes that the service may report; otpd derives the others itself. */
const acceptedReasons: readonly FailureClass[] = [
  'invalid_number',
  'unreachable',
  'opted_out',
  'geo_blocked',
  'content_blocked',
  'blocked_by_carrier',
  'sender_invalid',
  'no_credit',
  'throttled',
  'unknown',
]

/**
 * The operator's own HTTP service: posts a JSON document, signed as in Standard Webhooks 1.0.
 *
 * The service accepts a message with 2xx, optionally with `{"messageId": "…"}`, and refuses it with 422 and
 * `{"reason": "invalid_number"}` or another failure class. It posts receipts to the callback URL, signed in
 * the same way: `{"requestId" or "messageId": "…", "status": "sent" | "delivered" | "undelivered", "reason":
 * "…"}`.
 */
export const genericHttp = defineKind({
  kind: 'http',
  title: 'HTTP, signed JSON',
  channels: allChannels,
  fields,
  create: createGenericHttp,
})

function createGenericHttp(settings: SettingValues<typeof fields>, { http, clock }: ProviderNeeds): Provider {
  return {
    async send(message, signal) {
      const now = clock.now()
      const body = JSON.stringify(toPayload(message, now))
      const id = `${message.requestId}_${message.messageNumber}_${message.attempt}`
      const headers = {
        'content-type': 'application/json',
        ...signatureHeaders(settings.secret, { id, body }, now),
        ...(message.traceparent !== undefined && { traceparent: message.traceparent }),
      }
      const result = await http.request({ method: 'POST', url: settings.url, headers, body }, signal)
      return outcomeFromResult(result, readResponse)
    },

    readCallback: (callback, nowMs) => readCallback(callback, settings.secret, nowMs),
  }
}

function toPayload(message: OutgoingMessage, now: number) {
  return {
    type: 'otp.deliver',
    timestamp: new Date(now).toISOString(),
    data: {
      requestId: message.requestId,
      messageNumber: message.messageNumber,
      attempt: message.attempt,
      channel: message.channel,
      phone: message.to,
      country: message.country,
      text: message.text,
      code: message.code,
      locale: message.locale,
      applicationName: message.applicationName,
      validitySeconds: message.validitySeconds,
      callbackUrl: message.callbackUrl,
    },
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (isSuccess(response)) return accepted(textAt(body, 'messageId') ?? null)
  const reason = readReason(textAt(body, 'reason'))
  if (response.status !== 422 || !reason) return outcomeFromStatus(response)
  return refused(reason === 'throttled' ? throttledFailure(response, reason) : createFailure(reason, reason))
}

const readReason = (text: string | undefined) => acceptedReasons.find((reason) => reason === text)

/** As with webhooks, the signature header may list several signatures while a secret is rotated. */
function readCallback({ headers, body }: Callback, secret: string, nowMs: number): CallbackResult {
  const id = headers['webhook-id'] ?? ''
  const timestamp = headers['webhook-timestamp'] ?? ''
  const expected = computeSignature(secret, { id, timestamp, body })
  const signatures = (headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
  const isSigned = signatures.some((signature) =>
    timingSafeEqualBytes(Buffer.from(signature.slice(3), 'base64'), expected),
  )
  if (id === '' || !isSigned || !isWithinTolerance(timestamp, nowMs, toleranceSeconds)) return forged

  const receipt = parseJson(body)
  const ids = {
    messageId: textAt(receipt, 'messageId') ?? null,
    requestId: textAt(receipt, 'requestId') ?? null,
  }
  const status = valueAt(receipt, 'status')
  if (ids.messageId === null && ids.requestId === null) return unreadable
  if (status === 'sent' || status === 'delivered') return receiptResult(ids, status)
  if (status !== 'undelivered') return unreadable
  const reason = textAt(receipt, 'reason')
  return receiptResult(ids, 'undelivered', createFailure(readReason(reason) ?? 'unknown', reason ?? null))
}
