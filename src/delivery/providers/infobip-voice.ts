import { clamp, stripPlus, omitNullish } from '../kit/message-fields.ts'
import type { OutgoingMessage } from '../kit/provider.ts'
import { renderSpeech, speechText, type Voices } from '../text/speech.ts'

/** Hangs up before most voicemails answer. */
const ringSecondsMax = 25

/** Infobip's language codes; each has a default voice. */
const languages = {
  en: 'en',
  es: 'es',
  pt: 'pt-pt',
  'pt-BR': 'pt-br',
  fr: 'fr',
  de: 'de',
  it: 'it',
  nl: 'nl',
  sv: 'sv',
  da: 'da',
  nb: 'no',
  fi: 'fi',
  pl: 'pl',
  cs: 'cs',
  sk: 'sk',
  hu: 'hu',
  ro: 'ro',
  el: 'el',
  tr: 'tr',
  ru: 'ru',
  uk: 'uk',
  ar: 'ar',
  he: 'he',
  hi: 'hi',
  bn: 'bn',
  id: 'id',
  ms: 'ms',
  vi: 'vi',
  th: 'th',
  ja: 'ja',
  ko: 'ko',
  'zh-CN': 'zh-cn',
  'zh-TW': 'zh-tw',
} as const satisfies Voices<string>

/**
 * Builds one message of `POST /tts/3/advanced`. `machineDetection` keeps the code out of voicemails, which
 * others may hear; it was not tested on a live account.
 */
export function callFields(message: OutgoingMessage, from: string | undefined) {
  const speech = renderSpeech(message, languages)
  return omitNullish<unknown>({
    from: from === undefined ? undefined : stripPlus(from),
    destinations: [{ to: stripPlus(message.to) }],
    text: speechText(speech),
    language: speech.voice,
    machineDetection: 'hangup',
    ringTimeout: clamp(message.validitySeconds, 5, ringSecondsMax),
    // In minutes.
    validityPeriod: clamp(message.validitySeconds / 60, 1, 2_880),
    notifyUrl: message.callbackUrl,
    notifyContentType: message.callbackUrl === null ? undefined : 'application/json',
    callbackData: message.requestId,
  })
}
