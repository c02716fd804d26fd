import { getCountries } from 'libphonenumber-js/max/es6'
import { noCountry } from '../domain/model/phone.ts'
import type { GuardSettings } from '../domain/guard/settings.ts'
import { formatPrice } from '../domain/model/price.ts'
import { restrictedNumberTypes, type RestrictedNumberType } from '../domain/model/numbering-plans.ts'
import type { ConfigUse } from './database.ts'
import { readChallenge } from './guard-challenge.ts'
import { parsePriceText } from './price-file.ts'
import type { ConfigInput, ResolvedSetting, Reader } from './reader.ts'
import type { SettingId } from './settings.ts'
import { parseChoice, parseCidrs, parseEach, parseInteger, quote, type Parsed } from './values.ts'

const countMax = 1_000_000_000

/**
 * Reads the `[guard]` table. Contradicting lists are reported: a rule that never applies gives false safety.
 *
 * @param context.defaultMode mode unless it is set
 * @param context.currency currency of all prices, if one is set
 */
export function readGuard(
  reader: Reader,
  input: ConfigInput,
  use: ConfigUse,
  { defaultMode, currency }: { defaultMode: GuardSettings['mode']; currency: string | undefined },
): GuardSettings {
  const countries = (id: SettingId) => reader.read<string[]>(id, parseCountries, [])
  const mode = reader.read('guardMode', parseChoice('off', 'monitor', 'enforce'), defaultMode)
  const allowed = countries('guardCountries')
  const denied = countries('guardDeniedCountries')
  reportOverlap(reader, denied, allowed, 'also in the allow-list')
  return {
    mode: mode.value,
    countries: allowed.value,
    deniedCountries: denied.value,
    allowedNumberTypes: reader.read<RestrictedNumberType[]>('guardAllowedNumberTypes', parseNumberTypes, [])
      .value,
    trusted: {
      prefixes: reader.read<string[]>('guardTrustedPrefixes', parsePrefixes, []).value,
      addresses: reader.read<string[]>('guardTrustedAddresses', parseCidrs, []).value,
    },
    totalPerDay: reader.read('guardTotalPerDay', parseInteger(0, countMax), 0).value,
    spendPerDay: readSpendPerDay(reader, currency),
    challenge: readChallenge(reader, input, use),
  }
}

/** Without a currency otpd counts no costs, and the budget would never be spent. */
function readSpendPerDay(reader: Reader, currency: string | undefined): number {
  const { value, source } = reader.read('guardSpendPerDay', parsePriceText, 0, { show: formatPrice })
  if (value > 0 && source !== null && currency === undefined) {
    reader.report(
      source,
      'The budget has no currency.',
      'Write [prices] and currency = "EUR" below it, and the prices of each provider.',
    )
  }
  return value
}

function parseNumberTypes(text: string): Parsed<RestrictedNumberType[]> {
  return parseEach(text, parseChoice(...restrictedNumberTypes))
}

function reportOverlap(
  reader: Reader,
  denied: ResolvedSetting<string[]>,
  other: ResolvedSetting<string[]>,
  conflict: string,
) {
  const overlap = denied.value.filter((country) => other.value.includes(country))
  if (overlap.length === 0 || denied.source === null) return
  reader.report(
    denied.source,
    `${overlap.join(', ')} is denied and ${conflict}.`,
    `Remove it here or from ${other.source ?? 'the other list'}.`,
  )
}

function parseCountries(text: string): Parsed<string[]> {
  const knownCountries: ReadonlySet<string> = new Set([...getCountries(), noCountry])
  return parseEach<string>(text, (word) => {
    const country = word.toUpperCase()
    if (knownCountries.has(country)) return { value: country }
    return {
      fault: `${quote(word)} is not a country.`,
      remedy: `Use two-letter ISO 3166 codes such as NL or GB, or ${noCountry} for numbers of no country.`,
    }
  })
}

function parsePrefixes(text: string): Parsed<string[]> {
  return parseEach<string>(text, (word) => {
    if (/^\+[1-9]\d{0,14}$/.test(word)) return { value: word }
    return {
      fault: `${quote(word)} is not a phone number prefix.`,
      remedy: 'Write + and the first digits, such as +3161.',
    }
  })
}
