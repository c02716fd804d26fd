import { createHash, createHmac } from 'node:crypto'
import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import type { Charge } from '../../domain/model/price.ts'
import { forged, parseForm, noReceipt, readCharge, receiptResult, unreadable } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromResult,
  outcomeFromStatus,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { amountAt, listAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { basicAuth, clamp, stripPlus, fitsGsmAlphabet, omitNullish } from '../kit/message-fields.ts'
import { readReportResult } from '../kit/outcome-reports.ts'
import {
  accepted,
  refused,
  uncertain,
  type Callback,
  type Provider,
  type SendOutcome,
} from '../kit/provider.ts'
import { timingSafeEqualBytes, isWithinTolerance } from '../kit/signature-checks.ts'
import { hourMs, secondMs } from '../../shared/durations.ts'

const fields = {
  apiKey: { description: 'the API key of the Vonage Dashboard', required: true },
  apiSecret: { description: 'the API secret of the Vonage Dashboard', required: true, secret: true },
  from: { description: 'the number without its plus sign, or the sender name', required: true },
  entityId: { description: 'the DLT entity id, for India' },
  contentId: { description: 'the DLT content id, for India' },
  signatureSecret: {
    description:
      'the signature secret, if the account signs its webhooks; unsigned receipts are then refused',
    secret: true,
  },
  signatureMethod: {
    description: 'the signature method of the account',
    choices: ['md5hash', 'md5', 'sha1', 'sha256', 'sha512'],
    default: 'md5hash',
  },
  baseUrl: baseUrlField('https://rest.nexmo.com'),
} as const

/** Values of `status` in the response to a send (https://developer.vonage.com/api-errors/sms). */
const sendCodes: CodeTable = {
  1: 'throttled',
  2: ['unknown', { permanent: true }],
  3: ['unknown', { permanent: true }], // an invalid parameter, which only the text names
  4: 'auth_failed',
  5: 'provider_down',
  6: 'invalid_number',
  7: 'opted_out',
  8: 'auth_failed', // account suspended
  9: 'no_credit',
  10: 'throttled',
  11: 'auth_failed', // no access to this API
  12: ['unknown', { permanent: true }], // too long
  14: 'auth_failed',
  15: 'sender_invalid',
  22: 'sender_invalid', // network code does not match the number
  23: ['unknown', { permanent: true }], // callback URL
  29: 'sender_invalid', // a trial account may only write to listed numbers
  33: 'invalid_number', // deactivated
}

/** Values of `err-code` in a receipt. */
const receiptCodes: CodeTable = {
  1: 'unknown',
  2: 'unreachable',
  3: ['unreachable', { permanent: true }],
  4: 'opted_out', // barred by the user
  5: 'unreachable', // ported
  6: 'content_blocked',
  7: 'unreachable',
  8: ['unreachable', { at: 'route' }],
  9: 'invalid_number',
  10: 'content_blocked',
  11: ['unreachable', { permanent: true, at: 'route' }],
  12: 'unreachable',
  13: 'content_blocked', // age of the subscriber
  14: ['unreachable', { permanent: true }], // barred by the carrier
  15: 'unreachable', // the subscriber's prepaid credit
  16: 'no_credit',
  50: 'content_blocked',
  51: 'sender_invalid',
  52: 'content_blocked',
  53: 'opted_out',
  54: 'content_blocked',
}

const receiptMaxAgeSeconds = hourMs / secondMs

/** Vonage's SMS API. Responses are always HTTP 200; the body has the outcome. */
export const vonageSms = defineKind({
  kind: 'vonage-sms',
  title: 'Vonage SMS',
  channels: ['sms'],
  fields,
  create: createVonageSms,
})

function createVonageSms(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const url = `${settings.baseUrl}/sms/json`
  // The Conversion API and the balance have another host than messages.
  const apiUrl = settings.baseUrl === fields.baseUrl.default ? 'https://api.nexmo.com' : settings.baseUrl

  return {
    async send(message, signal) {
      const form = omitNullish<string>({
        api_key: settings.apiKey,
        api_secret: settings.apiSecret,
        from: settings.from,
        to: stripPlus(message.to),
        text: message.text,
        // With `text`, characters beyond the GSM alphabet would arrive as question marks.
        type: fitsGsmAlphabet(message.text) ? 'text' : 'unicode',
        ttl: String(clamp(message.validitySeconds, 20, 604_800) * 1000),
        callback: message.callbackUrl,
        'client-ref': message.requestId,
        'entity-id': settings.entityId,
        'content-id': settings.contentId,
      })
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
      const body = new URLSearchParams(form).toString()
      return outcomeFromResult(
        await http.request({ method: 'POST', url, headers, body }, signal),
        readResponse,
      )
    },

    async reportOutcome({ messageId, outcome, endedAt }, signal) {
      const query = new URLSearchParams({
        'message-id': messageId,
        delivered: String(outcome === 'verified'),
        timestamp: new Date(endedAt).toISOString().slice(0, 19).replace('T', ' '),
      })
      const headers = { authorization: basicAuth(settings.apiKey, settings.apiSecret) }
      const request = { method: 'POST', url: `${apiUrl}/conversions/sms?${query}`, headers } as const
      const result = await http.request(request, signal)
      // Vonage has not enabled the Conversion API for this account, which support does on request.
      if (result.kind === 'response' && result.status === 402)
        return { kind: 'rejected', providerCode: 'HTTP 402' }
      return readReportResult(result)
    },

    async checkAccount(signal) {
      const headers = { authorization: basicAuth(settings.apiKey, settings.apiSecret) }
      const request = { method: 'GET', url: `${settings.baseUrl}/account/get-balance`, headers } as const
      return readAccountCheck(await http.request(request, signal), 'the account', ({ text }) =>
        accountReady(['Balance', `${amountAt(parseJson(text), 'value')} EUR`]),
      )
    },

    readCallback(callback, nowMs) {
      const form = parseFields(callback)
      if (form === undefined) return unreadable
      if (settings.signatureSecret !== undefined && !isSigned(form, settings, nowMs)) return forged
      const status = form.get('status')
      const messageId = form.get('messageId')
      if (status === undefined || messageId === undefined) return unreadable
      const ids = { messageId, requestId: form.get('client-ref') ?? null }
      if (status === 'delivered') return receiptResult(ids, 'delivered')
      if (status === 'accepted' || status === 'buffered') return receiptResult(ids, 'sent')
      if (status !== 'expired' && status !== 'failed' && status !== 'rejected') return noReceipt
      const code = form.get('err-code') ?? status
      const fallback = createFailure(status === 'expired' ? 'unreachable' : 'unknown', code)
      return receiptResult(ids, 'undelivered', findFailure(receiptCodes, code) ?? fallback)
    },
  }
}

/** The response lists each part of a message. One accepted part is enough: it may arrive. */
function readResponse(response: HttpResponse): SendOutcome {
  if (!isSuccess(response)) return outcomeFromStatus(response)
  const body = parseJson(response.text)
  const [first] = sortPartsAcceptedFirst(body)
  const code = textAt(first, 'status')
  if (code === '0') return accepted(textAt(first, 'message-id') ?? null, readPartsCharge(body))
  if (code === undefined) return uncertain(`HTTP ${response.status}`)
  return refused(findFailure(sendCodes, code) ?? createFailure('unknown', code))
}

/** Vonage prices each part, in euros. Receipts have the price of one part, so that they say nothing more. */
function readPartsCharge(body: unknown): Charge | undefined {
  const charges = listAt(body, 'messages')
    .filter((part) => textAt(part, 'status') === '0')
    .map((part) => readCharge(valueAt(part, 'message-price'), 'EUR')?.amount ?? NaN)
  const amount = charges.reduce((sum, price) => sum + price, 0)
  return Number.isNaN(amount) ? undefined : { amount, currency: 'EUR' }
}

function sortPartsAcceptedFirst(body: unknown): unknown[] {
  const parts = valueAt(body, 'messages')
  if (!Array.isArray(parts)) return []
  return parts.toSorted((a, b) => Number(textAt(b, 'status') === '0') - Number(textAt(a, 'status') === '0'))
}

/** Parses the fields of a callback: a query, a form or a JSON object, depending on the account's settings. */
function parseFields(callback: Callback): Map<string, string> | undefined {
  if (callback.method === 'GET' || !callback.body.trimStart().startsWith('{'))
    return new Map(parseForm(callback))
  const body = parseJson(callback.body)
  if (typeof body !== 'object' || body === null) return undefined
  return new Map(Object.keys(body).map((name) => [name, textAt(body, name) ?? '']))
}

/** https://developer.vonage.com/en/getting-started/concepts/signing-messages */
function isSigned(
  form: ReadonlyMap<string, string>,
  { signatureSecret = '', signatureMethod }: SettingValues<typeof fields>,
  nowMs: number,
): boolean {
  const signedText = [...form]
    .filter(([name]) => name !== 'sig')
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => `&${name}=${value.replaceAll(/[&=]/g, '_')}`)
    .join('')
  const expected =
    signatureMethod === 'md5hash'
      ? createHash('md5')
          .update(signedText + signatureSecret)
          .digest()
      : createHmac(signatureMethod, signatureSecret).update(signedText).digest()
  if (!timingSafeEqualBytes(Buffer.from(form.get('sig') ?? '', 'hex'), expected)) return false
  return isWithinTolerance(form.get('timestamp') ?? '', nowMs, receiptMaxAgeSeconds)
}
