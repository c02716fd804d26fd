import type { CostlyNumberType } from '../model/number-type.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'
import { pendingMs, pendingSlot, type GuardCounts, type GuardRule } from '../model/guard.ts'
import type { Counts } from './windows.ts'

export type GuardMode = 'off' | 'monitor' | 'enforce'

export type GuardSettings = {
  /** `off` counts nothing, `monitor` logs what it would have blocked, `enforce` blocks. */
  mode: GuardMode
  /** ISO codes of the only countries that get messages, `001` for numbers without one. Empty allows all. */
  countries: readonly string[]
  deniedCountries: readonly string[]
  /** Types of numbers that get messages although they are costly. */
  allowedNumberTypes: readonly CostlyNumberType[]
  /** Exempt from the guard and its counts. */
  trusted: {
    /** E.164 prefixes with `+`. */
    prefixes: readonly string[]
    /** CIDR ranges of client addresses. */
    addresses: readonly string[]
  }
  /** Messages of the installation per UTC day; 0 means no limit. */
  totalPerDay: number
}

/**
 * Figures of the rules, chosen by the replay (`npm run fuzz -- --only pumping`). A subject may have `…PerDay`
 * unverified messages, and `perVerified` more for each code verified there: so a subject with at
 * least a fifth of its messages verified is never blocked.
 */
export const guardFigures = {
  countryPerDay: 100,
  prefixPerDay: 30,
  networkPerDay: 30,
  perVerified: 4,
  /** Share of a code that is still pending in the count of unverified ones. */
  pendingShare: 0.2,
  /** Unverified messages of one network that count for its country, so that one client alone never closes it. */
  perNetworkInCountry: 10,
  /** Verified codes in 14 days, and their share, from which on a country converts: it is never closed. */
  convertsFrom: 20,
  convertsShare: 0.2,
  /** While a country's conversion is low, how long a network without a verified code may send, once a day. */
  visitMs: 10 * minuteMs,
} as const

/**
 * Represents the country of numbers without one: ITU-T shared codes such as satellites, a common target of
 * fraud.
 */
export const noCountry = '001'

/** Finds the rules that a message violates regardless of earlier messages. */
export function violatedListRules(
  { countries, deniedCountries, allowedNumberTypes }: GuardSettings,
  message: { country: string | null; costlyType: CostlyNumberType | null },
): GuardRule[] {
  const { costlyType } = message
  const country = message.country ?? noCountry
  const rules: GuardRule[] = []
  const isListed = countries.length === 0 || countries.includes(country)
  if (!isListed || deniedCountries.includes(country)) rules.push('COUNTRY_NOT_ALLOWED')
  if (costlyType !== null && !allowedNumberTypes.includes(costlyType)) rules.push('NUMBER_TYPE')
  return rules
}

/** Tells whether a subject has had as many unverified messages as its verified codes allow. */
export const isExhausted = ({ unverified, verified }: Counts, perDay: number): boolean =>
  unverified >= perDay + guardFigures.perVerified * verified

/** Counts of a prefix or network of today, with the message to judge, and of the day before. */
export type DayPair = { today: GuardCounts | undefined; before: GuardCounts | undefined }

/** Estimates what a prefix or network had in the last 24 hours before the message that was just counted. */
export function countLastDay({ today, before }: DayPair, now: number): Counts {
  const remaining = 1 - (now % dayMs) / dayMs
  return {
    unverified: (today?.unverified ?? 1) - 1 + remaining * (before?.unverified ?? 0),
    verified: (today?.verified ?? 0) + remaining * (before?.verified ?? 0),
  }
}

/** Estimates the unverified messages that are too new to judge, without the one that was just counted. */
export function countPending({ today, before }: DayPair, now: number): number {
  const slot = pendingSlot(now)
  const remaining = 1 - (now % pendingMs) / pendingMs
  const pendingOf = (counts: GuardCounts | undefined) => {
    if (counts?.slot === slot) return counts.pending + counts.pendingBefore * remaining
    return counts?.slot === slot - 1 ? counts.pending * remaining : 0
  }
  return Math.max(0, pendingOf(today) - 1 + pendingOf(before))
}

/** Weighs pending messages less than those that were left unverified. */
export const discountPending = ({ unverified, verified }: Counts, pending: number): Counts => ({
  unverified: unverified - Math.min(unverified, pending) * (1 - guardFigures.pendingShare),
  verified,
})

/**
 * Tells whether a network has had its visit: it verified nothing, and its first message of the last 24 hours is
 * longer ago than people need to correct a number or to ask for the code again.
 */
export function hasHadVisit({ today, before }: DayPair, now: number): boolean {
  if ((today?.verified ?? 0) + (before?.verified ?? 0) > 0) return false
  const first = [before, today].find((counts) => counts !== undefined && counts.firstAt > now - dayMs)
  return first !== undefined && first.firstAt < now - guardFigures.visitMs
}
