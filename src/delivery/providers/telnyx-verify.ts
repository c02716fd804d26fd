import { createTelnyxSignatureCheck, telnyxPublicKeyField } from './telnyx-signature.ts'
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
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { amountAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { clamp } from '../kit/message-fields.ts'
import { readReportResult } from '../kit/outcome-reports.ts'
import {
  baseUrlField,
  defineKind,
  uuidPattern,
  type ProviderNeeds,
  type SettingValues,
} from '../kit/provider-kinds.ts'
import { refused, type Provider, type SendOutcome } from '../kit/provider.ts'

const supported = ['sms', 'voice', 'whatsapp'] as const

const fields = {
  apiKey: { description: 'the API key of Telnyx Mission Control', required: true, secret: true },
  verifyProfileId: {
    description: 'the id of the Verify profile',
    required: true,
    pattern: uuidPattern,
    example: '49000192-1bdb-c56f-3de7-e008ef6da16b',
  },
  channels: channelsField(supported),
  publicKey: telnyxPublicKeyField,
  baseUrl: baseUrlField('https://api.telnyx.com'),
} as const

/** https://developers.telnyx.com/development/api-fundamentals/api-errors. Those of Verify alone are not in the documents. */
const codes: CodeTable = {
  10001: 'invalid_number',
  10002: 'invalid_number',
  10005: 'sender_invalid', // there is no such Verify profile
  10006: 'sender_invalid',
  10009: 'auth_failed',
  10010: 'auth_failed',
  10011: 'throttled',
  10016: 'invalid_number',
  20100: 'no_credit',
}

/**
 * Telnyx Verify with the caller's own code. Text, language and allowed countries are those of the Verify profile. Built from the
 * API's types in telnyx-node (`b9b12ca7`, August 2026), its error list and its page on webhooks.
 */
export const telnyxVerify = defineKind({
  kind: 'telnyx-verify',
  title: 'Telnyx Verify',
  channels: supported,
  textByProvider: supported,
  fields,
  create: createTelnyxVerify,
})

function createTelnyxVerify(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const headers = { authorization: `Bearer ${settings.apiKey}` }
  const { verifyProfileId, publicKey } = settings
  const isSigned = publicKey === undefined ? undefined : createTelnyxSignatureCheck(publicKey)
  const post = (path: string, json: object, signal: AbortSignal) =>
    http.request({ method: 'POST', url: `${settings.baseUrl}/v2/${path}`, headers, json }, signal)

  return {
    async send({ to, channel, code, validitySeconds }, signal) {
      const body = {
        phone_number: to,
        verify_profile_id: verifyProfileId,
        custom_code: code,
        timeout_secs: clamp(validitySeconds, 1, 86_400),
      }
      return outcomeFromResult(
        await post(`verifications/${channel === 'voice' ? 'call' : channel}`, body, signal),
        readResponse,
      )
    },

    async reportOutcome({ messageId, outcome }, signal) {
      const status = outcome === 'verified' ? 'accepted' : 'rejected'
      const path = `verifications/${encodeURIComponent(messageId)}/actions/verify`
      return readReportResult(await post(path, { status }, signal), readCode)
    },

    async checkAccount(signal) {
      const url = `${settings.baseUrl}/v2/verify_profiles/${verifyProfileId}`
      const result = await http.request({ method: 'GET', url, headers }, signal)
      return readAccountCheck(result, 'this Verify profile', ({ text }) => {
        const profile = valueAt(parseJson(text), 'data')
        const countries = valueAt(profile, 'sms', 'whitelisted_destinations')
        const isLimited = valueAt(profile, 'daily_spend_limit_enabled') === true
        return accountReady(
          ['Name that people see', textAt(profile, 'sms', 'app_name') ?? textAt(profile, 'name') ?? '-'],
          ['Countries', Array.isArray(countries) ? countries.map(String).join(', ') : 'not restricted'],
          ['Spend limit', isLimited ? `${amountAt(profile, 'daily_spend_limit')} USD a day` : 'none'],
        )
      })
    },

    ...(isSigned && {
      readCallback(callback, nowMs) {
        if (!isSigned(callback, nowMs)) return forged
        const event = valueAt(parseJson(callback.body), 'data')
        const messageId = textAt(event, 'payload', 'id')
        const type = textAt(event, 'event_type')
        if (messageId === undefined || type === undefined) return unreadable
        const ids = { messageId, requestId: null }
        const status = textAt(event, 'payload', 'delivery_status') ?? type
        if (type === 'verify.delivered') return receiptResult(ids, 'delivered')
        // Unconfirmed: nothing says whether it arrived, so no other message is sent for it.
        if (type === 'verify.sent' || status === 'delivery_unconfirmed') return receiptResult(ids, 'sent')
        if (type !== 'verify.failed') return noReceipt
        return receiptResult(ids, 'undelivered', createFailure('unknown', status))
      },
    }),
  }
}

const readCode = ({ text }: HttpResponse) => textAt(parseJson(text), 'errors', 0, 'code')

/**
 * Reads refusals by the profile's limits, which the documents name without their codes. That of messages for spending is answered
 * 429.
 */
function readLimit(response: HttpResponse): SendOutcome | undefined {
  const error = valueAt(parseJson(response.text), 'errors', 0)
  const words = `${textAt(error, 'title') ?? ''} ${textAt(error, 'detail') ?? ''}`
  const code = readCode(response) ?? `HTTP ${response.status}`
  if (/whitelist/i.test(words)) return refused(createFailure('geo_blocked', code))
  if (/spend limit/i.test(words)) return refused(createFailure('no_credit', code))
  if (/fraud/i.test(words)) return refused(createFailure('blocked_by_carrier', code))
  return undefined
}

function readResponse(response: HttpResponse): SendOutcome {
  if (isSuccess(response)) return outcomeFromId(response, textAt(parseJson(response.text), 'data', 'id'))
  const limit = response.status < 500 ? readLimit(response) : undefined
  return limit ?? outcomeFromErrorCode(response, readCode(response), codes)
}
