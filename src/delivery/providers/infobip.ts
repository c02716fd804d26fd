import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { noReceipt, readCharge, unreadable } from '../kit/callbacks.ts'
import { createFailure, outcomeFromResult, outcomeFromStatus } from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { amountAt, listAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { openStatuses, readFailure, statusGroups } from './infobip-status.ts'
import { callFields } from './infobip-voice.ts'
import { readReportResult, reportDone } from '../kit/outcome-reports.ts'
import { clamp, stripPlus } from '../kit/message-fields.ts'
import {
  accepted,
  refused,
  uncertain,
  type OutgoingMessage,
  type Provider,
  type Receipt,
  type SendOutcome,
} from '../kit/provider.ts'

const fields = {
  baseUrl: {
    description: 'the base URL of your account',
    required: true,
    url: 'base',
    example: 'https://abc123.api.infobip.com',
  },
  apiKey: {
    description: 'an API key with the scope sms:message:send, and that of voice messages for voice',
    required: true,
    secret: true,
  },
  from: { description: 'the number or the sender name', required: true },
  voiceFrom: {
    description: 'the number that calls, for voice',
    pattern: /^\+?\d{5,15}$/,
    example: '+15005550006',
  },
  rcsFrom: { description: 'the RCS sender, for RCS', pattern: /^[\w .-]{1,100}$/, example: 'Acme' },
  dltEntityId: { description: 'the DLT principal entity id, for India' },
  dltTemplateId: { description: 'the DLT content template id, for India' },
} as const

/** Names the kind of conversion, as in infobip-api-python-client 6.0.0, which is generated from Infobip's OpenAPI documents. */
const conversionTracking = { useConversionTracking: true, conversionTrackingName: 'ONE_TIME_PIN' }

/**
 * Infobip's SMS and voice message APIs, both in version 3. An HTTP 200 may carry a rejection. Receipts are
 * not signed: the secret in the callback URL is their only authentication.
 */
export const infobip = defineKind({
  kind: 'infobip',
  title: 'Infobip',
  channels: ['sms', 'voice', 'rcs'],
  channelSettings: { voice: 'voiceFrom', rcs: 'rcsFrom' },
  fields,
  create: createInfobip,
})

function createInfobip(settings: SettingValues<typeof fields>, { http, feedback }: ProviderNeeds): Provider {
  const headers = { authorization: `App ${settings.apiKey}`, accept: 'application/json' }
  const { dltEntityId, dltTemplateId } = settings
  const indiaDlt = { principalEntityId: dltEntityId, contentTemplateId: dltTemplateId }

  const textFields = (message: OutgoingMessage) => ({
    sender: settings.from,
    destinations: [{ to: stripPlus(message.to) }],
    content: { text: message.text },
    options: {
      validityPeriod: { amount: clamp(message.validitySeconds, 1, 172_800), timeUnit: 'SECONDS' },
      ...(dltEntityId !== undefined && { regional: { indiaDlt } }),
    },
    webhooks: {
      ...(message.callbackUrl !== null && { delivery: { url: message.callbackUrl } }),
      contentType: 'application/json',
      callbackData: message.requestId,
    },
  })

  /** Text over RCS, by the Messages API; infobip-api-python-client 6.0.0 has its types. */
  const rcsFields = (message: OutgoingMessage) => {
    const { sender: _, destinations, options, webhooks } = textFields(message)
    const { validityPeriod } = options
    const content = { body: { type: 'TEXT', text: message.text } }
    return {
      channel: 'RCS',
      sender: settings.rcsFrom,
      destinations,
      content,
      options: { validityPeriod },
      webhooks,
    }
  }

  function requestFor(message: OutgoingMessage): { path: string; fields: object } {
    if (message.channel === 'rcs') return { path: '/messages-api/1/messages', fields: rcsFields(message) }
    return message.channel === 'voice'
      ? { path: '/tts/3/advanced', fields: callFields(message, settings.voiceFrom) }
      : { path: '/sms/3/messages', fields: textFields(message) }
  }

  return {
    async send(message, signal) {
      const { path, fields } = requestFor(message)
      const url = `${settings.baseUrl}${path}`
      const isTracked = feedback && message.channel === 'sms'
      const json = { messages: [fields], ...(isTracked && { options: { conversionTracking } }) }
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    // "Log end tag": the message converted. There is no call for those that did not.
    async reportOutcome({ messageId, outcome, channel }, signal) {
      if (outcome !== 'verified' || channel !== 'sms') return reportDone
      const url = `${settings.baseUrl}/ct/1/log/end/${encodeURIComponent(messageId)}`
      return readReportResult(await http.request({ method: 'POST', url, headers, json: {} }, signal))
    },

    async checkAccount(signal) {
      const url = `${settings.baseUrl}/account/1/balance`
      const result = await http.request({ method: 'GET', url, headers }, signal)
      return readAccountCheck(result, 'the account', ({ text }) => {
        const body = parseJson(text)
        return accountReady([
          'Balance',
          `${amountAt(body, 'balance')} ${textAt(body, 'currency') ?? ''}`.trim(),
        ])
      })
    },

    readCallback({ body }) {
      const results = valueAt(parseJson(body), 'results')
      if (!Array.isArray(results)) return unreadable
      const receipts = results.flatMap((result) => readReceipt(result) ?? [])
      return receipts.length > 0 ? { kind: 'receipts', receipts } : noReceipt
    },
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) return readError(response, body)
  const message = valueAt(body, 'messages', 0)
  const group = textAt(message, 'status', 'groupId')
  // Not a documented response: the message may have been accepted.
  if (group === undefined) return uncertain(`HTTP ${response.status}`)
  if (group === statusGroups.pending || group === statusGroups.delivered) {
    return accepted(textAt(message, 'messageId') ?? null)
  }
  return refused(readFailure(message))
}

/**
 * Maps an error response. SMS errors name the invalid field in `violations`, voice errors in
 * `validationErrors`; neither was observed on a live account.
 */
function readError(response: HttpResponse, body: unknown): SendOutcome {
  const exception = valueAt(body, 'requestError', 'serviceException')
  const code = textAt(body, 'errorCode') ?? textAt(exception, 'messageId')
  if (response.status !== 400) return outcomeFromStatus(response, code)
  const properties = [
    ...listAt(body, 'violations').map((violation) => textAt(violation, 'property') ?? ''),
    ...Object.keys(valueAt(exception, 'validationErrors') ?? {}),
  ]
  if (properties.some((name) => /\bdestinations\b/.test(name)))
    return refused(createFailure('invalid_number', code ?? null))
  if (properties.some((name) => /\b(sender|from)$/.test(name)))
    return refused(createFailure('sender_invalid', code ?? null))
  return refused(createFailure('unknown', code ?? 'HTTP 400', { permanent: true }))
}

function readReceipt(result: unknown): Receipt | undefined {
  const messageId = textAt(result, 'messageId') ?? null
  const requestId = textAt(result, 'callbackData') ?? null
  if (messageId === null && requestId === null) return undefined
  const charge = readCharge(readPrice(result), textAt(result, 'price', 'currency'))
  const ids = { messageId, requestId, ...(charge && { charge }) }
  if (openStatuses.has(textAt(result, 'status', 'id') ?? '')) return { ...ids, status: 'sent', failure: null }
  switch (textAt(result, 'status', 'groupId')) {
    case statusGroups.pending:
      return { ...ids, status: 'sent', failure: null }
    case statusGroups.delivered:
      // On an answering machine, the call hangs up before it says the code.
      return /MACHINE/.test(textAt(result, 'error', 'name') ?? '')
        ? { ...ids, status: 'undelivered', failure: readFailure(result) }
        : { ...ids, status: 'delivered', failure: null }
    case statusGroups.undeliverable:
    case statusGroups.expired:
    case statusGroups.rejected:
      return { ...ids, status: 'undelivered', failure: readFailure(result) }
    default:
      return undefined
  }
}

/** Price of all parts of a message: `pricePerMessage` is that of one. */
function readPrice(result: unknown): unknown {
  const price = valueAt(result, 'price', 'pricePerMessage')
  const parts = valueAt(result, 'smsCount') ?? valueAt(result, 'messageCount')
  return typeof price === 'number' && typeof parts === 'number' ? price * Math.max(1, parts) : price
}
