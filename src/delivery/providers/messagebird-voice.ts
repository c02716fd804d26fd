import { failureOf } from '../kit/failures.ts'
import { receiptOf } from '../kit/callbacks.ts'
import { digitsOf } from '../kit/message-fields.ts'
import type { CallbackResult, OutgoingMessage, Receipt } from '../kit/provider.ts'
import { speak, spokenText, type Voices } from '../text/speech.ts'

/** MessageBird's names of languages, https://developers.messagebird.com/api/voice-messaging. */
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

/** The fields of `POST /voicemessages`. It takes no validity: the call is made at once. */
export function callFields(message: OutgoingMessage, originator: string | undefined) {
  const spoken = speak(message, languages)
  return {
    originator: originator === undefined ? undefined : digitsOf(originator),
    recipients: [digitsOf(message.to)],
    body: spokenText(spoken),
    language: spoken.voice,
    voice: 'female',
    // A code on a mailbox is for whoever can hear it.
    ifMachine: 'hangup',
    reference: message.requestId,
  }
}

/**
 * What a call's status says; undefined for those of other messages. That their callbacks come and are signed like those
 * of SMS was not seen on a live account.
 */
export function readCallStatus(
  ids: Pick<Receipt, 'messageId' | 'requestId'>,
  status: string,
): CallbackResult | undefined {
  if (status === 'calling') return receiptOf(ids, 'sent')
  if (status === 'answered') return receiptOf(ids, 'delivered')
  if (status !== 'busy' && status !== 'machine' && status !== 'failed') return undefined
  return receiptOf(ids, 'undelivered', failureOf('unreachable', status))
}
