import type { GuardCounts, GuardRule } from '../model/guard.ts'
import { utcDay } from '../../shared/durations.ts'

/**
 * Unverified messages that may leave in 24 hours. Evidence are the distinct phones that this developer verified in the last
 * 14 days: in a country, to a prefix, from a network or a device. Nothing here is a ratio, which an attacker could lower, and
 * nothing flips: each verified phone adds to what may leave.
 */
export const allowances = {
  country: { base: 0, perPhone: 20 },
  /** Messages of the last two minutes count a fifth, up to `inFlight` of them: most are about to be verified. */
  prefix: { base: 30, perPhone: 20, inFlight: 30, rule: 'PREFIX_UNVERIFIED' },
  network: { base: 30, perPhone: 10, inFlight: Infinity, rule: 'NETWORK_UNVERIFIED' },
  device: { base: 5, perPhone: 5, inFlight: 0, rule: 'DEVICE_UNVERIFIED' },
  /** Messages that all countries of a developer may send together beyond their own allowances, and one of them. */
  pool: { perDay: 300, perCountry: 100 },
  /**
   * Codes of other systems to a country, whose verification is not seen: as many times the greatest of the last 14 days. Days
   * of the last week count up to `base` or the greatest of the week before. A day that used up its allowance does not raise
   * the next ones, so an attacker cannot raise it.
   */
  relay: { base: 300, growth: 3 },
  /** A country that `guard.countries` names has its own base instead of the pool: a launch is the operator's decision. */
  named: { base: 100, launchBase: 1_000, launchDays: 7 },
} as const

/**
 * While the allowance of a country, or of a prefix with evidence, is scarce, messages go to the networks (devices) that sent
 * least: once `from` of it is spent, or of the country's would be in a day at the pace of the last hour, if that had `hour`
 * messages and `least` is spent. Each network gets one message, one for each phone that was verified from there, and up to
 * `more` others, which decrease to none at a pace of `to`. People ask again and mistype numbers: to a phone that had a message
 * that day, or soon after another, these decrease to none only at a pace of `again`, and one is added until `once` is spent.
 * The last part is for networks in which a phone was verified: it lasts them for a day. Eight refused messages of a network
 * count as one that it sent: customers who are refused try again several times, and must get their code on the next day.
 */
export const scarcity = {
  from: 0.5,
  hour: 60,
  least: 0.1,
  more: 5,
  to: 0.6,
  again: 1,
  once: 0.6,
  last: 0.98,
  refused: 0.125,
} as const

/** Unverified messages of one subject in the last 24 hours, and its evidence. */
export type Usage = {
  unverified: number
  /** Those of the last hour that are not in flight. */
  lastHour: number
  inFlight: number
  evidence: number
  /** Unverified messages of the last 14 days: of networks and devices. */
  earlier: number
}

/** Usages that the allowances are compared with. */
export type Usages = {
  country: Usage
  /** Base of the country's own allowance if `guard.countries` names it. */
  namedBase: number | undefined
  /** Messages that left beyond the allowances of their countries, and those of this country. */
  pool: number
  drawn: number
  prefix: Usage
  network: Usage | undefined
  device: Usage | undefined
  /** Whether this phone had a message in the last 24 hours. */
  isRepeat: boolean
}

/** Own allowance of a subject. */
export const allowanceOf = (kind: 'country' | 'prefix' | 'network' | 'device', evidence: number): number =>
  allowances[kind].base + allowances[kind].perPhone * evidence

/** Allowance of a country. @param base its own if `guard.countries` names it; undefined: the pool pays */
export const countryAllowance = (evidence: number, base: number | undefined): number =>
  allowanceOf('country', evidence) + (base ?? allowances.pool.perCountry)

/** Allowance of the codes of other systems to a country. @param held what it was when it was spent; 0 if it was not */
export function relayAllowance(
  { usualDay = 0, earlierDay = 0, launchDay }: Pick<GuardCounts, 'usualDay' | 'earlierDay' | 'launchDay'>,
  held: number,
  now: number,
): number {
  const { relay, named } = allowances
  const own = Math.max(relay.base, namedBase(launchDay, now) ?? 0)
  if (held > 0) return Math.max(held, own)
  const least = launchDay ? named.launchBase : relay.base
  return Math.max(own, relay.growth * Math.min(usualDay, Math.max(least, earlierDay)))
}

