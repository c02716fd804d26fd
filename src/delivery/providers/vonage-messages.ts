import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { createVonageAuthorization, vonageApplicationFields } from './vonage-authorization.ts'
import { isVonageSigned } from './vonage-signature.ts'
import { forged, noReceipt, receiptResult, unreadable, withCharge } from '../kit/callbacks.ts'
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
import { amountAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { basicAuth, clamp, stripPlus, omitNullish } from '../kit/message-fields.ts'
import { refused, type Failure, type Provider, type Receipt } from '../kit/provider.ts'

const fields = {
  apiKey: { description: 'the API key of the Vonage Dashboard', required: true },
  apiSecret: { description: 'the API secret of the Vonage Dashboard', required: true, secret: true },
  from: { description: 'the number without its plus sign, or the sender name', required: true },
  rcsFrom: { description: 'the RCS agent, for RCS', pattern: /^[\w .-]{1,100}$/, example: 'Acme' },
  entityId: { description: 'the DLT entity id, for India' },
  contentId: { description: 'the DLT content id, for India' },
  ...vonageApplicationFields,
  signatureSecret: {
    description: 'the signature secret of the account; if set, unsigned receipts are refused',
    secret: true,
  },
  baseUrl: baseUrlField('https://api.nexmo.com'),
} as const

/**
 * Error codes of responses and receipts (https://developer.vonage.com/api-errors/messages). Codes from 1170
 * on are mapped like the err-codes of the SMS API; they were not observed on a live account.
 */
const codes: CodeTable = {
  1000: 'throttled',
  1010: ['unknown', { permanent: true }],
  1020: ['unknown', { permanent: true }],
  1030: 'provider_down',
  1040: 'invalid_number',
  1050: 'opted_out',
  1060: 'auth_failed',
  1070: 'no_credit',
  1080: 'auth_failed',
  1090: ['unknown', { permanent: true }],
  1100: 'provider_down',
  1120: 'sender_invalid',
  1130: ['unknown', { permanent: true }],
  1140: 'auth_failed', // not enabled for this account
  1160: 'sender_invalid', // a trial account may only write to listed numbers
  1170: 'invalid_number',
  1180: 'unreachable',
  1190: ['unreachable', { permanent: true }],
  1200: 'unreachable',
  1210: 'content_blocked',
  1220: 'unreachable',
  1230: ['unreachable', { at: 'route' }],
  1240: 'invalid_number',
  1250: ['unreachable', { permanent: true, at: 'route' }],
  1260: ['unreachable', { at: 'route' }],
}

/** Vonage's Messages API, version 1. Receipts carry a JWT that covers the body. */
export const vonageMessages = defineKind({
  kind: 'vonage-messages',
  title: 'Vonage Messages',
  channels: ['sms', 'rcs'],
  channelSettings: { rcs: 'rcsFrom' },
  fields,
  together: [['applicationId', 'privateKey']],
  create: createVonageMessages,
})

function createVonageMessages(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const { http } = needs
  const url = `${settings.baseUrl}/v1/messages`
  const authorize = createVonageAuthorization(settings, needs)
  const dltParameters = omitNullish<string>({ entity_id: settings.entityId, content_id: settings.contentId })

  return {
    async send(message, signal) {
      const isRcs = message.channel === 'rcs'
      const json = {
        message_type: 'text',
        channel: isRcs ? 'rcs' : 'sms',
        to: stripPlus(message.to),
        from: isRcs ? settings.rcsFrom : settings.from,
        text: message.text,
        ttl: clamp(message.validitySeconds, 20, 604_800),
        client_ref: message.requestId,
        ...(message.callbackUrl !== null && { webhook_url: message.callbackUrl, webhook_version: 'v1' }),
        ...(!isRcs && Object.keys(dltParameters).length > 0 && { sms: dltParameters }),
      }
      const headers = { authorization: await authorize(), accept: 'application/json' }
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    async checkAccount(signal) {
      // The balance has another host than messages.
      const { baseUrl } = settings
      const host = baseUrl === fields.baseUrl.default ? 'https://rest.nexmo.com' : baseUrl
      const headers = { authorization: basicAuth(settings.apiKey, settings.apiSecret) }
      const request = { method: 'GET', url: `${host}/account/get-balance`, headers } as const
      return readAccountCheck(await http.request(request, signal), 'the account', ({ text }) =>
        accountReady(['Balance', `${amountAt(parseJson(text), 'value')} EUR`]),
      )
    },

    readCallback(callback, nowMs) {
      const { signatureSecret } = settings
      if (signatureSecret !== undefined && !isVonageSigned(callback, signatureSecret, nowMs)) return forged
      const body = parseJson(callback.body)
      const status = textAt(body, 'status')
      const messageId = textAt(body, 'message_uuid')
      if (status === undefined || messageId === undefined) return unreadable
      const receipt = readStatus(status, body, { messageId, requestId: textAt(body, 'client_ref') ?? null })
      return withCharge(receipt, valueAt(body, 'usage', 'price'), textAt(body, 'usage', 'currency'))
    },
  }
}

function readStatus(status: string, body: unknown, ids: Pick<Receipt, 'messageId' | 'requestId'>) {
  if (status === 'delivered' || status === 'read') return receiptResult(ids, 'delivered')
  if (status === 'submitted') return receiptResult(ids, 'sent')
  if (status !== 'rejected' && status !== 'undeliverable') return noReceipt
  const failure = readFailure(valueAt(body, 'error')) ?? createFailure('unknown', status)
  return receiptResult(ids, 'undelivered', failure)
}

function readResponse(response: HttpResponse) {
  const body = parseJson(response.text)
  if (isSuccess(response)) return outcomeFromId(response, textAt(body, 'message_uuid'))
  const failure = readFailure(body)
  if (response.status === 429) return refused(throttledFailure(response, failure?.providerCode ?? null))
  if (failure && failure.class !== 'unknown') return refused(failure)
  return response.status === 422
    ? refused({ ...(failure ?? createFailure('unknown', 'HTTP 422')), permanent: true })
    : outcomeFromStatus(response, failure?.providerCode)
}

/** Reads the code from a problem document (RFC 7807): the end of `type`, or the `title` in receipts. */
function readFailure(problem: unknown): Failure | undefined {
  const code = /#(\d{3,5})$/.exec(textAt(problem, 'type') ?? '')?.[1] ?? textAt(problem, 'title')
  if (code === undefined || !/^\d{3,5}$/.test(code)) return undefined
  return findFailure(codes, code) ?? createFailure('unknown', code)
}
