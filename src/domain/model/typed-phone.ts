import { isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js/max/es6'
import { invalidField, ServiceError } from './errors.ts'
import { invalidPhone, tryParsePhone, type Phone } from './phone.ts'
import { dropSeparators, normalizeCountry } from '../../shared/spellings.ts'

/** Tells whether a text may be a number without its country code. */
const isNational = (text: string) => /^[\d \-.()]{3,32}$/.test(text)

/**
 * Parses a phone number that may be written as in its country: `07700 900123` in GB.
 *
 * @param country ISO 3166-1 alpha-2, in any case; undefined: the number has its country code
 * @returns undefined if it cannot be a phone number
 * @throws INVALID_ARGUMENT for an unknown country
 */
export function tryParseTypedPhone(text: string, country: string | undefined): Phone | undefined {
  const international = tryParsePhone(text)
  if (country === undefined) return international
  const code = normalizeCountry(country)
  if (!isSupportedCountry(code))
    throw invalidField('query', 'country', 'Expected the two-letter code of a country, such as GB.')
  if (international || !isNational(text)) return international
  const number = parsePhoneNumberFromString(text, { defaultCountry: code, extract: false })
  return number && tryParsePhone(number.number)
}

/** As `tryParseTypedPhone`. @throws INVALID_PHONE_NUMBER too */
export function parseTypedPhone(text: string, country: string | undefined): Phone {
  const phone = tryParseTypedPhone(text, country)
  if (phone) return phone
  throw isNational(text) ? notNational(country) : invalidPhone()
}

/** INVALID_PHONE_NUMBER for a number without country code. */
const notNational = (country: string | undefined) =>
  country === undefined
    ? invalidPhone('body', {
        message:
          'The phone number has no country code. Write it in E.164 format, with + and the country code, or name its country.',
        detail:
          'Expected a number with + and country code, such as +14155550100, or its country: `country`, or `defaultCountry` of the application.',
      })
    : invalidPhone('body', {
        message: `The phone number is invalid in ${normalizeCountry(country)}. Write it in E.164 format, with + and the country code.`,
        detail: `Expected a number of ${normalizeCountry(country)}, or one with + and country code, such as +14155550100.`,
      })

/** NOT_FOUND for what cannot be a phone number, such as a national one without its country. */
export const noSuchPhone = () =>
  new ServiceError(
    'NOT_FOUND',
    'No phone can have this number. Write it in E.164 format, with + and the country code.',
  )

/**
 * Reads the last digits of a phone number, by which people name one. Drops the trunk prefix of a national number:
 * `07700 900123` is the end of `+447700900123` without its 0.
 *
 * @returns undefined for less than four digits, and for anything else
 */
export function tryParseLastDigits(text: string): string | undefined {
  const compact = dropSeparators(text)
  return /^\d{4,15}$/.test(compact) ? compact.replace(/^0(?=\d{6})/, '') : undefined
}
