import { constants, createPublicKey, verify, type KeyObject } from 'node:crypto'
import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { forged, noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import { channelsField } from '../kit/channels.ts'
import { createFailure, outcomeFromErrorCode, outcomeFromResult, type CodeTable } from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt } from '../kit/json.ts'
import { omitNullish } from '../kit/message-fields.ts'
import { readReportResult, reportDone } from '../kit/outcome-reports.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { isRsaPublicKey } from '../kit/rsa-keys.ts'
import { accepted, refused, uncertain } from '../kit/provider.ts'
import type { Callback, CallbackResult, Provider, ReportResult, SendOutcome } from '../kit/provider.ts'

const supported = ['sms', 'whatsapp', 'telegram', 'voice', 'rcs'] as const

const fields = {
  apiToken: { description: 'the v2 API token of the Prelude Dashboard', required: true, secret: true },
  templateId: {
    description: 'the verification template, if it is not the default',
    pattern: /^[\w:.-]{1,128}$/,
    example: 'prelude:default',
  },
  senderId: { description: 'the Sender ID, which Prelude must have enabled' },
  channels: channelsField(supported),
  webhookPublicKey: {
    description:
      'the public key that signs webhooks, in PEM (Verify API, Configure, Webhooks); without it there are no receipts',
    multiline: true,
    pattern: /^\s*-----BEGIN PUBLIC KEY-----[\w+/=\s]+-----END PUBLIC KEY-----\s*$/,
    isValid: isRsaPublicKey,
    example: '"""-----BEGIN PUBLIC KEY----- …"""',
  },
  baseUrl: baseUrlField('https://api.prelude.dev'),
} as const

/** https://docs.prelude.so/introduction/errors */
const codes: CodeTable = {
  blocked: 'blocked_by_carrier',
  channel_not_enabled_in_region: 'geo_blocked',
  custom_code_not_allowed: 'auth_failed', // Prelude has not enabled custom codes for the account
  insufficient_balance: 'no_credit',
  internal: 'provider_down',
  invalid_phone_number: 'invalid_number',
}

/** Reasons of a blocked verification that are no suspicion. */
const blockReasons: CodeTable = {
  invalid_phone_line: 'invalid_number',
  invalid_phone_number: 'invalid_number',
}

/**
 * Prelude Verify v2 with the caller's own code. Prelude chooses the route, and within its verification also another channel. Built
 * from prelude-python-sdk 0.16.0 (generated from Prelude's OpenAPI document) and the pages on errors and webhooks.
 */
export const prelude = defineKind({
  kind: 'prelude',
  title: 'Prelude Verify',
  channels: supported,
  textByProvider: supported,
  fields,
  create: createPrelude,
})

function createPrelude(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const headers = { authorization: `Bearer ${settings.apiToken}` }
  const { webhookPublicKey } = settings
  const key = webhookPublicKey === undefined ? undefined : createPublicKey(webhookPublicKey)
  const post = (path: string, json: object, signal: AbortSignal) =>
    http.request({ method: 'POST', url: `${settings.baseUrl}${path}`, headers, json }, signal)
  const targetOf = (to: string) => ({ type: 'phone_number', value: to })

  return {
    async send({ to, channel, code, locale, requestId, callbackUrl }, signal) {
      const options = omitNullish<string>({
        custom_code: code,
        locale,
        method: channel === 'voice' ? 'voice' : 'message',
        preferred_channel: channel === 'voice' ? undefined : channel,
        template_id: settings.templateId,
        sender_id: settings.senderId,
        callback_url: key && callbackUrl,
      })
      const body = { target: targetOf(to), options, metadata: { correlation_id: requestId } }
      return outcomeFromResult(await post('/v2/verification', body, signal), readResponse)
    },

    // Prelude learns an outcome only from a check of the code. What was not verified, it sees expire.
    async reportOutcome({ to, code, outcome }, signal): Promise<ReportResult> {
      if (outcome !== 'verified') return reportDone
      const result = await post('/v2/verification/check', { target: targetOf(to), code }, signal)
      const status = result.kind === 'response' ? textAt(parseJson(result.text), 'status') : undefined
      if (status !== undefined && status !== 'success') return { kind: 'rejected', providerCode: status }
      return readReportResult(result, readCode)
    },

    async checkAccount(signal) {
      const url = `${settings.baseUrl}/v2/verification/management/sender-id`
      const result = await http.request({ method: 'GET', url, headers }, signal)
      return readAccountCheck(result, 'the account', () =>
        accountReady(['Custom codes', 'not known until the first message: ask Prelude to enable them']),
      )
    },

    ...(key && { readCallback: (callback: Callback) => readCallback(callback, key) }),
  }
}

const readCode = ({ text }: HttpResponse) => textAt(parseJson(text), 'code')

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) return outcomeFromErrorCode(response, readCode(response), codes)
  const status = textAt(body, 'status')
  if (status === 'blocked') {
    const reason = textAt(body, 'reason') ?? status
    const known = blockReasons[reason]
    return refused(createFailure(typeof known === 'string' ? known : 'blocked_by_carrier', reason))
  }
  const id = textAt(body, 'id')
  if (status === undefined || id === undefined) return uncertain(`HTTP ${response.status}`)
  const via = textAt(body, 'channels', 0)
  return { ...accepted(id), ...(via !== undefined && { via }) }
}

/** Verifies `rsassa-pss-sha256=…` over the body, then reads the event. The signature covers no timestamp. */
function readCallback({ headers, body }: Callback, key: KeyObject): CallbackResult {
  const signature = /^rsassa-pss-sha256=([\w-]+)=*$/.exec(headers['x-webhook-signature'] ?? '')?.[1] ?? ''
  const padding = constants.RSA_PKCS1_PSS_PADDING
  const saltLength = constants.RSA_PSS_SALTLEN_AUTO
  if (!verify('sha256', Buffer.from(body), { key, padding, saltLength }, Buffer.from(signature, 'base64url')))
    return forged
  const event = parseJson(body)
  const type = textAt(event, 'type')
  if (type === undefined) return unreadable
  if (type !== 'verify.delivery_status') return noReceipt
  const ids = {
    messageId: textAt(event, 'payload', 'verification_id') ?? null,
    requestId: textAt(event, 'payload', 'metadata', 'correlation_id') ?? null,
  }
  if (ids.messageId === null && ids.requestId === null) return unreadable
  switch (textAt(event, 'payload', 'status')) {
    case 'submitted':
    case 'in_transit':
      return receiptResult(ids, 'sent')
    case 'delivered':
    case 'read':
      return receiptResult(ids, 'delivered')
    // Prelude tries other routes itself, so that another provider need not send as well.
    default:
      return noReceipt
  }
}
