import {
  getCountries,
  isSupportedCountry,
  parsePhoneNumberFromString,
  type PhoneNumber,
} from 'libphonenumber-js/max/es6'
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
  const phone = e164Pattern.test(text) ? text : text.replaceAll(/[ \-.()]/g, '').replace(/^00/, '+')
  if (!e164Pattern.test(phone)) return undefined
  if (virtualPattern.test(phone)) return { phone, country: null, isVirtual: true, numberType: null }
  const planned = findPlannedNumber(phone)
  if (!planned) return parseByLibrary(phone)
  const { country, type } = planned
  return { phone, country, isVirtual: false, numberType: classifyNumber(phone, type) }
}

/** Parses any number in E.164. */
function parseByLibrary(phone: string): Phone | undefined {
  // The text is nothing but the number, and `extract`, which searches for one, takes three times as long.
  const number = parsePhoneNumberFromString(phone, { extract: false })
  if (!number?.isPossible()) return undefined
  return {
    phone: number.number,
    country: number.country ?? mainCountry(number),
    isVirtual: false,
    numberType: classifyNumber(number.number, number.getType()),
  }
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

/**
 * Writes the code of a country as ISO 3166-1 does: in upper case, and GB for the United Kingdom, for which it reserves UK.
 */
export const normalizeCountry = (code: string): string => code.toUpperCase().replace(/^UK$/, 'GB')

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

/**
 * Numbering plans in which one mobile subscriber has two numbers that differ in one digit, and both receive messages.
 * `long` and `short` match the same subscribers, with the digit and without it.
 */
const optionalDigits = [
  // Argentina: calls from abroad put a 9 before mobile numbers (ENACOM). Area codes begin with 1, 2 or 3.
  { long: /^(\+54)9([1-3]\d{9})$/, short: /^(\+54)([1-3]\d{9})$/, digit: '9' },
  // Mexico: the 1 before mobile numbers was abolished in 2019 (IFT). Area codes begin with 2 to 9.
  { long: /^(\+52)1([2-9]\d{9})$/, short: /^(\+52)([2-9]\d{9})$/, digit: '1' },
  // Brazil: mobile numbers got a leading 9 from 2012 on (Anatel, resolution 553). Those with 7 are excluded, since
  // trunked radio keeps eight digits that begin with 7; so are 2 to 5, which are fixed lines without the 9.
  { long: /^(\+55[1-9]{2})9([689]\d{7})$/, short: /^(\+55[1-9]{2})([689]\d{7})$/, digit: '9' },
] as const

/**
 * Folds the spellings of one subscriber into one: Argentina `+549…` and `+54…`, Mexico `+521…` and `+52…`, Brazil with
 * and without the ninth digit. All other numbers stay as they are. A key for limits, never a number to send to or to
 * answer: messages go to the number as the caller wrote it.
 *
 * @param phone E.164; any other text stays as it is
 */
export function canonicalPhone(phone: string): string {
  for (const { long } of optionalDigits) if (long.test(phone)) return phone.replace(long, '$1$2')
  return phone
}

/** Lists all spellings of a subscriber, the canonical one first. @param phone E.164 */
export function phoneSpellings(phone: string): string[] {
  const canonical = canonicalPhone(phone)
  const plan = optionalDigits.find(({ short }) => short.test(canonical))
  return plan ? [canonical, canonical.replace(plan.short, `$1${plan.digit}$2`)] : [canonical]
}
