import { createHmac } from 'node:crypto'
import { channels as allChannels, type Channel } from '../../domain/model/request.ts'
import { forged, receiptOf, unreadable } from '../kit/callbacks.ts'
import { failureOf, readReply, readStatus, throttledBy } from '../kit/failures.ts'
import type { HttpAnswer } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/kinds.ts'
import { accepted, refused } from '../kit/provider.ts'
import type {
  Callback,
  CallbackResult,
  FailureClass,
  OutgoingMessage,
  Provider,
  SendOutcome,
} from '../kit/provider.ts'
import { isSameBytes, isWithin } from '../kit/signature-checks.ts'

/** An https address, or http on loopback; with a query where one is wanted. */
export const addressStart = String.raw`(?:https://[^\s{}@/?#\\]+|http://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?)`

export const channelsField = {
  description: 'the channels that it carries, with commas',
  default: 'sms',
  pattern: new RegExp(`^(${allChannels.join('|')})(\\s*,\\s*(${allChannels.join('|')}))*$`),
  example: 'sms, voice',
} as const

export const readChannels = (text: string): Channel[] =>
  allChannels.filter((channel) => text.split(/\s*,\s*/).includes(channel))

const fields = {
  url: {
    description: 'the address that messages are posted to',
    required: true,
    pattern: new RegExp(String.raw`^${addressStart}(?:[/?][^\s#{}\\]*)?$`),
    example: 'https://sms.example.com/otp',
  },
  secret: {
    description: 'the secret that signs both ways: whsec_ and 24 to 64 bytes in base64',
    required: true,
    secret: true,
    pattern: /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/,
  },
  channels: channelsField,
} as const

const toleranceSeconds = 300

/** What the other side may say about a message; everything else is ours to conclude. */
const reasons: readonly FailureClass[] = [
  'invalid_number',
  'unreachable',
  'opted_out',
  'geo_blocked',
  'content_blocked',
  'sender_invalid',
  'no_credit',
  'throttled',
  'unknown',
]

/**
 * A service of the operator's own: a JSON document by POST with the headers of Standard Webhooks 1.0.
 *
 * 2xx means that it took the message, and may carry `{"messageId": "…"}`; 422 with `{"reason": "invalid_number"}`, or
 * another class of failure, that it did not. Receipts come to the callback URL, signed in the same way:
 * `{"requestId" or "messageId": "…", "status": "sent" | "delivered" | "undelivered", "reason": "…"}`.
 */
export const genericHttp = defineKind({
  kind: 'http',
  title: 'HTTP, signed JSON',
  channels: allChannels,
  fields,
  create: createGenericHttp,
})

function createGenericHttp(settings: SettingValues<typeof fields>, { http, clock }: ProviderNeeds): Provider {
  const key = Buffer.from(settings.secret.slice('whsec_'.length), 'base64')
  return {
    channels: readChannels(settings.channels),

    async send(message, signal) {
      const now = clock.now()
      const body = JSON.stringify(describe(message, now))
      const id = `${message.requestId}_${message.attempt}`
      const timestamp = String(Math.floor(now / 1000))
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${sign(key, id, timestamp, body).toString('base64')}`,
      }
      const reply = await http.request({ method: 'POST', url: settings.url, headers, body }, signal)
      return readReply(reply, readAnswer)
    },

    readCallback: (callback, nowMs) => readCallback(callback, key, nowMs),
  }
}

const sign = (key: Buffer, id: string, timestamp: string, body: string) =>
  createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()

function describe(message: OutgoingMessage, now: number) {
  return {
    type: 'otp.deliver',
    timestamp: new Date(now).toISOString(),
    data: {
      requestId: message.requestId,
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

function readAnswer(answer: HttpAnswer): SendOutcome {
  const body = parseJson(answer.text)
  if (answer.status >= 200 && answer.status < 300) return accepted(textAt(body, 'messageId') ?? null)
  const reason = readReason(textAt(body, 'reason'))
  if (answer.status !== 422 || !reason) return readStatus(answer)
  return refused(reason === 'throttled' ? throttledBy(answer, reason) : failureOf(reason, reason))
}

const readReason = (word: string | undefined) => reasons.find((reason) => reason === word)

/** As with webhooks, a signature header may hold several, one for each secret while they change. */
function readCallback({ headers, body }: Callback, key: Buffer, nowMs: number): CallbackResult {
  const id = headers['webhook-id'] ?? ''
  const timestamp = headers['webhook-timestamp'] ?? ''
  const expected = sign(key, id, timestamp, body)
  const signatures = (headers['webhook-signature'] ?? '').split(' ').filter((one) => one.startsWith('v1,'))
  const isSigned = signatures.some((one) => isSameBytes(Buffer.from(one.slice(3), 'base64'), expected))
  if (id === '' || !isSigned || !isWithin(timestamp, nowMs, toleranceSeconds)) return forged

  const receipt = parseJson(body)
  const ids = {
    messageId: textAt(receipt, 'messageId') ?? null,
    requestId: textAt(receipt, 'requestId') ?? null,
  }
  const status = valueAt(receipt, 'status')
  if (ids.messageId === null && ids.requestId === null) return unreadable
  if (status === 'sent' || status === 'delivered') return receiptOf(ids, status)
  if (status !== 'undelivered') return unreadable
  const word = textAt(receipt, 'reason')
  return receiptOf(ids, 'undelivered', failureOf(readReason(word) ?? 'unknown', word ?? null))
}
