import { accountReady, readAccountCheck } from '../kit/account-check.ts'
import { createHmac } from 'node:crypto'
import { forged, unreadable } from '../kit/callbacks.ts'
import {
  createFailure,
  findFailure,
  outcomeFromErrorCode,
  outcomeFromId,
  outcomeFromResult,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { listAt, parseJson, textAt, valueAt } from '../kit/json.ts'
import { baseUrlField, defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { stripPlus } from '../kit/message-fields.ts'
import { refused } from '../kit/provider.ts'
import type {
  Callback,
  CallbackResult,
  OutgoingMessage,
  Provider,
  Receipt,
  SendOutcome,
} from '../kit/provider.ts'
import { timingSafeEqualBytes } from '../kit/signature-checks.ts'

const fields = {
  accessToken: { description: 'a token of a system user that does not expire', required: true, secret: true },
  phoneNumberId: {
    description: 'the id of the sending phone number (not the number)',
    required: true,
    pattern: /^\d{5,20}$/,
    example: '106540352242922',
  },
  template: {
    description: 'the name of an approved template of the category authentication',
    required: true,
    pattern: /^[a-z0-9_]{1,512}$/,
    example: 'otp_code',
  },
  languages: {
    description:
      'the languages that the template is approved in, separated by commas; the first is the fallback',
    required: true,
    pattern: /^[a-z]{2,3}(_[A-Z]{2})?(\s*,\s*[a-z]{2,3}(_[A-Z]{2})?)*$/,
    example: 'en_US, nl, pt_BR',
  },
  appSecret: {
    description: 'the app secret, which signs callbacks; without it there are no receipts',
    secret: true,
    pattern: /^[0-9a-f]{32}$/,
  },
  verifyToken: {
    description: 'the verify token that you enter at Meta with the callback URL',
    secret: true,
  },
  apiVersion: {
    description: 'the version of the Graph API',
    default: 'v23.0',
    pattern: /^v\d{1,3}\.\d$/,
    example: 'v23.0',
  },
  baseUrl: baseUrlField('https://graph.facebook.com'),
} as const

/**
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes (June 2026). Codes about
 * a single phone must not count against the provider.
 */
const codes: CodeTable = {
  0: 'auth_failed',
  3: 'auth_failed',
  10: 'auth_failed',
  190: 'auth_failed', // token expired
  200: 'auth_failed',
  368: 'auth_failed', // account restricted
  131005: 'auth_failed',
  131031: 'auth_failed', // account locked
  131042: 'no_credit', // payment
  4: 'throttled',
  80007: 'throttled',
  130429: 'throttled',
  131048: 'throttled', // too much reported as spam
  131049: ['throttled', { at: 'number' }], // too many business messages to this phone
  131056: ['throttled', { at: 'number' }], // too many from this sender to this phone
  130472: 'unreachable', // part of an experiment
  131026: 'unreachable', // not on WhatsApp, or too old a version
  131021: 'invalid_number', // the recipient is the sender
  131030: 'sender_invalid', // a test number, and the phone not on its list
  131037: 'sender_invalid', // the sender's display name is not approved
  131045: 'sender_invalid', // the sender's registration
  133010: 'sender_invalid', // the sender is not registered
  130497: 'geo_blocked',
  1: 'provider_down',
  2: 'provider_down',
  131000: 'provider_down',
  131016: 'provider_down',
  131057: 'provider_down', // maintenance
  131047: 'content_blocked', // outside the window for free-form texts, which does not apply to templates
  132000: 'content_blocked', // wrong number of parameters
  132001: 'content_blocked', // no such template in this language
  132005: 'content_blocked',
  132007: 'content_blocked',
  132012: 'content_blocked',
  132015: 'content_blocked', // paused for low quality
  132016: 'content_blocked', // disabled
  33: ['unknown', { permanent: true }],
  100: ['unknown', { permanent: true }],
  131008: ['unknown', { permanent: true }],
  131009: ['unknown', { permanent: true }],
  131051: ['unknown', { permanent: true }],
}

/**
 * Authentication templates of the WhatsApp Cloud API. Meta chooses the text. The message lifetime is set in
 * the template (`message_send_ttl_seconds`), not per message.
 */
export const whatsapp = defineKind({
  kind: 'whatsapp',
  title: 'WhatsApp Cloud',
  channels: ['whatsapp'],
  textByProvider: ['whatsapp'],
  fields,
  together: [['appSecret', 'verifyToken']],
  create: createWhatsapp,
})

function createWhatsapp(settings: SettingValues<typeof fields>, { http }: ProviderNeeds): Provider {
  const { baseUrl, apiVersion, phoneNumberId, accessToken, appSecret, verifyToken } = settings
  const url = `${baseUrl}/${apiVersion}/${phoneNumberId}/messages`
  const languages = settings.languages.split(',').map((language) => language.trim())
  const headers = { authorization: `Bearer ${accessToken}` }
  return {
    async checkAccount(signal) {
      const sender = `${baseUrl}/${apiVersion}/${phoneNumberId}?fields=verified_name,display_phone_number`
      const result = await http.request({ method: 'GET', url: sender, headers }, signal)
      return readAccountCheck(result, 'this phone number id', ({ text }) => {
        const body = parseJson(text)
        return accountReady(
          ['Name that people see', textAt(body, 'verified_name') ?? '-'],
          ['Number', textAt(body, 'display_phone_number') ?? '-'],
        )
      })
    },

    async send(message, signal) {
      const json = templateMessage(message, settings.template, languages)
      const result = await http.request({ method: 'POST', url, headers, json }, signal)
      return outcomeFromResult(result, readResponse)
    },

    ...(appSecret !== undefined &&
      verifyToken !== undefined && {
        readCallback: (callback: Callback) =>
          callback.method === 'GET'
            ? answerChallenge(callback, verifyToken)
            : readCallback(callback, appSecret),
      }),
  }
}

/** Builds the message. The code appears twice: in the text and in the button that copies it. */
function templateMessage(
  { to, code, locale, requestId }: OutgoingMessage,
  name: string,
  languages: readonly string[],
) {
  const parameters = [{ type: 'text', text: code }]
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: stripPlus(to),
    type: 'template',
    template: {
      name,
      language: { code: chooseLanguage(languages, locale) },
      components: [
        { type: 'body', parameters },
        { type: 'button', sub_type: 'url', index: '0', parameters },
      ],
    },
    // Meta returns it in each status.
    biz_opaque_callback_data: requestId,
  }
}

/** Chooses the template language: same language and region, else same language, else the first. */
function chooseLanguage(languages: readonly string[], locale: string): string | undefined {
  const parts = locale.split('-')
  const language = parts[0]?.toLowerCase()
  const region = parts.slice(1).find((part) => /^[a-z]{2}$/i.test(part))
  return (
    languages.find((candidate) => candidate === `${language}_${region?.toUpperCase()}`) ??
    languages.find((candidate) => candidate.split('_')[0] === language) ??
    languages[0]
  )
}

function readResponse(response: HttpResponse): SendOutcome {
  const body = parseJson(response.text)
  if (!isSuccess(response)) {
    const code = textAt(body, 'error', 'code')
    // Meta documents status 500 also for faults of the account and the sender, such as 3 and 131045.
    const failure = response.status === 500 ? findFailure(codes, code) : undefined
    return failure ? refused(failure) : outcomeFromErrorCode(response, code, codes)
  }
  return outcomeFromId(response, textAt(body, 'messages', 0, 'id'))
}

/** Answers Meta's one-time verification of the callback URL. */
function answerChallenge({ url }: Callback, verifyToken: string): CallbackResult {
  const query = new URL(url).searchParams
  const challenge = query.get('hub.challenge') ?? ''
  const verifyTokenBytes = Buffer.from(query.get('hub.verify_token') ?? '')
  if (
    query.get('hub.mode') !== 'subscribe' ||
    !timingSafeEqualBytes(verifyTokenBytes, Buffer.from(verifyToken))
  )
    return forged
  // The challenge is echoed, so it must be harmless: word characters only.
  return /^\w{1,64}$/.test(challenge) ? { kind: 'challenge', text: challenge } : unreadable
}

/**
 * Verifies `X-Hub-Signature-256` over the body, then reads the statuses. The signature covers no timestamp,
 * so a captured receipt can be replayed but not altered.
 */
function readCallback({ headers, body }: Callback, appSecret: string): CallbackResult {
  const signature = Buffer.from((headers['x-hub-signature-256'] ?? '').replace(/^sha256=/, ''), 'hex')
  if (!timingSafeEqualBytes(signature, createHmac('sha256', appSecret).update(body).digest())) return forged
  const event = parseJson(body)
  if (!Array.isArray(valueAt(event, 'entry'))) return unreadable
  const statuses = listAt(event, 'entry')
    .flatMap((entry) => listAt(entry, 'changes'))
    .flatMap((change) => listAt(change, 'value', 'statuses'))
  return { kind: 'receipts', receipts: statuses.map(readReceipt).filter((receipt) => receipt !== undefined) }
}

function readReceipt(status: unknown): Receipt | undefined {
  const messageId = textAt(status, 'id')
  if (messageId === undefined) return undefined
  const ids = { messageId, requestId: textAt(status, 'biz_opaque_callback_data') ?? null }
  switch (textAt(status, 'status')) {
    case 'sent':
      return { ...ids, status: 'sent', failure: null }
    case 'delivered':
    case 'read':
      return { ...ids, status: 'delivered', failure: null }
    case 'failed': {
      const code = textAt(status, 'errors', 0, 'code')
      const failure = findFailure(codes, code) ?? createFailure('unknown', code ?? null)
      return { ...ids, status: 'undelivered', failure }
    }
    default:
      return undefined
  }
}
