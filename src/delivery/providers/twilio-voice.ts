import { noReceipt, receiptResult, unreadable } from '../kit/callbacks.ts'
import { createFailure, findFailure, type CodeTable } from '../kit/failures.ts'
import { clamp } from '../kit/message-fields.ts'
import { escapers } from '../kit/placeholders.ts'
import type { CallbackResult, OutgoingMessage } from '../kit/provider.ts'
import { renderSpeech, type Voices } from '../text/speech.ts'

/** Hangs up before most voicemails answer, because others may listen to a voicemail. */
const ringSecondsMax = 25

/**
 * Voices and languages for `<Say>`, as Twilio's own library lists them; the language must be the voice's.
 * Voices are Amazon's, or Google's if Twilio supports none of Amazon's. They were not tested on a live
 * account.
 */
const voices = {
  en: ['Polly.Joanna', 'en-US'],
  es: ['Polly.Lucia', 'es-ES'],
  pt: ['Polly.Ines', 'pt-PT'],
  'pt-BR': ['Polly.Camila', 'pt-BR'],
  fr: ['Polly.Lea', 'fr-FR'],
  de: ['Polly.Vicki', 'de-DE'],
  it: ['Polly.Bianca', 'it-IT'],
  nl: ['Polly.Lotte', 'nl-NL'],
  sv: ['Polly.Astrid', 'sv-SE'],
  da: ['Polly.Naja', 'da-DK'],
  nb: ['Polly.Liv', 'nb-NO'],
  fi: ['Polly.Suvi-Neural', 'fi-FI'],
  pl: ['Polly.Ewa', 'pl-PL'],
  cs: ['Google.cs-CZ-Standard-B', 'cs-CZ'],
  sk: ['Google.sk-SK-Standard-B', 'sk-SK'],
  hu: ['Google.hu-HU-Standard-B', 'hu-HU'],
  ro: ['Polly.Carmen', 'ro-RO'],
  el: ['Google.el-GR-Standard-B', 'el-GR'],
  tr: ['Polly.Filiz', 'tr-TR'],
  ru: ['Polly.Tatyana', 'ru-RU'],
  uk: ['Google.uk-UA-Standard-A', 'uk-UA'],
  ar: ['Polly.Zeina', 'arb'],
  he: ['Google.he-IL-Standard-A', 'he-IL'],
  hi: ['Google.hi-IN-Standard-A', 'hi-IN'],
  bn: ['Google.bn-IN-Standard-A', 'bn-IN'],
  id: ['Google.id-ID-Standard-A', 'id-ID'],
  ms: ['Google.ms-MY-Standard-A', 'ms-MY'],
  vi: ['Google.vi-VN-Standard-A', 'vi-VN'],
  th: ['Google.th-TH-Standard-A', 'th-TH'],
  ja: ['Polly.Mizuki', 'ja-JP'],
  ko: ['Polly.Seoyeon', 'ko-KR'],
  'zh-CN': ['Polly.Zhiyu', 'cmn-CN'],
  'zh-TW': ['Google.cmn-TW-Standard-A', 'cmn-TW'],
} as const satisfies Voices<readonly [voice: string, language: string]>

/**
 * Errors of calls only (https://www.twilio.com/docs/api/errors). Except 21210 and 21215, they were not
 * observed on a live account.
 */
export const callCodes: CodeTable = {
  10001: 'auth_failed', // account not active
  10004: 'throttled', // too many concurrent calls
  13224: 'invalid_number',
  13227: 'geo_blocked',
  21210: 'sender_invalid', // neither a number of the account nor a verified one
  21214: ['unreachable', { permanent: true }],
  21215: 'geo_blocked',
  21216: 'geo_blocked',
  21219: 'sender_invalid', // a trial account may only call verified numbers
}

/** Fields of the Calls resource. The TwiML is inline, so Twilio fetches nothing from us. */
export function callFields(message: OutgoingMessage, from: string | undefined) {
  const { voice, sentence, digits } = renderSpeech(message, voices)
  const [name, language] = voice
  const toTwiml = (text: string) =>
    `<Pause length="1"/><Say voice="${name}" language="${language}">${escapers.xml(text)}.</Say>`
  return {
    To: message.to,
    From: from,
    Twiml: `<Response>${toTwiml(sentence)}${toTwiml(digits)}</Response>`,
    Timeout: String(clamp(message.validitySeconds, 5, ringSecondsMax)),
  }
}

/** SIP responses of the carrier (RFC 3261 §21): Twilio's only explanation for a failed call. */
const sipCodes: CodeTable = {
  403: ['unreachable', { at: 'route' }],
  404: ['unreachable', { permanent: true }],
  410: ['unreachable', { permanent: true }],
  484: 'invalid_number',
  503: 'provider_down',
  604: ['unreachable', { permanent: true }],
}

/** Reads the final status of a call, reported once. Twilio does not detect answering machines here. */
export function readCallStatus(form: URLSearchParams, requestId: string | null): CallbackResult {
  const status = form.get('CallStatus')
  const messageId = form.get('CallSid')
  if (status === null || messageId === null) return unreadable
  const ids = { messageId, requestId }
  if (status === 'completed') return receiptResult(ids, 'delivered')
  if (status === 'busy' || status === 'no-answer') {
    return receiptResult(ids, 'undelivered', createFailure('unreachable', status))
  }
  if (status === 'canceled') return receiptResult(ids, 'undelivered', createFailure('unknown', status))
  if (status !== 'failed') return noReceipt
  const code = form.get('ErrorCode') ?? undefined
  const sipCode = form.get('SipResponseCode') ?? undefined
  const knownFailure = findFailure(callCodes, code) ?? findFailure(sipCodes, sipCode)
  return receiptResult(
    ids,
    'undelivered',
    knownFailure ?? createFailure('unreachable', code ?? sipCode ?? status),
  )
}
