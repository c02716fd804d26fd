import {
  getCountries,
  isSupportedCountry,
  parsePhoneNumberFromString,
  type NumberType,
  type PhoneNumber,
} from 'libphonenumber-js/max/es6'
import { canonicalPhone, compactPhone, normalizeCountry, phoneSpellings } from '../../shared/spellings.ts'
import { ServiceError } from './errors.ts'
import { findPlannedNumber, classifyNumber, type RestrictedNumberType } from './numbering-plans.ts'
import type { Random } from './random.ts'

/** A phone number in E.164, with the ISO code of its country if it has one. */
export type Phone = {
  phone: string
  country: string | null
  isVirtual: boolean
  /** Null if it can read an SMS, and costs no more than usual. */
  numberType: RestrictedNumberType | null
}

/** Virtual numbers exist only within otpd: no network routes country code 999. */
const virtualPattern = /^\+999[0-9]{10}$/

/** Tells whether an E.164 number is a developer's virtual number. */
export const isVirtualPhone = (phone: string) => virtualPattern.test(phone)

const e164Pattern = /^\+[1-9]\d{6,14}$/

/**
 * Parses a phone number as people write it. Checks that its length is possible, not that it is assigned:
 * lists of assigned numbers lag behind the networks.
 *
 * @returns undefined if it cannot be a phone number
 */
export function tryParsePhone(text: string): Phone | undefined {
  const phone = e164Pattern.test(text) ? text : compactPhone(text)
  if (!e164Pattern.test(phone)) return undefined
  if (virtualPattern.test(phone)) return { phone, country: null, isVirtual: true, numberType: null }
  const planned = findPlannedNumber(phone)
  if (!planned) return parseByLibrary(phone)
  const { country, type } = planned
  return { phone, country, isVirtual: false, numberType: restrictedType(phone, type) }
}

/**
 * Parses any number in E.164. `+521…`, the former spelling of Mexican mobile numbers, which contacts and WhatsApp still
 * have, is too long for the library and becomes `+52…`, which networks know.
 */
function parseByLibrary(phone: string): Phone | undefined {
  // The text is nothing but the number, and `extract`, which searches for one, takes three times as long.
  const number = parsePhoneNumberFromString(phone, { extract: false })
  if (!number?.isPossible()) {
    const canonical = canonicalPhone(phone)
    return canonical === phone ? undefined : tryParsePhone(canonical)
  }
  return {
    phone: number.number,
    country: number.country ?? mainCountry(number),
    isVirtual: false,
    numberType: restrictedType(number.number, number.getType()),
  }
}

/** Classifies a number. One that is also a spelling of a mobile number, such as +54 11 for +54 9 11, is no fixed line. */
function restrictedType(phone: string, type: NumberType): RestrictedNumberType | null {
  const restricted = classifyNumber(phone, type)
  return restricted === 'fixedLine' && phoneSpellings(phone).length > 1 ? null : restricted
}

/**
 * Finds the main country of a calling code that several share, for a number of no assigned range, such as those reserved
 * for examples: +44 7700 900123 is British. Only of an example in North America: a range there that the library does not
 * know yet may be of a country with far dearer messages than the main one's.
 */
function mainCountry(number: PhoneNumber): string | null {
  if (number.countryCallingCode === '1' && !isFictionalPhone(number.number)) return null
  return number.getPossibleCountries()[0] ?? null
}

/**
 * Represents the country of numbers without one: ITU-T shared codes such as satellites, a common target of
 * fraud.
 */
export const noCountry = '001'

/** Tells whether a text is the ISO 3166 code of a country with phone numbers, in upper case. */
export const isKnownCountry = (code: string) => isSupportedCountry(code)

const englishNames = new Intl.DisplayNames('en', { type: 'region' })

/** Finds the code that a person means by `de`, `UK` or `Germany`; undefined if there is no such country. */
export function findCountry(text: string): string | undefined {
  const code = normalizeCountry(text)
  if (isKnownCountry(code)) return code
  return getCountries().find((one) => englishNames.of(one)?.toLowerCase() === text.toLowerCase())
}

/** Tells whether a number is +1 NXX 555-0100 to 0199, which the North American Numbering Plan reserves for fiction. */
export const isFictionalPhone = (phone: string) => /^\+1[0-9]{3}55501[0-9]{2}$/.test(phone)

/**
 * Tells whether a number is rather the first digits of others: it is in no assigned range, and a longer one is possible. Some
 * countries have numbers of many lengths: +49 15123 may be one, and is how 10 million mobile numbers begin.
 *
 * @param phone E.164
 */
export function isFirstDigits(phone: string): boolean {
  const isAssigned = parsePhoneNumberFromString(phone, { extract: false })?.isValid() === true
  return !isAssigned && phoneSpellings(phone).length === 1 && tryParsePhone(`${phone}0`) !== undefined
}

/** As `tryParsePhone`. @throws INVALID_PHONE_NUMBER */
export function parsePhone(text: string): Phone {
  const phone = tryParsePhone(text)
  if (!phone) throw invalidPhone()
  return phone
}

/** INVALID_PHONE_NUMBER. @param texts what is wrong with this number, and what was expected */
export const invalidPhone = (
  location: 'body' | 'query' = 'body',
  texts: { message?: string; detail?: string } = {},
) =>
  new ServiceError(
    'INVALID_PHONE_NUMBER',
    texts.message ?? 'The phone number is invalid. Write it in E.164 format, with + and the country code.',
    {
      details: [
        {
          in: location,
          path: 'phone',
          code: 'INVALID_PHONE_NUMBER',
          message:
            texts.detail ??
            (location === 'query'
              ? 'Expected a number with + and country code, such as +14155550100, or at least four last digits.'
              : 'Expected a number with + and country code (E.164), such as +14155550100.'),
        },
      ],
    },
  )

/** Generates a developer's virtual number. With 64 random bits the modulo bias is negligible. */
export function makeVirtualPhone(random: Random): string {
  const bytes = new Uint8Array(8)
  random(bytes)
  const digits = new DataView(bytes.buffer).getBigUint64(0) % 10_000_000_000n
  return `+999${digits.toString().padStart(10, '0')}`
}
