/** What an application says about its messages. */
export type MessageSettings = {
  name: string
  /** BCP 47. Counts where a request names no language, or one that there is no text in. */
  defaultLocale: string | null
  /** The host whose pages may fill in the code (WICG, Origin-bound one-time codes delivered via SMS). */
  webOtpDomain: string | null
  /** The Android app that may read the message (Google, SMS Retriever API). */
  androidAppHash: string | null
}

/** Texts of the operator's own, by canonical locale, instead of or beside those that otpd brings. */
export type MessageTemplates = Readonly<Record<string, { sms: string }>>

/** `language-Script-REGION` and the like, in any case of letters. */
export const localePattern = '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$'

/** The first 11 characters of a SHA-256 in base64. */
export const androidAppHashPattern = '^[A-Za-z0-9+/]{11}$'

/**
 * A host name of two labels or more, in ASCII (RFC 1123 §2.1, RFC 5890 for others): no scheme, port, address or
 * wildcard. Its last label begins with a letter, so that no IP address passes.
 */
export const webOtpDomainPattern =
  '^(?=.{4,253}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])$'

/**
 * The whole minutes that a code still lives, never more than there are and never none. A few seconds are forgiven, since
 * a code of five minutes that took one second to send is still one of five minutes.
 */
export function minutesLeft(expiresAtMs: number, sentAtMs: number): number {
  const graceMs = 10_000
  return Math.max(1, Math.floor((expiresAtMs - sentAtMs + graceMs) / 60_000))
}
