import { measureSms } from '../text/sms-segments.ts'

/** E.164 without its plus sign, as most providers expect phone numbers. */
export const stripPlus = (phone: string) => phone.replace(/^\+/, '')

/** Rounds down and limits a value, such as a lifetime, to the provider's bounds. */
export const clamp = (value: number, min: number, max: number) =>
  Math.min(max, Math.max(min, Math.floor(value)))

/** `Authorization` header of HTTP Basic authentication (RFC 7617). */
export const basicAuth = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Drops fields that are null or undefined, for forms and JSON bodies. */
export function omitNullish<T>(fields: Record<string, T | null | undefined>): Record<string, T> {
  const present: Record<string, T> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined) present[name] = value
  }
  return present
}

/** Whether the text needs only the GSM 7-bit alphabet; otherwise it is sent as Unicode. */
export const fitsGsmAlphabet = (text: string) => measureSms(text).encoding === 'GSM-7'
