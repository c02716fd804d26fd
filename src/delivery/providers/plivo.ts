import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { createHmac } from 'node:crypto'
import {
  callbackUrlFor,
  forged,
  parseForm,
  noReceipt,
  receiptResult,
  requestIdFromUrl,
  unreadable,
  withCharge,
} from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromId,
  outcomeFromResult,
  outcomeFromStatus,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { amountAt, parseJson, textAt } from '../kit/json.ts'
import {
  baseUrlField,
  defineKind,
  uuidPattern,
  type ProviderNeeds,
  type SettingValues,
} from '../kit/provider-kinds.ts'
import { basicAuth, clamp, stripPlus, omitNullish } from '../kit/message-fields.ts'
import { refused, type Callback, type Provider, type Receipt } from '../kit/provider.ts'
import { timingSafeEqualBytes } from '../kit/signature-checks.ts'

const fields = {
  authId: {
    description: 'the Auth ID of the Plivo Console',
    required: true,
    pattern: /^\w+$/,
    example: 'MA followed by 18 letters and digits',
  },
  authToken: { description: 'the Auth Token of the Plivo Console', required: true, secret: true },
  from: { description: 'the number without its plus sign, or the sender name' },
  powerpackUuid: {
    description: 'the Powerpack that chooses the sender',
    pattern: uuidPattern,
    example: '86bbb125-97bb-4d72-89fd-81d5c515b015',
  },
  dltEntityId: { description: 'the DLT entity id, for India' },
  dltTemplateId: { description: 'the DLT template id, for India' },
  baseUrl: baseUrlField('https://api.plivo.com'),
} as const

/**
 * https://www.plivo.com/docs/messaging/troubleshooting/error-codes. Codes from 60 on, except 200, were not
 * observed on a live account; 1000 is an unknown error.
 */
const codes: CodeTable = {
  10: 'content_blocked',
  20: ['unreachable', { at: 'route' }],
  30: 'content_blocked',
  40: 'sender_invalid',
  50: 'invalid_number',
  60: ['unreachable', { at: 'route' }],
  70: ['unreachable', { permanent: true }],
  80: 'unreachable',
  90: ['unreachable', { permanent: true, at: 'route' }],
  100: 'content_blocked',
  110: ['unknown', { permanent: true }],
  200: 'opted_out',
  201: 'sender_invalid', // a toll-free number of the US, to Canada
  300: 'provider_down',
  420: 'unreachable',
  450: 'geo_blocked',
  900: 'no_credit',
  910: 'auth_failed', // the account is disabled
}

/**
 * Plivo's Message API, version 1. The signature of receipts covers a nonce but no timestamp, and in version 2
 * only the URL: one leaked receipt lets others be forged, so the callback URL must stay secret.
 */
export const plivo = defineKind({
  kind: 'plivo',
  title: 'Plivo',
  channels: ['sms'],
  fields,
  oneOf: ['from', 'powerpackUuid'],
  create: createPlivo,
})

function createPlivo(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  // Without the trailing slash the API responds with a redirect.
  const url = `${settings.baseUrl}/v1/Account/${settings.authId}/Message/`
  const headers = { authorization: basicAuth(settings.authId, settings.authToken) }

  return {
    async send(message, signal) {
      const callbackUrl = callbackUrlFor(message)
      const json = omitNullish<string | number>({
        src: settings.from,
        powerpack_uuid: settings.powerpackUuid,
        dst: stripPlus(message.to),
        text: message.text,
        url: callbackUrl,
        method: callbackUrl === null ? null : 'POST',
        // Keeps the code out of Plivo's console.
        log: 'false',
        message_expiry: clamp(message.validitySeconds, 5, 10_800),
        dlt_entity_id: settings.dltEntityId,
        dlt_template_id: settings.dltTemplateId,
      })
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    async checkAccount(signal) {
      const account = `${settings.baseUrl}/v1/Account/${settings.authId}/`
      const result = await http.request({ method: 'GET', url: account, headers }, signal)
      return readAccountCheck(result, 'this account', ({ text }) => {
        const body = parseJson(text)
        return accountReady(
          ['Account', textAt(body, 'name') ?? '-'],
          ['Credit', `${amountAt(body, 'cash_credits')} USD`],
        )
      })
    },

    readCallback(callback) {
      if (!isSigned(callback, settings.authToken)) return forged
      const form = parseForm(callback)
      const status = form.get('Status')
      const messageId = form.get('MessageUUID')
      if (status === null || messageId === null) return unreadable
      const receipt = readStatus(status, form, { messageId, requestId: requestIdFromUrl(callback) })
      // For all parts, and without a currency: Plivo bills in US dollars.
      return withCharge(receipt, form.get('TotalAmount'), 'USD')
    },
  }
}

function readStatus(status: string, form: URLSearchParams, ids: Pick<Receipt, 'messageId' | 'requestId'>) {
  if (status === 'delivered' || status === 'read') return receiptResult(ids, 'delivered')
  if (status === 'sent') return receiptResult(ids, 'sent')
  if (status !== 'undelivered' && status !== 'failed' && status !== 'rejected') return noReceipt
  const code = form.get('ErrorCode') ?? status
  return receiptResult(ids, 'undelivered', findFailure(codes, code) ?? createFailure('unknown', code))
}

/** Errors are sentences without a code, so only the status counts. */
function readResponse(response: HttpResponse) {
  if (isSuccess(response)) return outcomeFromId(response, textAt(parseJson(response.text), 'message_uuid', 0))
  if (response.status !== 400) return outcomeFromStatus(response)
  return refused(createFailure('unknown', 'HTTP 400', { permanent: true }))
}

/**
 * Version 2 is documented for messages (https://www.plivo.com/docs/messaging/concepts/signature-validation):
 * the URL without its query, and the nonce. If version 3 is present, only it counts, because it also covers
 * the query and the form. While an account rotates its token, a header lists two signatures.
 */
function isSigned(callback: Callback, authToken: string): boolean {
  const { url, headers } = callback
  if (!URL.canParse(url)) return false
  const version = headers['x-plivo-signature-v3'] === undefined ? 'v2' : 'v3'
  const nonce = headers[`x-plivo-signature-${version}-nonce`]
  if (nonce === undefined) return false
  const { origin, pathname } = new URL(url)
  const signedText = version === 'v2' ? `${origin}${pathname}${nonce}` : `${signedTextV3(callback)}.${nonce}`
  const expected = createHmac('sha256', authToken).update(signedText).digest()
  const signatures = (headers[`x-plivo-signature-${version}`] ?? '').split(',')
  return signatures.some((signature) => timingSafeEqualBytes(Buffer.from(signature, 'base64'), expected))
}

/** Text that version 3 signs: the URL with sorted query parameters, then the sorted form fields. */
function signedTextV3({ method, url, body }: Callback): string {
  const { origin, pathname, searchParams } = new URL(url)
  const query = sortEntries(searchParams).map(([name, value]) => `${name}=${value}`)
  const form = method === 'GET' ? [] : sortEntries(new URLSearchParams(body))
  const search = query.length > 0 || form.length > 0 ? `?${query.join('&')}` : ''
  const separator = query.length > 0 && form.length > 0 ? '.' : ''
  return `${origin}${pathname}${search}${separator}${form.flat().join('')}`
}

const sortEntries = (entries: Iterable<[string, string]>) =>
  [...entries].toSorted(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
