import { createVonageAuthorization, vonageApplicationFields } from './vonage-authorization.ts'
import { isVonageSigned } from './vonage-signature.ts'
import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import { channelsField } from '../kit/channels.ts'
import {
  createFailure,
  outcomeFromErrorCode,
  outcomeFromId,
  outcomeFromResult,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpRequest, type HttpResponse } from '../kit/http-client.ts'
import { listAt, parseJson, textAt } from '../kit/json.ts'
import { clamp, omitNullish, stripPlus } from '../kit/message-fields.ts'
import { readCancelResult, readReportResult } from '../kit/outcome-reports.ts'
import {
  baseUrlField,
  defineKind,
  uuidPattern,
  type ProviderNeeds,
  type SettingValues,
} from '../kit/provider-kinds.ts'
import { refused } from '../kit/provider.ts'
import type { CallbackResult, OutgoingMessage, Provider, SendOutcome } from '../kit/provider.ts'
import { matchLocale } from '../text/locale-choice.ts'

const supported = ['sms', 'voice', 'whatsapp', 'rcs'] as const

const fields = {
  apiKey: { description: 'the API key of the Vonage Dashboard', required: true },
  apiSecret: { description: 'the API secret of the Vonage Dashboard', required: true, secret: true },
  brand: {
    description: 'the name that people see in the message',
    required: true,
    pattern: /^[^/{}[\]]{1,16}$/,
    example: 'Acme',
  },
  from: { description: 'the SMS sender, if it is not the brand' },
  whatsappFrom: {
    description: 'the number of your WhatsApp Business Account without its plus sign, for WhatsApp',
    pattern: /^\d{5,15}$/,
    example: '447700900000',
  },
  rcsFrom: { description: 'the RCS sender, for RCS', pattern: /^[\w .-]{1,100}$/, example: 'Acme' },
  templateId: {
    description: 'the template, if it is not the default',
    pattern: uuidPattern,
    example: '4ed3027d-8762-44a0-aa3f-c393717413a4',
  },
  channels: channelsField(supported),
  ...vonageApplicationFields,
  signatureSecret: {
    description: 'the signature secret of the account; without it there are no receipts',
    secret: true,
  },
  baseUrl: baseUrlField('https://api.nexmo.com'),
} as const

/**
 * Locales with a text for messages and calls, as BCP 47 tags, of the API's types and of the page on languages. Vonage
 * chooses another one by the country of the phone.
 */
const locales = [
  ...'en-US en-GB es-ES es-MX es-US it-IT fr-FR de-DE ru-RU hi-IN pt-BR pt-PT id-ID'.split(' '),
  ...'ar-XA cs-CZ da-DK en-AU en-IN nl-NL zh-CN'.split(' '),
]

const templateChannels: ReadonlySet<string> = new Set(['sms', 'voice'])

/** Ends of `type` in a problem document (https://developer.vonage.com/en/api-errors). */
const codes: CodeTable = {
  conflict: ['throttled', { at: 'number' }],
  'low-balance': 'no_credit',
  unauthorized: 'auth_failed',
  forbidden: 'auth_failed',
  throttled: 'throttled',
  'rate-limit': 'throttled',
}

/**
 * Vonage Verify v2 with the caller's own code. A phone has one request at a time: another is a conflict, so the request that is
 * pending is canceled first. Built from the types and data sets of vonage-node-sdk (`babd2d8c`, July 2026) and the pages on fraud,
 * webhooks, authentication, languages and errors.
 */
export const vonageVerify = defineKind({
  kind: 'vonage-verify',
  title: 'Vonage Verify',
  channels: supported,
  channelSettings: { whatsapp: 'whatsappFrom', rcs: 'rcsFrom' },
  textByProvider: supported,
  fields,
  together: [['applicationId', 'privateKey']],
  create: createVonageVerify,
})

