import { minuteMs } from '../../shared/durations.ts'

/** An application's settings for its messages. */
export type MessageSettings = {
  name: string
  /** BCP 47 tag, used if the request names no locale or one without a template. */
  defaultLocale: string | null
  /** Host whose pages may autofill the code (WICG, Origin-bound one-time codes delivered via SMS). */
  webOtpDomain: string | null
  /** Hash of the Android app that may read the message (Google, SMS Retriever API). */
  androidAppHash: string | null
}

/** The operator's message templates by canonical locale. They override or extend the built-in ones. */
export type MessageTemplates = Readonly<Record<string, { sms: string }>>

/** Locales such as `language-Script-REGION`, in upper or lower case. */
export const localePattern = '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$'

/** First 11 characters of a SHA-256 in base64. */
export const androidAppHashPattern = '^[A-Za-z0-9+/]{11}$'

/**
 * A host name of two labels or more, in ASCII (RFC 1123 §2.1, RFC 5890 for others): no scheme, port, address
 * or wildcard. The last label begins with a letter, which excludes IP addresses.
 */
export const webOtpDomainPattern =
  '^(?=.{4,253}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])$'

/**
 * Whole minutes until a code expires: rounded down, at least 1. A grace of 10 s keeps a five-minute code that
 * took a second to send at five minutes.
 */
export function minutesLeft(expiresAtMs: number, sentAtMs: number): number {
  const graceMs = 10_000
  return Math.max(1, Math.floor((expiresAtMs - sentAtMs + graceMs) / minuteMs))
}
