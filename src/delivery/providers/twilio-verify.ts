import { accountFaulty, accountReady, readAccountCheck } from '../kit/account-check.ts'
import { channelsField } from '../kit/channels.ts'
import {
  createFailure,
  findFailure,
  outcomeFromId,
  outcomeFromResult,
  outcomeFromStatus,
  throttledFailure,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpRequest, type HttpResponse } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { basicAuth, omitNullish } from '../kit/message-fields.ts'
import { readCancelResult, readReportResult } from '../kit/outcome-reports.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { refused, type Provider, type SendOutcome } from '../kit/provider.ts'

const supported = ['sms', 'voice', 'whatsapp'] as const

const fields = {
  accountSid: {
    description: 'the Account SID of the Twilio Console',
    required: true,
    pattern: /^AC[0-9a-f]{32}$/i,
    example: 'AC followed by 32 hexadecimal digits',
  },
  authToken: { description: 'the Auth Token of the Twilio Console', secret: true },
  apiKeySid: {
    description: 'the SID of an API key to use instead of the Auth Token',
    pattern: /^SK[0-9a-f]{32}$/i,
    example: 'SK followed by 32 hexadecimal digits',
  },
  apiKeySecret: { description: 'the secret of that API key', secret: true },
  serviceSid: {
    description: 'the SID of the Verify Service, which must have Enable Custom Verification Code switched on',
    required: true,
    pattern: /^VA[0-9a-f]{32}$/i,
    example: 'VA followed by 32 hexadecimal digits',
  },
  templateSid: {
    description: "the template, if it is not the Service's default",
    pattern: /^HJ[0-9a-f]{32}$/i,
    example: 'HJ followed by 32 hexadecimal digits',
  },
  channels: channelsField(supported),
  baseUrl: baseUrlField('https://verify.twilio.com'),
} as const

/** https://www.twilio.com/docs/verify/api/error-codes; the pages of single codes name causes and statuses. */
const codes: CodeTable = {
  20003: 'auth_failed',
  20005: 'auth_failed', // account not active
  20404: 'sender_invalid', // there is no such Service, or no such locale
  20429: 'throttled',
  21211: 'invalid_number',
  60203: ['throttled', { at: 'number' }], // five messages for a verification that was not completed
  60204: 'auth_failed', // custom codes are not enabled for the Service
  60205: 'invalid_number', // a landline
  60207: 'throttled', // a rate limit of the Service
  60212: ['throttled', { at: 'number' }],
  60220: 'geo_blocked', // China needs vetting
  60223: 'sender_invalid', // the channel is disabled
  60238: 'geo_blocked', // a review of the account, or a sanctioned country
  60410: 'blocked_by_carrier', // Fraud Guard
  60412: 'blocked_by_carrier', // Fraudulent Signup Prevention
  60413: 'blocked_by_carrier', // Device Intelligence
  60436: 'invalid_number',
  60605: 'geo_blocked', // Verify Geo-Permissions
}

/**
 * Twilio Verify v2 with the caller's own code. A second message to a phone belongs to the verification that is pending: the answer
 * has the same SID. Twilio Verify has no callback per message. Built from `twilio_verify_v2.json` of twilio-oai
 * (`d50069b4`, April 2026), and the page on supported languages.
 */
export const twilioVerify = defineKind({
  kind: 'twilio-verify',
  title: 'Twilio Verify',
  channels: supported,
  textByProvider: supported,
  fields,
  oneOf: ['authToken', 'apiKeySid'],
  together: [['apiKeySid', 'apiKeySecret']],
  create: createTwilioVerify,
})

function createTwilioVerify(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const service = `${settings.baseUrl}/v2/Services/${settings.serviceSid}`
  const authorization = basicAuth(
    settings.apiKeySid ?? settings.accountSid,
    settings.apiKeySecret ?? settings.authToken ?? '',
  )
  const post = (path: string, form: Record<string, string>): HttpRequest => ({
    method: 'POST',
    url: `${service}/${path}`,
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })

  return {
    async send({ to, channel, code, locale, requestId }, signal) {
      const form = omitNullish<string>({
        To: to,
        Channel: channel === 'voice' ? 'call' : channel,
        CustomCode: code,
        TemplateSid: channel === 'whatsapp' ? undefined : settings.templateSid,
        Tags: JSON.stringify({ request: requestId }),
      })
      const result = await http.request(post('Verifications', { ...form, Locale: locale }), signal)
      // So is a locale without a text answered. Without one, Twilio chooses it by the country of the phone.
      const isUnsupported = result.kind === 'response' && readCode(result) === '20404'
      return outcomeFromResult(
        isUnsupported ? await http.request(post('Verifications', form), signal) : result,
        readResponse,
      )
    },

    // Twilio requires it with custom codes, and counts messages of verifications that never end against the phone.
    async reportOutcome({ messageId, outcome }, signal) {
      const isVerified = outcome === 'verified'
      const path = `Verifications/${encodeURIComponent(messageId)}`
      const request = post(path, { Status: isVerified ? 'approved' : 'canceled' })
      const readResult = isVerified ? readReportResult : readCancelResult
      return readResult(await http.request(request, signal), readCode)
    },

    async checkAccount(signal) {
      const result = await http.request({ method: 'GET', url: service, headers: { authorization } }, signal)
      return readAccountCheck(result, 'this Verify Service', ({ text }) => {
        const body = parseJson(text)
        if (valueAt(body, 'custom_code_enabled') !== true)
          return accountFaulty(
            'The Verify Service does not take custom codes.',
            'In the Twilio Console: Verify, Services, this Service, General, Enable Custom Verification Code.',
          )
        return accountReady(['Name that people see', textAt(body, 'friendly_name') ?? '-'])
      })
    },
  }
}

const readCode = ({ text }: HttpResponse) => textAt(parseJson(text), 'code')

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (isSuccess(response)) return outcomeFromId(response, textAt(body, 'sid'))
  const code = readCode(response)
  // Invalid parameter: only the message says which.
  if (code === '60200' && /`To`/.test(textAt(body, 'message') ?? ''))
    return refused(createFailure('invalid_number', code))
  const failure = findFailure(codes, code)
  if (failure?.class === 'throttled')
    return refused({ ...throttledFailure(response, null), ...failure, providerCode: failure.providerCode })
  if (failure) return refused(failure)
  return response.status === 400
    ? refused(createFailure('unknown', code ?? 'HTTP 400', { permanent: true }))
    : outcomeFromStatus(response, code)
}