function createVonageVerify(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const { http } = needs
  const { signatureSecret } = settings
  const senders = {
    sms: settings.from,
    whatsapp: settings.whatsappFrom,
    rcs: settings.rcsFrom,
    voice: null,
    telegram: null,
  }
  const url = `${settings.baseUrl}/v2/verify`
  const authorize = createVonageAuthorization(settings, needs)
  const headers = async () => ({ authorization: await authorize() })
  const cancel = async (id: string): Promise<HttpRequest> => ({
    method: 'DELETE',
    url: `${url}/${encodeURIComponent(id)}`,
    headers: await headers(),
  })
  const workflow = ({ channel, to }: OutgoingMessage) => ({
    channel,
    to: stripPlus(to),
    ...omitNullish({ from: channel === 'silent' ? null : senders[channel] }),
  })

  return {
    async send(message, signal) {
      const json = omitNullish<unknown>({
        brand: settings.brand,
        code: message.code,
        locale: matchLocale(message.locale, locales)?.toLowerCase(),
        channel_timeout: clamp(message.validitySeconds, 60, 900),
        client_ref: message.requestId,
        template_id: templateChannels.has(message.channel) ? settings.templateId : undefined,
        workflow: [workflow(message)],
      })
      const request = { method: 'POST', url, headers: await headers(), json } as const
      const result = await http.request(request, signal)
      const pending = result.kind === 'response' ? readConflict(result) : undefined
      if (pending === undefined) return outcomeFromResult(result, readResponse)
      const canceled = await http.request(await cancel(pending), signal)
      // Vonage does not let every request be canceled at once: then another provider sends the message.
      const isFree = canceled.kind === 'response' && canceled.status < 300
      return outcomeFromResult(isFree ? await http.request(request, signal) : result, readResponse)
    },

    // Vonage asks for the check with every custom code: without it, its fraud filter takes the traffic for unverified.
    async reportOutcome({ messageId, code, outcome }, signal) {
      if (outcome !== 'verified')
        return readCancelResult(await http.request(await cancel(messageId), signal), readCode)
      const request = {
        method: 'POST',
        url: `${url}/${encodeURIComponent(messageId)}`,
        headers: await headers(),
        json: { code },
      } as const
      return readReportResult(await http.request(request, signal), readCode)
    },

    async checkAccount(signal) {
      const request = { method: 'GET', url: `${url}/templates`, headers: await headers() } as const
      const result = await http.request(request, signal)
      return readAccountCheck(result, 'the account', () =>
        accountReady(['Name that people see', settings.brand]),
      )
    },

    ...(signatureSecret !== undefined && {
      readCallback(callback, nowMs) {
        return isVonageSigned(callback, signatureSecret, nowMs)
          ? readStatus(parseJson(callback.body))
          : forged
      },
    }),
  }
}

const readCode = ({ text }: HttpResponse) => /#([\w-]+)$/.exec(textAt(parseJson(text), 'type') ?? '')?.[1]

/** Reads the id of the request that is pending for the phone; undefined if the response is no conflict. */
const readConflict = (response: HttpResponse) =>
  readCode(response) === 'conflict' ? textAt(parseJson(response.text), 'request_id') : undefined

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (isSuccess(response)) return outcomeFromId(response, textAt(body, 'request_id'))
  const code = readCode(response)
  const invalidNames = listAt(body, 'invalid_parameters').map((one) => textAt(one, 'name') ?? '')
  if (invalidNames.some((name) => /\bto$/.test(name)))
    return refused(createFailure('invalid_number', code ?? `HTTP ${response.status}`))
  if (response.status === 422 && code !== 'conflict')
    return refused(createFailure('unknown', code ?? 'HTTP 422', { permanent: true }))
  return outcomeFromErrorCode(response, code, codes)
}

/** Reads a status webhook. It tells how a request went on, not that the message arrived. */
function readStatus(body: unknown): CallbackResult {
  const messageId = textAt(body, 'request_id')
  const status = textAt(body, 'status')
  if (messageId === undefined || status === undefined) return unreadable
  const ids = { messageId, requestId: textAt(body, 'client_ref') ?? null }
  if (status === 'blocked')
    return receiptResult(ids, 'undelivered', createFailure('blocked_by_carrier', status))
  // The number was not valid for the channel.
  if (status === 'failed') return receiptResult(ids, 'undelivered', createFailure('unreachable', status))
  return noReceipt
}
