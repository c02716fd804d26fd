import { dropSeparators } from '../../src/shared/spellings.ts'

/**
 * Whether a text is taken as the last digits of a phone number: digits, without a country code. Behind `00` there is one, unless
 * they are too few for a number.
 */
export const isLastDigits = (text: string) => /^(?!00\d{5})\d{4,15}$/.test(dropSeparators(text))

/** Reads the last digits of a phone number, without the trunk prefix of a national one: `07700 900123` ends `+447700900123`. */
export const readLastDigits = (text: string) => text.replaceAll(/\D/g, '').replace(/^0(?=\d{6})/, '')

/**
 * Says where a list looks for last digits; undefined if it is filtered by a whole number, or by none.
 *
 * @param searched what the server searches, like `newest 500 codes`
 */
export const lastDigitsNote = ({ phone, country }: { phone?: string; country?: string }, searched: string) =>
  phone !== undefined && country === undefined && isLastDigits(phone)
    ? `Last digits are searched in the ${searched}, a whole number or --country in all.`
    : undefined
