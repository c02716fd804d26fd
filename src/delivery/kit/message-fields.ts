import { measureSms } from '../text/sms-segments.ts'

/** The phone as most interfaces want it: E.164 without its plus sign. */
export const stripPlus = (phone: string) => phone.replace(/^\+/, '')

/** A lifetime within the bounds that the provider takes. */
export const clamp = (value: number, min: number, max: number) =>
  Math.min(max, Math.max(min, Math.floor(value)))

/** RFC 7617. */
export const basicAuth = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** The fields that have a value, as a form or a JSON body wants them. */
export function omitNullish<T>(fields: Record<string, T | null | undefined>): Record<string, T> {
  const present: Record<string, T> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined) present[name] = value
  }
  return present
}

/** Whether the text can go out in the GSM 7-bit alphabet; as Unicode otherwise. */
export const fitsGsmAlphabet = (text: string) => measureSms(text).encoding === 'GSM-7'
