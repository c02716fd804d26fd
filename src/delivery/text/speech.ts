import { cleanApplicationName } from './application-name.ts'
import { lastLocale, matchLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'
import type { OutgoingMessage } from '../kit/provider.ts'

/** The voice of a provider for each locale that it can read; a locale without one hears English. */
export type Voices<Voice> = Readonly<Record<string, Voice>> & { readonly en: Voice }

export type Spoken<Voice> = {
  voice: Voice
  /** Of `locales.ts`; the language of both parts. */
  locale: string
  /** Names the application and the code, digit by digit. Without a full stop, not escaped. */
  sentence: string
  /** The code once more. */
  digits: string
}

type Words = Pick<OutgoingMessage, 'code' | 'locale' | 'applicationName'>

/**
 * What a call says: the locale's own sentence without the minutes, which nobody notes down, and without the lines for
 * machines, then the code again for whoever was not yet listening. A comma and a space between the digits is what every
 * voice reads as a pause; together they would be a number, and with full stops ordinals in some languages.
 */
export function speak<Voice>({ code, locale, applicationName }: Words, voices: Voices<Voice>): Spoken<Voice> {
  const found = matchLocale(locale, Object.keys(voices)) ?? lastLocale
  const name = cleanApplicationName(applicationName).replaceAll(/[()·]/g, ' ').trim()
  const texts = localeTexts[found]
  const template = (name === '' ? texts?.plain : texts?.lead) ?? '{code}'
  const digits = [...code].join(', ')
  const sentence = template
    // Brackets around a name are for the eye.
    .replaceAll(/[[【]\{app\}[\]】]/g, '{app},')
    // A function, and one pass: nothing that a name holds is a placeholder or a pattern of `replace`.
    .replaceAll(/\{(code|app)\}/g, (_, placeholder: string) => (placeholder === 'code' ? digits : name))
  return { voice: voices[found] ?? voices.en, locale: found, sentence, digits }
}

/** As plain text. Some voices take an ampersand for the beginning of an entity; no other mark of SSML is in a name. */
export const spokenText = ({ sentence, digits }: Pick<Spoken<unknown>, 'sentence' | 'digits'>) =>
  `${sentence}. ${digits}.`.replaceAll(/ *& */g, ' ')

const everyLocale = { en: 'en', ...Object.fromEntries(Object.keys(localeTexts).map((one) => [one, one])) }

/** What a call says by a gateway whose voices nobody here knows. */
export function speakPlainly(words: Words): Pick<OutgoingMessage, 'text' | 'locale'> {
  const spoken = speak(words, everyLocale)
  return { text: spokenText(spoken), locale: spoken.locale }
}
