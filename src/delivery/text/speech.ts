import { cleanApplicationName } from './application-name.ts'
import { fallbackLocale, matchLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'
import type { OutgoingMessage } from '../kit/provider.ts'

/** The voice of a provider for each locale that it can read; a locale without one hears English. */
export type Voices<Voice> = Readonly<Record<string, Voice>> & { readonly en: Voice }

export type Speech<Voice> = {
  voice: Voice
  /** Of `locales.ts`; the language of both parts. */
  locale: string
  /** Names the application and the code, digit by digit. Without a full stop, not escaped. */
  sentence: string
  /** The code once more. */
  digits: string
}

type SpeechInput = Pick<OutgoingMessage, 'code' | 'locale' | 'applicationName'>

/**
 * What a call says: the locale's own sentence without the minutes, which nobody notes down, and without the lines for
 * machines, then the code again for whoever was not yet listening. A comma and a space between the digits is what every
 * voice reads as a pause; together they would be a number, and with full stops ordinals in some languages.
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
    // Brackets around a name are for the eye.
    .replaceAll(/[[【]\{app\}[\]】]/g, '{app},')
    // A function, and one pass: nothing that a name holds is a placeholder or a pattern of `replace`.
    .replaceAll(/\{(code|app)\}/g, (_, placeholder: string) => (placeholder === 'code' ? digits : name))
  return { voice: voices[matchedLocale] ?? voices.en, locale: matchedLocale, sentence, digits }
}

/** As plain text. Some voices take an ampersand for the beginning of an entity; no other mark of SSML is in a name. */
export const speechText = ({ sentence, digits }: Pick<Speech<unknown>, 'sentence' | 'digits'>) =>
  `${sentence}. ${digits}.`.replaceAll(/ *& */g, ' ')

const localeVoices = {
  en: 'en',
  ...Object.fromEntries(Object.keys(localeTexts).map((locale) => [locale, locale])),
}

/** What a call says by a gateway whose voices nobody here knows. */
export function renderPlainSpeech(input: SpeechInput): Pick<OutgoingMessage, 'text' | 'locale'> {
  const speech = renderSpeech(input, localeVoices)
  return { text: speechText(speech), locale: speech.locale }
}
