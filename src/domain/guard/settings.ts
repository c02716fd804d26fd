import { noCountry } from '../model/phone.ts'
import { isUnreadable, type RestrictedNumberType } from '../model/numbering-plans.ts'
import type { Price } from '../model/price.ts'
import type { Channel } from '../model/request.ts'
import type { GuardRule } from '../model/guard.ts'
import type { Listing } from '../model/list-rule.ts'
import type { ChallengeSettings } from '../model/challenge.ts'

export type GuardSettings = {
  /** `off` counts nothing, `monitor` logs what it would have blocked, `enforce` blocks. */
  mode: 'off' | 'monitor' | 'enforce'
  /** ISO codes of the only countries that get messages, `001` for numbers without one. Empty allows all. */
  countries: readonly string[]
  deniedCountries: readonly string[]
  /** Types of numbers that get messages although they are costly, or cannot read an SMS. */
  allowedNumberTypes: readonly RestrictedNumberType[]
  /** Exempt from the guard and its counts. */
  trusted: {
    /** E.164 prefixes with `+`. */
    prefixes: readonly string[]
    /** CIDR ranges of client addresses. */
    addresses: readonly string[]
  }
  /** Messages of the installation per UTC day; 0 means no limit. */
  totalPerDay: number
  /** Estimated cost of the messages of the installation per UTC day; 0 means no limit. */
  spendPerDay: Price
  /** Challenge for users whose send an allowance would refuse; null: it is refused. */
  challenge: ChallengeSettings | null
}

/** Finds the rules that a message violates regardless of earlier messages. */
export function violatedListRules(
  { countries, deniedCountries, allowedNumberTypes }: GuardSettings,
  message: {
    country: string | null
    numberType: RestrictedNumberType | null
    channels?: readonly Channel[]
    listing?: Listing
    appCountries?: readonly string[] | null
  },
): GuardRule[] {
  const { numberType, listing, appCountries } = message
  if (listing?.isDenied) return ['DENY_RULE']
  // A developer who names one phone knows it; other rules cover numbers that were never looked at.
  if (listing?.allowedBy === 'phone') return []
  const country = message.country ?? noCountry
  const rules: GuardRule[] = []
  const isListed = countries.length === 0 || countries.includes(country)
  const isWanted = !appCountries || appCountries.includes(country)
  if (!isListed || !isWanted || deniedCountries.includes(country)) rules.push('COUNTRY_NOT_ALLOWED')
  const isRefused = numberType !== null && !allowedNumberTypes.includes(numberType)
  // Numbers that cannot read an SMS may be called.
  if (isRefused && !(isUnreadable(numberType) && message.channels?.some((channel) => channel !== 'sms')))
    rules.push('NUMBER_TYPE')
  return rules
}

/** Channels that the guard takes from a message: an SMS to a number that cannot read it. */
export const refusedChannels = (
  { mode, allowedNumberTypes }: GuardSettings,
  numberType: RestrictedNumberType | null,
): readonly Channel[] =>
  mode === 'enforce' && numberType && isUnreadable(numberType) && !allowedNumberTypes.includes(numberType)
    ? ['sms']
    : []

/** Tells whether messages to a number always pass. */
export const isTrustedPhone = ({ trusted }: GuardSettings, phone: string): boolean =>
  trusted.prefixes.some((prefix) => phone.startsWith(prefix))
