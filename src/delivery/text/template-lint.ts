import type { MessageTemplates } from '../../domain/model/message-settings.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { parseLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'
import { draftMessage, renderMessage, type Message, type MessageInput, type Omission } from './message.ts'
import { measureSms, type SmsSize } from './sms-segments.ts'

/** Size of a message with machine-readable lines appended. */
export type LintOutcome = { parts: number; leftOut: Omission[] }

export type LintedTemplate = SmsSize & {
  template: 'sms'
  locale: string
  /** Origin of the template. */
  from: 'otpd' | 'config'
  /** The complete text with the longest values. */
  text: string
  withWebOtp: LintOutcome
  withAndroid: LintOutcome
  withBoth: LintOutcome
}

/** Codes live at most ten minutes. */
const minutes = Array.from({ length: 10 }, (_, index) => index + 1)
const exampleCode = '123456'
const exampleName = 'Northwind Trading Co'
const webOtp = { webOtpDomain: 'example.com' }
const android = { androidAppHash: 'FA+9qCX9VSu' }

/**
 * Measures every template with a name of 20 characters and the minutes that make it longest. Built-in texts
 * must then fit one SMS part; the outcomes report what is left out once machine-readable lines are added.
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
  locale: new RegExp(applicationFields.defaultLocale.pattern),
  webOtpDomain: new RegExp(applicationFields.webOtpDomain.pattern),
  androidAppHash: new RegExp(applicationFields.androidAppHash.pattern),
}

/** First field that the API would refuse too, if any. */
export function findInvalidField(input: PreviewInput): keyof PreviewInput | undefined {
  const isInvalid = (key: keyof PreviewInput) =>
    input[key] !== undefined && fieldPatterns[key]?.test(input[key]) === false
  if (input.locale !== undefined && !parseLocale(input.locale)) return 'locale'
  return (['locale', 'webOtpDomain', 'androidAppHash'] as const).find(isInvalid)
}

/** Renders a message as a phone would show it, five minutes before the code expires. */
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
