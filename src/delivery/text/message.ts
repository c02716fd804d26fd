import type { MessageTemplates } from '../../domain/model/message-settings.ts'
import { cleanApplicationName } from './application-name.ts'
import {
  chooseLocale,
  fallbackLocale,
  parseLocale,
  likelyScript,
  type LocalePreference,
} from './locale-choice.ts'
import { localeTexts, type LocaleTexts } from './locales.ts'
import { measureSms } from './sms-segments.ts'

export type MessageInput = LocalePreference & {
  /** ASCII digits. */
  code: string
  /** As its developer wrote it; null where the application is gone. */
  applicationName: string | null
  /** At the moment of sending; at least 1. */
  minutesLeft: number
  webOtpDomain: string | null
  androidAppHash: string | null
}

export type Omission = 'minutes' | 'name'

export type Message = {
  text: string
  /** The canonical locale that it is written in. */
  locale: string
  /** What had to go so that the rest fits one part. */
  leftOut: Omission[]
}

/** Google: a message for the SMS Retriever is "no longer than 140 bytes". */
const retrieverBytesMax = 140

/**
 * Writes the text of a message.
 *
 * A part of an SMS more costs as much again, arrives less surely, and no app or page reads a code out of two. So where
 * the whole text does not fit one part, the minutes are left out, then the application's name too; marks of direction
 * go before either. Where nothing fits, the text stays whole. An operator's own text loses nothing but those marks.
 *
 * @param templates the operator's, which go before those that otpd brings
 */
export function renderMessage(input: MessageInput, templates: MessageTemplates = {}): Message {
  const locale = chooseLocale(input, [...new Set([...Object.keys(templates), ...Object.keys(localeTexts)])])
  const drafts = draftMessage(input, locale, templates)
  const fitting = drafts.find(({ text }) => fitsOnePart(text, input)) ?? drafts.findLast(isWhole)
  return { locale, text: fitting?.text ?? input.code, leftOut: fitting?.leftOut ?? [] }
}

export type Draft = Omit<Message, 'locale'>

const isWhole = ({ leftOut }: Draft) => leftOut.length === 0

/** What the message could be, from the fullest to the barest; the whole text comes with and without marks of direction. */
export function draftMessage(input: MessageInput, locale: string, templates: MessageTemplates): Draft[] {
  const name = cleanApplicationName(input.applicationName ?? '')
  const appendedLines = machineLines(input)
  const draft = (template: string, leftOut: Omission[] = []): Draft[] => {
    const variants = [true, false].map((isIsolated) =>
      fillPlaceholders(template, {
        ...input,
        name,
        isolate: isIsolated ? isolatorFor(locale) : (text) => text,
      }),
    )
    return [...new Set(variants)].map((text) => ({ text: [text, ...appendedLines].join('\n'), leftOut }))
  }

  const customTemplate = templates[locale]?.sms
  if (customTemplate !== undefined) return draft(name === '' ? removeName(customTemplate) : customTemplate)
  const texts = localeTexts[locale] ?? localeTexts[fallbackLocale]
  if (!texts) return []
  const expiry = expiryText(texts, locale, input.minutesLeft)
  const shortest = draft(texts.withoutName + texts.closing, name === '' ? ['minutes'] : ['minutes', 'name'])
  if (name === '') return [...draft(texts.withoutName + expiry), ...shortest]
  return [
    ...draft(texts.withName + expiry),
    ...draft(texts.withName + texts.closing, ['minutes']),
    ...shortest,
  ]
}

/**
 * The lines for machines, in the one order that serves both. Browsers read the last line alone, which must be
 * `@host #code` from its first character on (WICG, Origin-bound one-time codes delivered via SMS, §3.2). Google Play
 * services want the app's hash "included" anywhere (SMS Retriever API, "Construct a verification message"; before 2019
 * it had to be the end, and `<#>` the beginning). So the hash goes first, on a line of its own.
 */
function machineLines({ androidAppHash, webOtpDomain, code }: MessageInput): string[] {
  const webOtp = webOtpDomain === null ? [] : [`@${webOtpDomain} #${code}`]
  return [...(androidAppHash === null ? [] : [androidAppHash]), ...webOtp]
}

/** Google does not say how the 140 bytes are counted: they must be few enough as UTF-8 and on the air, in one part. */
function fitsOnePart(text: string, { androidAppHash }: MessageInput): boolean {
  if (measureSms(text).parts > 1) return false
  return androidAppHash === null || Buffer.byteLength(text) <= retrieverBytesMax
}

function expiryText(texts: LocaleTexts, locale: string, minutes: number) {
  let rules = pluralRules.get(locale)
  if (!rules) pluralRules.set(locale, (rules = new Intl.PluralRules(locale)))
  return texts.expiry[rules.select(minutes)] ?? texts.expiry.other
}

/** Of the locales that there are texts in. */
const pluralRules = new Map<string, Intl.PluralRules>()

type TemplateValues = {
  code: string
  name: string
  minutesLeft: number
  isolate: (text: string, isLeftToRight?: true) => string
}

function fillPlaceholders(template: string, { code, name, minutesLeft, isolate }: TemplateValues): string {
  // A function, and one pass: nothing that a name holds is a placeholder or a pattern of `replace`.
  return template.replaceAll(/\{(code|app|minutes)\}/g, (_, placeholder: string) => {
    if (placeholder === 'code') return isolate(code, true)
    return placeholder === 'app' ? isolate(name) : String(minutesLeft)
  })
}

/** A template without its name: `{app}: code {code}` → `code {code}`. */
const removeName = (template: string) =>
  template
    .replaceAll(/[[(【「]?\{app\}[\])】」]?/g, '')
    .replaceAll(/ {2,}/g, ' ')
    .replaceAll(/ (?=[.,:;!?])/g, '')
    .replaceAll(/^[\s.,:;|–—-]+/g, '')

const rightToLeftScripts = new Set(['Arab', 'Hebr', 'Syrc', 'Thaa', 'Nkoo', 'Adlm'])
const rightToLeft =
  /[\p{Script=Arab}\p{Script=Hebr}\p{Script=Syrc}\p{Script=Thaa}\p{Script=Nkoo}\p{Script=Adlm}]/u

/**
 * Keeps a value together, and what stands around it in its place, where lines run both ways (UAX #9 §2.4): the code,
 * always left to right, in a text from right to left, and a name that runs against its text.
 */
function isolatorFor(locale: string): (text: string, isLeftToRight?: true) => string {
  const parsedLocale = parseLocale(locale)
  const isTextRightToLeft = rightToLeftScripts.has((parsedLocale && likelyScript(parsedLocale)) ?? '')
  return (text, isLeftToRight) => {
    if (isLeftToRight) return isTextRightToLeft ? `\u2066${text}\u2069` : text
    return text !== '' && rightToLeft.test(text) !== isTextRightToLeft ? `\u2068${text}\u2069` : text
  }
}
