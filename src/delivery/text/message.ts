import type { LocalePreference, MessageTemplates } from '../../domain/model/message-settings.ts'
import type { MessageVariables } from '../../domain/model/message-variables.ts'
import { cleanApplicationName } from './application-name.ts'
import { chooseLocale, fallbackLocale, parseLocale, likelyScript } from './locale-choice.ts'
import { localeTexts, type LocaleTexts } from './locales.ts'
import { measureSms } from './sms-segments.ts'

export type MessageInput = LocalePreference & {
  /** ASCII digits. */
  code: string
  /** As its developer wrote it; null if the application was deleted. */
  applicationName: string | null
  /** Minutes until the code expires, at the time of sending; at least 1. */
  minutesLeft: number
  webOtpDomain: string | null
  androidAppHash: string | null
  /** Amount and payee of a payment; absent for texts that show none. */
  variables?: MessageVariables | null
}

export type Omission = 'minutes' | 'name'

export type Message = {
  text: string
  /** Canonical locale of the text. */
  locale: string
  /** Parts of the text that were omitted to fit one SMS part. */
  leftOut: Omission[]
}

/** Google limits messages for the SMS Retriever API to "no longer than 140 bytes". */
const retrieverBytesMax = 140

/**
 * Renders the text of a message, in one SMS part if possible.
 *
 * A second part doubles the price, is delivered less reliably, and apps and browsers do not read codes from
 * two parts. If the complete text exceeds one part, it loses, in this order: direction marks, the minutes,
 * the application's name. If even that is too long, the text stays complete. An operator's template only
 * loses direction marks.
 *
 * @param templates the operator's templates, which take precedence over the built-in texts
 */
export function renderMessage(input: MessageInput, templates: MessageTemplates = {}): Message {
  const available = [...new Set([...Object.keys(templates), ...Object.keys(localeTexts)])]
  return renderIn(chooseLocale(input, available), input, templates)
}

/** Renders the text of a message in a locale that has one, as `renderMessage` does. */
export function renderIn(locale: string, input: MessageInput, templates: MessageTemplates): Message {
  let whole: Draft | undefined
  // One after the other, since the first usually fits.
  for (const draft of draftMessage(input, locale, templates)) {
    if (fitsOnePart(draft.text, input)) return { locale, ...draft }
    if (draft.leftOut.length === 0) whole = draft
  }
  return { locale, text: whole?.text ?? input.code, leftOut: [] }
}

type Draft = Omit<Message, 'locale'>

/** Yields the candidate texts of a message, from complete to shortest, each with and without direction marks. */
export function* draftMessage(
  input: MessageInput,
  locale: string,
  templates: MessageTemplates,
): Generator<Draft, void> {
  const name = cleanApplicationName(input.applicationName ?? '')
  const appendedLines = machineLines(input)
  const isolated = { ...input, name, isolate: isolatorFor(locale) }
  function* draft(template: string, leftOut: Omission[] = []): Generator<Draft, void> {
    const toDraft = (text: string) => ({ text: [text, ...appendedLines].join('\n'), leftOut })
    const text = fillPlaceholders(template, isolated)
    yield toDraft(text)
    const unmarked = fillPlaceholders(template, { ...isolated, isolate: (value) => value })
    if (unmarked !== text) yield toDraft(unmarked)
  }

  const customTemplate = templates[locale]?.sms
  if (customTemplate !== undefined)
    return yield* draft(name === '' ? removeName(customTemplate) : customTemplate)
  const texts = localeTexts[locale] ?? localeTexts[fallbackLocale]
  if (!texts) return
  const expiry = expiryText(texts, locale, input.minutesLeft)
  if (name === '') yield* draft(texts.withoutName + expiry)
  else {
    yield* draft(texts.withName + expiry)
    yield* draft(texts.withName + texts.closing, ['minutes'])
  }
  yield* draft(texts.withoutName + texts.closing, name === '' ? ['minutes'] : ['minutes', 'name'])
}

/**
 * Machine-readable lines for Android and WebOTP. Browsers read only the last line, which must start with
 * `@host #code` (WICG, Origin-bound one-time codes delivered via SMS, §3.2). Google Play services accept the
 * app's hash anywhere (SMS Retriever API, "Construct a verification message"; before 2019 it had to be last,
 * and `<#>` first). So the hash comes first, on its own line.
 */
function machineLines({ androidAppHash, webOtpDomain, code }: MessageInput): string[] {
  const webOtp = webOtpDomain === null ? [] : [`@${webOtpDomain} #${code}`]
  return [...(androidAppHash === null ? [] : [androidAppHash]), ...webOtp]
}

/**
 * Google does not define how its 140 bytes are counted, so both the UTF-8 size and the one-part limit must
 * hold.
 */
function fitsOnePart(text: string, { androidAppHash }: MessageInput): boolean {
  if (measureSms(text).parts > 1) return false
  return androidAppHash === null || Buffer.byteLength(text) <= retrieverBytesMax
}

function expiryText(texts: LocaleTexts, locale: string, minutes: number) {
  let rules = pluralRules.get(locale)
  if (!rules) pluralRules.set(locale, (rules = new Intl.PluralRules(locale)))
  return texts.expiry[rules.select(minutes)] ?? texts.expiry.other
}

/** Cache by locale. */
const pluralRules = new Map<string, Intl.PluralRules>()

type TemplateValues = Pick<MessageInput, 'code' | 'minutesLeft' | 'variables'> & {
  name: string
  isolate: (text: string, isLeftToRight?: true) => string
}

function fillPlaceholders(template: string, values: TemplateValues): string {
  const { code, name, minutesLeft, variables, isolate } = values
  // A replacer function and a single pass: no value can inject placeholders or `$` patterns.
  return template.replaceAll(/\{(code|app|minutes|ttl|amount|payee)\}/g, (_, placeholder: string) => {
    switch (placeholder) {
      case 'code':
        return isolate(code, true)
      case 'app':
        return isolate(name)
      case 'amount':
      case 'payee':
        return isolate(variables?.[placeholder] ?? '')
      default:
        return String(minutesLeft)
    }
  })
}

/** Removes the application's name from a template: `{app}: code {code}` → `code {code}`. */
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
 * Creates a function that wraps a value in direction isolates (UAX #9 §2.4) if its direction differs from the
 * text's, so that neither is reordered. Codes are always left to right.
 */
function isolatorFor(locale: string): (text: string, isLeftToRight?: true) => string {
  const parsedLocale = parseLocale(locale)
  const isTextRightToLeft = rightToLeftScripts.has((parsedLocale && likelyScript(parsedLocale)) ?? '')
  return (text, isLeftToRight) => {
    if (isLeftToRight) return isTextRightToLeft ? `\u2066${text}\u2069` : text
    return text !== '' && rightToLeft.test(text) !== isTextRightToLeft ? `\u2068${text}\u2069` : text
  }
}
