import type { GuardRule, GuardUsage } from '../model/guard.ts'

export type GuardSettings = {
  /** `off` counts nothing, `monitor` logs what it would have blocked, `enforce` blocks. */
  mode: 'off' | 'monitor' | 'enforce'
  /** ISO codes of the only countries that get messages, `001` for numbers without one. Empty allows all. */
  countries: readonly string[]
  deniedCountries: readonly string[]
  /** Exempt from the guard and its counts. */
  trusted: {
    countries: readonly string[]
    /** E.164 prefixes with `+`. */
    prefixes: readonly string[]
    /** CIDR ranges of client addresses. */
    addresses: readonly string[]
  }
  /**
   * Unverified messages that are allowed regardless of conversion. 0 turns the rule off. An address is a
   * client's IPv4 address or the /64 of its IPv6 address.
   */
  unverified: {
    countryPerHour: number
    countryPerDay: number
    prefixPerHour: number
    prefixPerDay: number
    addressPerHour: number
    addressPerDay: number
    /** Countries that one address may send to in a day without verifying a code there. */
    addressCountries: number
  }
  /** Unverified messages that are allowed, as a percentage of the verified ones. */
  hourlyPercent: number
  dailyPercent: number
  /** Messages per UTC day; 0 means no limit. */
  caps: { applicationPerDay: number; totalPerDay: number }
}

export const noUsage: GuardUsage = { unverifiedHour: 0, unverifiedDay: 0, verifiedHour: 0, verifiedDay: 0 }

/** Peak hours: one hour may have a sixth of a day's messages. */
const busyHoursPerDay = 6

type ListSettings = Pick<GuardSettings, 'countries' | 'deniedCountries'>

/** Finds the country-list rules that a message to this country violates. */
export function violatedListRules(
  { countries, deniedCountries }: ListSettings,
  country: string,
): GuardRule[] {
  const rules: GuardRule[] = []
  if (countries.length > 0 && !countries.includes(country)) rules.push('COUNTRY_NOT_ALLOWED')
  if (deniedCountries.includes(country)) rules.push('COUNTRY_DENIED')
  return rules
}

/**
 * Finds the country rules that one more message would violate, given the country's conversion. Formulas and
 * floors are those of authgear-server's fraud protection (docs/specs/fraud-protection.md).
 *
 * @param readMaxVerifiedInDay reads the most codes verified on one of the last 14 days or today; called only
 *   if it decides
 */
export async function violatedCountryRules(
  settings: GuardSettings,
  usage: GuardUsage,
  readMaxVerifiedInDay: () => Promise<number>,
): Promise<GuardRule[]> {
  const { countryPerHour, countryPerDay } = settings.unverified
  const perHour = settings.hourlyPercent / 100
  const perDay = settings.dailyPercent / 100
  const overHour = exceeds(usage.unverifiedHour, countryPerHour, usage.verifiedHour * perHour)
  const overDay = exceeds(usage.unverifiedDay, countryPerDay, usage.verifiedDay * perDay)
  if (!overHour && !overDay) return []
  const maxVerifiedInDay = await readMaxVerifiedInDay()
  const rules: GuardRule[] = []
  if (
    overHour &&
    exceeds(usage.unverifiedHour, countryPerHour, (maxVerifiedInDay / busyHoursPerDay) * perHour)
  ) {
    rules.push('COUNTRY_HOURLY')
  }
  if (overDay && exceeds(usage.unverifiedDay, countryPerDay, maxVerifiedInDay * perDay))
    rules.push('COUNTRY_DAILY')
  return rules
}

/** As `violatedCountryRules`, for a prefix or an address. They have no history: only the last day counts. */
export function violatedSubjectRules(
  settings: GuardSettings,
  kind: 'prefix' | 'address',
  usage: GuardUsage,
): GuardRule[] {
  const { unverified, hourlyPercent, dailyPercent } = settings
  const hourly = (usage.verifiedDay / busyHoursPerDay) * (hourlyPercent / 100)
  const daily = usage.verifiedDay * (dailyPercent / 100)
  const rules: GuardRule[] = []
  if (exceeds(usage.unverifiedHour, unverified[`${kind}PerHour`], hourly)) {
    rules.push(kind === 'prefix' ? 'PREFIX_HOURLY' : 'ADDRESS_HOURLY')
  }
  if (exceeds(usage.unverifiedDay, unverified[`${kind}PerDay`], daily)) {
    rules.push(kind === 'prefix' ? 'PREFIX_DAILY' : 'ADDRESS_DAILY')
  }
  return rules
}

/**
 * Tells whether one more exceeds both the floor and what conversion allows. A floor of 0 turns the rule off.
 */
const exceeds = (unverified: number, floor: number, allowed: number) =>
  floor > 0 && unverified + 1 > Math.max(floor, allowed)
