import { applicationFields } from '../../shared/application-fields.ts'
import { minuteMs } from '../../shared/durations.ts'
import { messageSettingNames, type FieldValues } from '../../shared/fields.ts'

/** Fields of an application that its messages depend on. */
export const messageFields = ['name', ...messageSettingNames(applicationFields)] as const

/** An application's settings for its messages. */
export type MessageSettings = Pick<
  { name: string } & FieldValues<typeof applicationFields>,
  (typeof messageFields)[number]
>

/** Facts that decide the language of a message. */
export type LocalePreference = {
  /** Locale that the request asks for. */
  locale: string | null
  applicationDefaultLocale: string | null
  /** Country of the phone number, ISO 3166-1 alpha-2. */
  country: string | null
}

/** The operator's message templates by canonical locale. They override or extend the built-in ones. */
export type MessageTemplates = Readonly<Record<string, { sms: string }>>

/**
 * Whole minutes until a code expires: rounded down, at least 1. A grace of 10 s keeps a five-minute code that
 * took a second to send at five minutes.
 */
export function minutesLeft(expiresAtMs: number, sentAtMs: number): number {
  const graceMs = 10_000
  return Math.max(1, Math.floor((expiresAtMs - sentAtMs + graceMs) / minuteMs))
}
