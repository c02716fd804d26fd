import type { MessageTemplates } from '../../domain/model/message-settings.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { chooseTemplateText, parseLocale } from './locale-choice.ts'
import { localeTexts } from './locales.ts'
import { variableCharactersMax, type MessageVariables } from '../../domain/model/message-variables.ts'
import type { TemplateText, TextSize } from '../../domain/model/message-template.ts'
import {
  draftMessage,
  renderIn,
  renderMessage,
  type Message,
  type MessageInput,
  type Omission,
} from './message.ts'
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

/** The longest values that a send may have. */
const longestVariables: MessageVariables = {
  amount: `${'9'.repeat(variableCharactersMax.amount - 4)} EUR`,
  payee: 'n'.repeat(variableCharactersMax.payee),
}

/**
 * Measures a text of an application's template with the longest values, and with an application's name of 20 characters. Values
 * outside of the GSM alphabet make it longer.
 */
export const measureTemplateText = (locale: string, text: string): TextSize =>
  measureSms(longestText(locale, { [locale]: { sms: text } }))

function longestText(locale: string, templates: MessageTemplates): string {
  const fullTexts = minutes.map((minutesLeft) => {
    const input = { ...example(locale), minutesLeft, variables: longestVariables }
    const drafts = [...draftMessage(input, locale, templates)]
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

type MessagePreview = Message & { size: SmsSize }

/** Renders a message as a phone would show it, five minutes before the code expires. */
export const previewMessage = (input: PreviewInput, templates: MessageTemplates = {}): MessagePreview =>
  measured(renderMessage(toMessageInput(input), templates))

/** Renders a message of an application's template. @param variables shown as they are, without a check */
export function previewTemplate(
  texts: readonly TemplateText[],
  input: PreviewInput,
  variables: MessageVariables | null,
): MessagePreview {
  const message = toMessageInput(input)
  const { locale, text } = chooseTemplateText(texts, message)
  return measured(renderIn(locale, { ...message, variables }, { [locale]: { sms: text } }))
}

const measured = (message: Message): MessagePreview => ({ ...message, size: measureSms(message.text) })

const toMessageInput = ({ locale, applicationName, webOtpDomain, androidAppHash }: PreviewInput) => ({
  ...example(locale ?? 'en'),
  applicationName: applicationName ?? exampleName,
  webOtpDomain: webOtpDomain?.toLowerCase() ?? null,
  androidAppHash: androidAppHash ?? null,
})
