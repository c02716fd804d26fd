import { createFailure } from '../kit/failures.ts'
import { receiptResult } from '../kit/callbacks.ts'
import { stripPlus } from '../kit/message-fields.ts'
import type { CallbackResult, OutgoingMessage, Receipt } from '../kit/provider.ts'
import { renderSpeech, speechText, type Voices } from '../text/speech.ts'

/** MessageBird's language codes (https://developers.messagebird.com/api/voice-messaging). */
const languages = {
  en: 'en-us',
  es: 'es-es',
  pt: 'pt-pt',
  'pt-BR': 'pt-br',
  fr: 'fr-fr',
  de: 'de-de',
  it: 'it-it',
  nl: 'nl-nl',
  sv: 'sv-se',
  da: 'da-dk',
  nb: 'nb-no',
  pl: 'pl-pl',
  ro: 'ro-ro',
  el: 'el-gr',
  tr: 'tr-tr',
  ru: 'ru-ru',
  id: 'id-id',
  ms: 'ms-my',
  vi: 'vi-vn',
  th: 'th-th',
  ja: 'ja-jp',
  ko: 'ko-kr',
  'zh-CN': 'zh-cn',
} as const satisfies Voices<string>

/** Fields of `POST /voicemessages`. It has no lifetime: the call is made at once. */
export function callFields(message: OutgoingMessage, originator: string | undefined) {
  const speech = renderSpeech(message, languages)
  return {
    originator: originator === undefined ? undefined : stripPlus(originator),
    recipients: [stripPlus(message.to)],
    body: speechText(speech),
    language: speech.voice,
    voice: 'female',
    // Others may listen to a voicemail.
    ifMachine: 'hangup',
    reference: message.requestId,
  }
}

/**
 * Reads the status of a call; undefined for a status that calls do not have. That callbacks of calls arrive
 * and are signed like those of SMS was not verified on a live account.
 */
export function readCallStatus(
  ids: Pick<Receipt, 'messageId' | 'requestId'>,
  status: string,
): CallbackResult | undefined {
  if (status === 'calling') return receiptResult(ids, 'sent')
  if (status === 'answered') return receiptResult(ids, 'delivered')
  if (status !== 'busy' && status !== 'machine' && status !== 'failed') return undefined
  return receiptResult(ids, 'undelivered', createFailure('unreachable', status))
}
