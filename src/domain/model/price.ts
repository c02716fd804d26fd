import { hasCallingCode, isCallingCode } from './numbering-plans.ts'
import { findCountry, isKnownCountry } from './phone.ts'

/** Millionths of the installation's currency: messages cost fractions of a cent, and sums must be exact. */
export type Price = number

/** Prices of a provider by destination. Plain data, so that it can be compared and stored. */
export type PriceList = {
  /** Price of all other destinations; null: unknown. */
  default: Price | null
  /** By ISO 3166-1 alpha-2 code. */
  countries: Readonly<Record<string, Price>>
  /** By `+` and the first digits of the number. */
  prefixes: Readonly<Record<string, Price>>
}

/** Price that a provider names for one of its messages, in a currency of its own (ISO 4217). */
export type Charge = { amount: Price; currency: string }

/** Cost of a message that a provider has: what it named, otherwise the estimate by its prices. Null: unknown. */
export type MessageCost = { estimatedPrice: Price | null; chargedPrice: Price | null }

/** Cost of a message that no provider has, or whose price is unknown. */
export const noCost: MessageCost = { estimatedPrice: null, chargedPrice: null }

/** Finds the price of a message to a number in E.164; null if the list has none. */
export type FindPrice = (phone: string, country: string | null) => Price | null

const millionths = 1_000_000

/** Parses a decimal number such as `0.0079`; undefined if it is none, negative, or has over seven or six digits. */
export function parsePrice(text: string): Price | undefined {
  const [, whole, decimals = ''] = /^(\d{1,7})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? undefined : Number(whole) * millionths + Number(decimals.padEnd(6, '0'))
}

/**
 * Reads the amount of a charge, which providers write as a number or as text; undefined if it is none, negative, or has over
 * seven digits. Half a millionth is rounded up, by its decimal digits: products of numbers lie a little below or above it.
 */
export function readAmount(value: unknown): Price | undefined {
  const text = typeof value === 'number' ? value.toFixed(9) : value
  if (typeof text !== 'string') return undefined
  const [, kept = '', next = ''] = /^(\d+(?:\.\d{1,6})?)(\d?)\d*$/.exec(text) ?? []
  const price = parsePrice(kept)
  return price === undefined ? undefined : price + (next >= '5' ? 1 : 0)
}

/** Writes a price or a sum of prices as a decimal number, without trailing zeros. */
export function formatPrice(price: Price): string {
  const amount = Math.abs(price)
  const fraction = String(amount % millionths)
    .padStart(6, '0')
    .replace(/0+$/, '')
  const text = `${Math.floor(amount / millionths)}${fraction === '' ? '' : `.${fraction}`}`
  return price < 0 ? `-${text}` : text
}

/** Part of a price list that a destination belongs to. */
export type PriceKey = { kind: 'default' } | { kind: 'country' | 'prefix'; key: string }

/** Parses `default`, a country such as `US`, or a prefix such as `+4930`; otherwise says what is wrong. */
export function parsePriceKey(text: string): PriceKey | { fault: string; remedy: string } {
  if (text === 'default') return { kind: 'default' }
  if (isKnownCountry(text)) return { kind: 'country', key: text }
  if (/^\+\d{1,15}$/.test(text) && hasCallingCode(text)) return { kind: 'prefix', key: text }
  const shown = JSON.stringify(text.slice(0, 40))
  if (/^\+?\d+$/.test(text)) {
    const isOnlyWithoutPlus = !text.startsWith('+') && hasCallingCode(`+${text}`)
    return {
      fault: isOnlyWithoutPlus ? `${shown} has no +.` : `No phone number begins with ${shown}.`,
      remedy: isOnlyWithoutPlus
        ? `Write "+${text}", in quotes.`
        : 'Write + and the first digits, with the country code, such as "+4930".',
    }
  }
  const country = findCountry(text)
  const remedy = country
    ? `Write ${country}.`
    : 'Use default, a two-letter ISO 3166 code such as US, or a prefix in quotes, such as "+4930".'
  return { fault: `${shown} is not a country or a prefix.`, remedy }
}

/**
 * Creates the look-up of a list. The most specific entry applies: the longest prefix, then the country, then the country
 * code alone (`+1` is 25 countries), then the default.
 */
export function createPriceFinder(list: PriceList): FindPrice {
  const countries = new Map(Object.entries(list.countries))
  const all = Object.entries(list.prefixes)
  const callingCodes = new Map(all.filter(([prefix]) => isCallingCode(prefix)))
  const prefixes = new Map(all.filter(([prefix]) => !isCallingCode(prefix)))
  const longest = Math.max(0, ...all.map(([prefix]) => prefix.length))
  return (phone, country) =>
    findLongest(prefixes, phone, longest) ??
    (country === null ? undefined : countries.get(country)) ??
    findLongest(callingCodes, phone, '+999'.length) ??
    list.default
}

function findLongest(prices: ReadonlyMap<string, Price>, phone: string, longest: number): Price | undefined {
  if (prices.size === 0) return undefined
  for (let length = Math.min(longest, phone.length); length > 1; length--) {
    const price = prices.get(phone.slice(0, length))
    if (price !== undefined) return price
  }
  return undefined
}
