/**
 * What the guard looks for, in the words of log entries and of `otpd guard status`. Messages that nobody verifies are
 * how SMS pumping shows: whoever earns by the message has no use for the code.
 */
export const guardRules = [
  'COUNTRY_NOT_ALLOWED',
  'COUNTRY_DENIED',
  'COUNTRY_HOURLY',
  'COUNTRY_DAILY',
  'PREFIX_HOURLY',
  'PREFIX_DAILY',
  'ADDRESS_HOURLY',
  'ADDRESS_DAILY',
  'ADDRESS_COUNTRIES',
  'APPLICATION_DAILY',
  'TOTAL_DAILY',
] as const

export type GuardRule = (typeof guardRules)[number]

export type GuardSettings = {
  /** `off` counts nothing, `monitor` notes what it would have blocked, `enforce` blocks. */
  mode: 'off' | 'monitor' | 'enforce'
  /** ISO codes, `001` for networks of no country. The only ones that get messages; empty: all. */
  countries: readonly string[]
  deniedCountries: readonly string[]
  /** What goes past the guard, unseen and uncounted. */
  trusted: {
    countries: readonly string[]
    /** `+` and the first digits. */
    prefixes: readonly string[]
    /** CIDRs of clients. */
    addresses: readonly string[]
  }
  /**
   * How many unverified messages are in order, however few were verified. 0 turns the rule off. An address is a
   * client's: an IPv4 address, or the /64 of an IPv6 one.
   */
  unverified: {
    countryPerHour: number
    countryPerDay: number
    prefixPerHour: number
    prefixPerDay: number
    addressPerHour: number
    addressPerDay: number
    /** Countries that one address may send to in a day without a code of theirs being verified. */
    addressCountries: number
  }
  /** How many unverified messages are in order beside the verified ones, of a hundred of these. */
  hourlyPercent: number
  dailyPercent: number
  /** Messages in a UTC day; 0 is no limit. */
  caps: { applicationPerDay: number; totalPerDay: number }
}

/** Of one subject: a country, a prefix or an address, as one application sees it. */
export type GuardUsage = {
  /** Messages whose code nobody gave back. */
  unverifiedHour: number
  unverifiedDay: number
  /** Codes that somebody gave back. */
  verifiedHour: number
  verifiedDay: number
}

export const noUsage: GuardUsage = { unverifiedHour: 0, unverifiedDay: 0, verifiedHour: 0, verifiedDay: 0 }

/** Peak hours: an hour may take a sixth of what a day takes. */
const busyHoursPerDay = 6

type ListSettings = Pick<GuardSettings, 'countries' | 'deniedCountries'>

/** What the two lists of countries say. */
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
 * Whether one message more to a country is too much, by what was verified there. The formulas and floors are those of
 * authgear-server's fraud protection (docs/specs/fraud-protection.md).
 *
 * @param readMaxVerifiedInDay the most codes verified on one of the last 14 days or today; asked only where it decides
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

/** The same for a prefix or an address, which have no history: only the last day counts. */
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

/** Whether one more goes over the floor and over what the verified ones allow. A floor of 0 turns the rule off. */
const exceeds = (unverified: number, floor: number, allowed: number) =>
  floor > 0 && unverified + 1 > Math.max(floor, allowed)
