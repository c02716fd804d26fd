import {
  androidAppHashPattern,
  localePattern,
  webOtpDomainPattern,
  type MessageTemplates,
} from '../../domain/model/message-settings.ts'
import { parseLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'
import { draftMessage, renderMessage, type Message, type MessageInput, type Omission } from './message.ts'
import { measureSms, type SmsSize } from './sms-segments.ts'

/** What a message comes to once the lines for machines are below it. */
export type LintOutcome = { parts: number; leftOut: Omission[] }

export type LintedTemplate = SmsSize & {
  template: 'sms'
  locale: string
  /** Who wrote it. */
  from: 'otpd' | 'config'
  /** The whole text, at its longest. */
  text: string
  withWebOtp: LintOutcome
  withAndroid: LintOutcome
  withBoth: LintOutcome
}

/** A code lives ten minutes at most. */
const minutes = Array.from({ length: 10 }, (_, index) => index + 1)
const exampleCode = '123456'
const exampleName = 'Northwind Trading Co'
const webOtp = { webOtpDomain: 'example.com' }
const android = { androidAppHash: 'FA+9qCX9VSu' }

/**
 * How every template travels, with a name of 20 characters and as many minutes as make it longest. Those that otpd
 * brings must fit one part so; what is left out of them below the lines for machines is told by the outcomes.
 */
export function lintTemplates(templates: MessageTemplates = {}): LintedTemplate[] {
  return [...new Set([...Object.keys(localeTexts), ...Object.keys(templates)])].toSorted().map((locale) => {
    const text = longestText(locale, templates)
    const outcome = (lines: Partial<MessageInput>): LintOutcome => {
      const input = { ...example(locale), ...lines, minutesLeft: minutes.at(-1) ?? 1 }
      const message = renderMessage(input, templates)
      return { parts: measureSms(message.text).parts, leftOut: message.leftOut }
    }
    return {
      template: 'sms',
      locale,
      from: templates[locale] ? 'config' : 'otpd',
      ...measureSms(text),
      text,
      withWebOtp: outcome(webOtp),
      withAndroid: outcome(android),
      withBoth: outcome({ ...webOtp, ...android }),
    }
  })
}

function longestText(locale: string, templates: MessageTemplates): string {
  const fullTexts = minutes.map((minutesLeft) => {
    const drafts = draftMessage({ ...example(locale), minutesLeft }, locale, templates)
    return drafts.findLast(({ leftOut }) => leftOut.length === 0)?.text ?? ''
  })
  return fullTexts.toSorted((a, b) => measureSms(b).units - measureSms(a).units)[0] ?? ''
}

const example = (locale: string): MessageInput => ({
  code: exampleCode,
  locale,
  country: null,
  applicationName: exampleName,
  applicationDefaultLocale: null,
  minutesLeft: 5,
  webOtpDomain: null,
  androidAppHash: null,
})

export type PreviewInput = Partial<
  Record<'locale' | 'applicationName' | 'webOtpDomain' | 'androidAppHash', string>
>

const fieldPatterns: Partial<Record<keyof PreviewInput, RegExp>> = {
  locale: new RegExp(localePattern),
  webOtpDomain: new RegExp(webOtpDomainPattern),
  androidAppHash: new RegExp(androidAppHashPattern),
}

/** The first wish that the API would refuse too. */
export function findInvalidField(input: PreviewInput): keyof PreviewInput | undefined {
  const isInvalid = (key: keyof PreviewInput) =>
    input[key] !== undefined && fieldPatterns[key]?.test(input[key]) === false
  if (input.locale !== undefined && !parseLocale(input.locale)) return 'locale'
  return (['locale', 'webOtpDomain', 'androidAppHash'] as const).find(isInvalid)
}

/** A message as a phone would get it, five minutes before its code ends. */
export function previewMessage(
  input: PreviewInput,
  templates: MessageTemplates = {},
): Message & { size: SmsSize } {
  const message = renderMessage(
    {
      ...example(input.locale ?? 'en'),
      applicationName: input.applicationName ?? exampleName,
      webOtpDomain: input.webOtpDomain?.toLowerCase() ?? null,
      androidAppHash: input.androidAppHash ?? null,
    },
    templates,
  )
  return { ...message, size: measureSms(message.text) }
}
