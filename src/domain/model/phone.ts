import { parsePhoneNumberFromString } from 'libphonenumber-js/max/es6'
import { ServiceError } from './errors.ts'
import type { Random } from './random.ts'

/** E.164, and the ISO code of the country it belongs to where one does. */
export type Phone = { phone: string; country: string | null; isVirtual: boolean }

/** A country code that no network routes: such a number lives within otpd only. */
const virtualPattern = /^\+999[0-9]{10}$/

export const isVirtualPhone = (phone: string) => virtualPattern.test(phone)

/**
 * Reads a phone number as people write it; undefined where it cannot be one. Whether its length is possible is
 * checked, and not whether it is assigned: the lists of assigned numbers lag behind the networks.
 */
export function tryParsePhone(text: string): Phone | undefined {
  const compact = text.replaceAll(/[ \-.()]/g, '').replace(/^00/, '+')
  if (virtualPattern.test(compact)) return { phone: compact, country: null, isVirtual: true }
  // Nothing else stands in the text: to look for a number within it takes three times as long as to read it.
  const number = /^\+[1-9]\d{6,14}$/.test(compact)
    ? parsePhoneNumberFromString(compact, { extract: false })
    : undefined
  if (!number?.isPossible()) return undefined
  return { phone: number.number, country: number.country ?? null, isVirtual: false }
}

/** As readPhone. @throws INVALID_PHONE_NUMBER */
export function parsePhone(text: string): Phone {
  const phone = tryParsePhone(text)
  if (!phone) throw invalidPhone()
  return phone
}

export const invalidPhone = () =>
  new ServiceError(
    'INVALID_PHONE_NUMBER',
    'The phone number is invalid. Write it in E.164 format, with + and the country code.',
    {
      details: [
        {
          in: 'body',
          path: 'phone',
          code: 'INVALID_PHONE_NUMBER',
          message: 'Expected a number in E.164 format, such as +14155550100.',
        },
      ],
    },
  )

/** A new number for a developer. 64 random bits make the bias of the remainder vanish. */
export function makeVirtualPhone(random: Random): string {
  const bytes = new Uint8Array(8)
  random(bytes)
  const digits = new DataView(bytes.buffer).getBigUint64(0) % 10_000_000_000n
  return `+999${digits.toString().padStart(10, '0')}`
}
