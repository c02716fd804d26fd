import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { createHash } from 'node:crypto'
import { jwtVerify } from 'jose'
import { parseForm, forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromResult,
  outcomeFromStatus,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { amountAt, parseJson, textAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { clamp, stripPlus, omitNullish } from '../kit/message-fields.ts'
import { callFields, readCallStatus } from './messagebird-voice.ts'
import { accepted, refused, uncertain } from '../kit/provider.ts'
import type {
  Callback,
  CallbackResult,
  FailureClass,
  OutgoingMessage,
  Provider,
  Receipt,
  SendOutcome,
} from '../kit/provider.ts'
import { timingSafeEqualBytes } from '../kit/signature-checks.ts'

const fields = {
  accessKey: { description: 'a live access key (Developers, API access)', required: true, secret: true },
  originator: {
    description: 'the sender: a number or up to 11 letters and digits',
    required: true,
    pattern: /^(\+?\d{3,17}|[A-Za-z0-9 ]{1,11})$/,
    example: 'ACME',
  },
  voiceOriginator: {
    description: 'the number that calls, for voice',
    pattern: /^\+?\d{5,15}$/,
    example: '+31612345678',
  },
  signingKey: {
    description: 'the key that signs callbacks (Developers, API settings); without it there are no receipts',
    secret: true,
  },
  baseUrl: baseUrlField('https://rest.messagebird.com'),
} as const

/** Error codes. Only 2, 9, 10 and 20 are documented; the others were observed in the field. */
const codes: CodeTable = {
  2: 'auth_failed',
  25: 'no_credit',
  98: 'provider_down',
  99: 'provider_down',
}

/** Failures by the error's `parameter`: the codes only say "invalid" or "missing". */
const parameterFailures: CodeTable = {
  recipient: 'invalid_number',
  recipients: 'invalid_number',
  originator: 'sender_invalid',
  access_key: 'auth_failed',
}

/**
 * Failure reasons in receipts of MessageBird and Bird
 * (https://docs.bird.com/api/channels-api/message-status-and-interactions/message-failure-sources). Not all of them were
 * observed on a live account.
 */
const receiptReasons: CodeTable = {
  incorrect_number: 'invalid_number',
  unknown_subscriber: ['unreachable', { permanent: true }],
  unavailable_subscriber: 'unreachable',
  expired: 'unreachable',
  opted_out: 'opted_out',
  insufficient_balance: 'no_credit',
  carrier_rejected: 'content_blocked',
  capacity_limit_reached: 'throttled',
  received_network_error: 'unknown',
  generic_delivery_failure: 'unknown',
}

/** The network took the message and never reported on it: the code may have arrived, so a second message needs another reason. */
const unreported = 'dlr_not_received'

/**
 * Maps the reason of a message that did not arrive, written with spaces or underscores.
 *
 * @param code the network's error code, for the log
 * @param fallback the failure for a reason that is not known
 */
export function readUndelivered(
  ids: Pick<Receipt, 'messageId' | 'requestId'>,
  reason: string,
  code: string | null,
  fallback: FailureClass = 'unknown',
): CallbackResult {
  const name = reason.trim().toLowerCase().replaceAll(' ', '_')
  if (name === unreported) return receiptResult(ids, 'sent')
  const failure = findFailure(receiptReasons, name) ?? createFailure(fallback, null)
  return receiptResult(ids, 'undelivered', { ...failure, providerCode: code ?? failure.providerCode })
}

/** SMS and calls through MessageBird's API, the one before its rename to Bird. */
export const messagebird = defineKind({
  kind: 'messagebird',
  title: 'MessageBird',
  channels: ['sms', 'voice'],
  channelSettings: { voice: 'voiceOriginator' },
  fields,
  create: createMessagebird,
})

function createMessagebird(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const { signingKey, voiceOriginator } = settings
  const textFields = (message: OutgoingMessage) => ({
    type: 'sms',
    originator: settings.originator,
    recipients: [stripPlus(message.to)],
    body: message.text,
    datacoding: 'auto',
    validity: clamp(message.validitySeconds, 1, 604_800),
    reference: message.requestId,
  })
  return {
    async send(message, signal) {
      const isCall = message.channel === 'voice'
      const json = omitNullish<unknown>({
        ...(isCall ? callFields(message, voiceOriginator) : textFields(message)),
        reportUrl: signingKey && message.callbackUrl,
      })
      const url = `${settings.baseUrl}/${isCall ? 'voicemessages' : 'messages'}`
      const headers = { authorization: `AccessKey ${settings.accessKey}`, accept: 'application/json' }
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    async checkAccount(signal) {
      const url = `${settings.baseUrl}/balance`
      const headers = { authorization: `AccessKey ${settings.accessKey}` }
      const result = await http.request({ method: 'GET', url, headers }, signal)
      return readAccountCheck(result, 'the account', ({ text }) => {
        const body = parseJson(text)
        return accountReady(['Balance', `${amountAt(body, 'amount')} ${textAt(body, 'type') ?? ''}`.trim()])
      })
    },

    ...(signingKey !== undefined && {
      readCallback: (callback: Callback, nowMs: number) => readCallback(callback, signingKey, nowMs),
    }),
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) return readError(response, body)
  const id = textAt(body, 'id')
  if (id === undefined) return uncertain(`HTTP ${response.status}`)
  const status = textAt(body, 'recipients', 'items', 0, 'status')
  return status === 'delivery_failed' || status === 'failed'
    ? refused(createFailure('unknown', status))
    : accepted(id)
}

function readError(response: HttpResponse, body: unknown): SendOutcome {
  const code = textAt(body, 'errors', 0, 'code')
  const isDecidedByStatus = response.status === 408 || response.status === 429 || response.status >= 500
  const parameterFailure = findFailure(parameterFailures, textAt(body, 'errors', 0, 'parameter'))
  const failure = findFailure(codes, code) ?? parameterFailure
  if (isDecidedByStatus || !failure) return outcomeFromStatus(response, code)
  return refused({ ...failure, providerCode: code ?? failure.providerCode })
}

async function readCallback(callback: Callback, signingKey: string, nowMs: number): Promise<CallbackResult> {
  if (!(await isSigned(callback, signingKey, nowMs))) return forged
  const form = parseForm(callback)
  const status = form.get('status')
  const ids = { messageId: form.get('id'), requestId: form.get('reference') }
  if (status === null || (ids.messageId === null && ids.requestId === null)) return unreadable
  if (status === 'sent' || status === 'delivered') return receiptResult(ids, status)
  const callResult = readCallStatus(ids, status)
  if (callResult) return callResult
  // The phone is off or unreachable; the network keeps trying.
  if (status === 'buffered') return receiptResult(ids, 'sent')
  const code = form.get('statusErrorCode')
  const reason = form.get('statusReason')
  if (status === 'expired') return readUndelivered(ids, reason ?? status, code, 'unreachable')
  return status === 'delivery_failed' ? readUndelivered(ids, reason ?? '', code) : noReceipt
}

/** Checks the JWT (RFC 7519), valid for a minute, with the SHA-256 of the URL and of a non-empty body. */
async function isSigned({ url, headers, body }: Callback, key: string, nowMs: number): Promise<boolean> {
  try {
    const { payload } = await jwtVerify(headers['messagebird-signature-jwt'] ?? '', Buffer.from(key), {
      issuer: 'MessageBird',
      algorithms: ['HS256', 'HS384', 'HS512'],
      requiredClaims: ['nbf', 'exp', 'url_hash'],
      clockTolerance: 5,
      currentDate: new Date(nowMs),
    })
    if (!matchesHash(payload['url_hash'], url)) return false
    return body === '' && payload['payload_hash'] === undefined
      ? true
      : matchesHash(payload['payload_hash'], body)
  } catch {
    return false
  }
}

const matchesHash = (claim: unknown, text: string) =>
  typeof claim === 'string' &&
  timingSafeEqualBytes(Buffer.from(claim, 'hex'), createHash('sha256').update(text).digest())
