import { createHash, createHmac } from 'node:crypto'
import { forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import { outcomeFromId, outcomeFromResult, outcomeFromStatus } from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import {
  baseUrlField,
  defineKind,
  uuidPattern,
  type ProviderNeeds,
  type SettingValues,
} from '../kit/provider-kinds.ts'
import { readUndelivered } from './messagebird.ts'
import type { Callback, CallbackResult, Provider, SendOutcome } from '../kit/provider.ts'
import { timingSafeEqualBytes, isWithinTolerance } from '../kit/signature-checks.ts'
import { hourMs, secondMs } from '../../shared/durations.ts'

const fields = {
  accessKey: {
    description: 'an access key with the role Application Developer',
    required: true,
    secret: true,
  },
  workspaceId: {
    description: 'the id of the workspace',
    required: true,
    pattern: uuidPattern,
    example: '4ed3027d-8762-44a0-aa3f-c393717413a4',
  },
  channelId: {
    description: 'the id of the installed SMS channel',
    required: true,
    pattern: uuidPattern,
    example: '4ed3027d-8762-44a0-aa3f-c393717413a4',
  },
  signingKey: {
    description:
      'the signing key of a webhook subscription to sms.outbound; without it there are no receipts',
    secret: true,
  },
  baseUrl: baseUrlField('https://api.bird.com'),
} as const

/**
 * Bird retries a callback for eight hours and keeps the time of the event, so the tolerance must exceed that.
 * Replays are harmless: handling a receipt is idempotent.
 */
const toleranceSeconds = (9 * hourMs) / secondMs

/**
 * SMS through a channel of Bird, by its Channels API. It has no field for the message lifetime or a callback URL: receipts
 * need a webhook subscription, created at Bird, to our callback URL.
 */
export const bird = defineKind({
  kind: 'bird',
  title: 'Bird',
  channels: ['sms'],
  fields,
  create: createBird,
})

function createBird(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const { baseUrl, workspaceId, channelId, accessKey, signingKey } = settings
  const url = `${baseUrl}/workspaces/${workspaceId}/channels/${channelId}/messages`
  return {
    async send(message, signal) {
      const json = {
        receiver: { contacts: [{ identifierKey: 'phonenumber', identifierValue: message.to }] },
        body: { type: 'text', text: { text: message.text } },
        reference: message.requestId,
      }
      const headers = { authorization: `AccessKey ${accessKey}` }
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    ...(signingKey !== undefined && {
      readCallback: (callback: Callback, nowMs: number) => readCallback(callback, signingKey, nowMs),
    }),
  }
}

/** 202 is the documented status of an accepted message. For errors only the status is relied on. */
function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) return outcomeFromStatus(response, textAt(body, 'code'))
  return outcomeFromId(response, textAt(body, 'id'))
}

function readCallback(callback: Callback, signingKey: string, nowMs: number): CallbackResult {
  if (!isSigned(callback, signingKey, nowMs)) return forged
  const event = parseJson(callback.body)
  const payload = valueAt(event, 'payload')
  const status = textAt(payload, 'status')
  const messageId = textAt(payload, 'id')
  if (status === undefined || messageId === undefined) return unreadable
  if (textAt(event, 'event') !== 'sms.outbound') return noReceipt
  const ids = { messageId, requestId: textAt(payload, 'reference') ?? null }
  if (status === 'sent' || status === 'delivered') return receiptResult(ids, status)
  if (status !== 'sending_failed' && status !== 'delivery_failed' && status !== 'rejected') return noReceipt
  const code = textAt(payload, 'failure', 'code') ?? null
  // Billing refused the message before it was sent, for which there is no word in `details`.
  const isUnpaid = textAt(payload, 'failure', 'source', 'name') === 'accounting'
  return readUndelivered(ids, textAt(payload, 'details') ?? '', code, isUnpaid ? 'no_credit' : 'unknown')
}

/** HMAC-SHA-256 over timestamp, URL and the raw SHA-256 of the body, separated by line feeds. */
function isSigned({ headers, url, body }: Callback, signingKey: string, nowMs: number): boolean {
  const timestamp = headers['messagebird-request-timestamp'] ?? ''
  const signature = Buffer.from(headers['messagebird-signature'] ?? '', 'base64')
  const expected = createHmac('sha256', signingKey)
    .update(`${timestamp}\n${url}\n`)
    .update(createHash('sha256').update(body).digest())
    .digest()
  return isWithinTolerance(timestamp, nowMs, toleranceSeconds) && timingSafeEqualBytes(signature, expected)
}