/** Own base of the allowance of a country that `guard.countries` has named since a day: more in its first days. */
export const namedBase = (launchDay: number | undefined, now: number): number | undefined => {
  const { base, launchBase, launchDays } = allowances.named
  return launchDay && (utcDay(now) < launchDay + launchDays ? launchBase : base)
}

/** Tells whether a message would leave beyond the own allowance of its country, so that the pool pays for it. */
export const isFromPool = (
  { country, namedBase }: Pick<Usages, 'country' | 'namedBase'>,
  times = 1,
): boolean =>
  namedBase === undefined && country.unverified >= times * allowanceOf('country', country.evidence)

/**
 * Counts what a country may send: beyond its own allowance only what other countries left in the pool. Else an attack on many
 * countries would spend the pool before any of them is scarce, and customers of small countries would get nothing.
 */
function availableTo({ country, namedBase, pool, drawn }: Usages, times: number): number {
  const { perDay, perCountry } = allowances.pool
  const fromPool = Math.min(times * perCountry, drawn + Math.max(0, times * perDay - pool))
  const base = namedBase === undefined ? fromPool : times * namedBase
  return base + times * allowanceOf('country', country.evidence)
}

/**
 * Lists the allowances that one more message would exceed.
 *
 * @param times multiplies all of them
 */
export function findExceeded(usages: Usages, times = 1): GuardRule[] {
  const { country, namedBase, prefix } = usages
  const rules: GuardRule[] = []
  if (country.unverified >= times * countryAllowance(country.evidence, namedBase))
    rules.push('COUNTRY_UNVERIFIED')
  if (isFromPool(usages, times) && usages.pool >= times * allowances.pool.perDay)
    rules.push('POOL_UNVERIFIED')
  const available = availableTo(usages, times)
  const spent = country.unverified / available
  const isHasty = country.lastHour >= scarcity.hour && spent >= scarcity.least
  const pace = isHasty ? Math.max(spent, (24 * country.lastHour) / available) : spent
  const ofPrefix = prefix.evidence > 0 ? spentShare('prefix', prefix) / times : 0
  if (rules.length === 0 && !isFair(usages, Math.max(spent, ofPrefix), Math.max(pace, ofPrefix)))
    rules.push('FAIR_SHARE')
  for (const kind of ['prefix', 'network', 'device'] as const) {
    const usage = usages[kind]
    if (usage && spentShare(kind, usage) >= times) rules.push(allowances[kind].rule)
  }
  return rules
}

/** Tells which part of its allowance a subject has spent. */
function spentShare(kind: 'prefix' | 'network' | 'device', usage: Usage): number {
  const { unverified, inFlight, evidence } = usage
  const weighed = unverified - 0.8 * Math.min(inFlight, allowances[kind].inFlight, unverified)
  return weighed / allowanceOf(kind, evidence)
}

/**
 * Tells whether a message comes from a network or device that sent least, if its country or prefix is scarce. If the
 * application tells neither, it does.
 */
function isFair({ network, device, isRepeat }: Usages, spent: number, pace: number): boolean {
  const { from, more, to, again, once, last } = scarcity
  if (pace < from || !(network ?? device)) return true
  // Anyone can make up the name of a device; only one that verified a phone speaks for its owner.
  return [network, network && device?.evidence === 0 ? undefined : device].some((usage) => {
    if (!usage || (spent >= last && usage.evidence === 0)) return false
    const asksAgain = isRepeat || usage.inFlight > 0
    const end = asksAgain ? again : to
    const extra = more * Math.max(0, (end - pace) / (end - from)) + Number(asksAgain && spent < once)
    // Customers of a network that verifies phones share it with those who do not.
    const sent = usage.evidence > 0 ? usage.unverified : usage.earlier
    return sent < 1 + usage.evidence + extra
  })
}
