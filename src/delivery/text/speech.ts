import { cleanApplicationName } from './application-name.ts'
import { fallbackLocale, matchLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'

/** A provider's voice for each locale that it can speak; other locales get English. */
export type Voices<Voice> = Readonly<Record<string, Voice>> & { readonly en: Voice }

type Speech<Voice> = {
  voice: Voice
  /** Locale, from `locales.ts`, of both parts. */
  locale: string
  /** Names the application and the code, digit by digit. No full stop at the end; not escaped. */
  sentence: string
  /** The code again. */
  digits: string
}

/** The fields of a message that a call needs. */
type SpeechInput = { code: string; locale: string; applicationName: string }

/**
 * Renders the text of a call: the locale's sentence without expiry and machine-readable lines, then the code
 * again for callees who missed it. Digits are separated by comma and space, which every voice reads as a
 * pause: unseparated digits would be read as one number, and with full stops as ordinals in some languages.
 */
export function renderSpeech<Voice>(
  { code, locale, applicationName }: SpeechInput,
  voices: Voices<Voice>,
): Speech<Voice> {
  const matchedLocale = matchLocale(locale, Object.keys(voices)) ?? fallbackLocale
  const name = cleanApplicationName(applicationName).replaceAll(/[()·]/g, ' ').trim()
  const texts = localeTexts[matchedLocale]
  const template = (name === '' ? texts?.withoutName : texts?.withName) ?? '{code}'
  const digits = [...code].join(', ')
  const sentence = template
    // Brackets around a name are not spoken.
    .replaceAll(/[[【]\{app\}[\]】]/g, '{app},')
    // A replacer function and a single pass: a name cannot inject placeholders or `$` patterns.
    .replaceAll(/\{(code|app)\}/g, (_, placeholder: string) => (placeholder === 'code' ? digits : name))
  return { voice: voices[matchedLocale] ?? voices.en, locale: matchedLocale, sentence, digits }
}

/**
 * Speech as plain text. Drops ampersands, which some voices read as an entity; names contain no other SSML
 * markup.
 */
export const speechText = ({ sentence, digits }: Pick<Speech<unknown>, 'sentence' | 'digits'>) =>
  `${sentence}. ${digits}.`.replaceAll(/ *& */g, ' ')

const localeVoices = {
  en: 'en',
  ...Object.fromEntries(Object.keys(localeTexts).map((locale) => [locale, locale])),
}

/** Renders a call for a gateway whose voices are unknown, such as the operator's own. */
export function renderPlainSpeech(input: SpeechInput): { text: string; locale: string } {
  const speech = renderSpeech(input, localeVoices)
  return { text: speechText(speech), locale: speech.locale }
}
