import type { GuardRule } from '../model/guard.ts'

/**
 * Unverified messages that may leave in 24 hours. Evidence are the distinct phones that this developer verified in the last
 * 14 days: in a country, to a prefix, from a network or a device. Nothing here is a ratio, which an attacker could lower, and
 * nothing flips: each verified phone adds to what may leave.
 */
export const allowances = {
  country: { base: 0, perPhone: 20 },
  prefix: { base: 30, perPhone: 20 },
  network: { base: 30, perPhone: 10 },
  device: { base: 5, perPhone: 5 },
  /** Messages that all countries of a developer may send together beyond their own allowances, and one of them. */
  pool: { perDay: 300, perCountry: 100 },
  /**
   * Codes of other systems to a country, whose verification is not seen: as many times the greatest of the days one to two
   * weeks ago. Days with an alert count up to twice what was usual by then.
   */
  relay: { base: 300, growth: 3, duringAlert: 2 },
  /** A country that `guard.countries` names has its own base instead of the pool: a launch is the operator's decision. */
  named: { base: 100, launchBase: 1_000, launchDays: 7 },
} as const

/** Share by which messages of the last two minutes count, and of how many: most are about to be verified. */
const inFlight = { share: 0.2, prefixMax: 30, networkMax: Infinity, deviceMax: 0 } as const

/**
 * From this share of a country's allowance on, messages go to the networks (devices) that sent least: once so much is spent, or
 * would be in a day at the pace of the last hour, if that had `hour` messages. Networks get up to `few` at first, from `to` on
 * one; one in flight does not count, since people correct a number that they mistyped. Each phone that was verified from there
 * adds one, and a phone that had a message today has some more, since people ask again. The last part is for those from which a
 * phone was verified. Two refused messages of a network count as one that it sent.
 */
export const scarcity = {
  from: 0.5,
  hour: 60,
  few: 4,
  to: 0.55,
  repeats: 3,
  last: 0.95,
  refused: 0.5,
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
  /** Messages that left beyond the allowances of their countries. */
  pool: number
  prefix: Usage
  network: Usage | undefined
  device: Usage | undefined
  /** Whether this phone had a message in the last 24 hours. */
  isRepeat: boolean
}

type SubjectKind = 'country' | 'prefix' | 'network' | 'device'

/** Own allowance of a subject. */
export const allowanceOf = (kind: SubjectKind, evidence: number): number =>
  allowances[kind].base + allowances[kind].perPhone * evidence

/** Weighs messages in flight less than those that were left unverified. */
const weigh = ({ unverified, inFlight: flying }: Usage, max: number): number =>
  unverified - (1 - inFlight.share) * Math.min(flying, max, unverified)

/** Allowance of the codes of other systems to a country. */
export const relayAllowance = (usualDay: number, namedBase = 0): number =>
  Math.max(allowances.relay.base, allowances.relay.growth * usualDay, namedBase)

/** Tells whether a message would leave beyond the own allowance of its country, so that the pool pays for it. */
export const isFromPool = (country: Usage, namedBase: number | undefined, times = 1): boolean =>
  namedBase === undefined && country.unverified >= times * allowanceOf('country', country.evidence)

/**
 * Lists the allowances that one more message would exceed.
 *
 * @param times multiplies all of them
 */
export function findExceeded(usages: Usages, times = 1): GuardRule[] {
  const { country, namedBase, pool, prefix, network, device } = usages
  const rules: GuardRule[] = []
  const own = allowanceOf('country', country.evidence) + (namedBase ?? allowances.pool.perCountry)
  const share = country.unverified / (times * own)
  const hour = country.lastHour >= scarcity.hour ? country.lastHour : 0
  const pace = Math.max(share, (24 * hour) / (times * own))
  if (share >= 1) rules.push('COUNTRY_UNVERIFIED')
  if (isFromPool(country, namedBase, times) && pool >= times * allowances.pool.perDay)
    rules.push('POOL_UNVERIFIED')
  if (rules.length === 0 && pace >= scarcity.from && !isFair(usages, share, pace)) rules.push('FAIR_SHARE')
  const isExceeded = (kind: SubjectKind, usage: Usage | undefined, max: number) =>
    usage !== undefined && weigh(usage, max) >= times * allowanceOf(kind, usage.evidence)
  if (isExceeded('prefix', prefix, inFlight.prefixMax)) rules.push('PREFIX_UNVERIFIED')
  if (isExceeded('network', network, inFlight.networkMax)) rules.push('NETWORK_UNVERIFIED')
  if (isExceeded('device', device, inFlight.deviceMax)) rules.push('DEVICE_UNVERIFIED')
  return rules
}

/** Tells whether a message is among the least of a scarce country. Without a network or device it is. */
function isFair({ network, device, isRepeat }: Usages, share: number, pace: number): boolean {
  // Anyone can make up the name of a device; only one that verified a phone speaks for its owner.
  const told = network
    ? [network, ...(device && device.evidence > 0 ? [device] : [])]
    : device
      ? [device]
      : []
  return told.length === 0 || told.some((usage) => isAmongLeast(usage, share, pace, isRepeat))
}

/** Tells whether a network or device is among those that sent least. */
function isAmongLeast(
  { unverified, earlier, inFlight: flying, evidence }: Usage,
  share: number,
  pace: number,
  isRepeat: boolean,
): boolean {
  const { few, from, to, repeats, last } = scarcity
  if (share >= last && evidence === 0) return false
  const base = Math.max(1, few - ((few - 1) * (pace - from)) / (to - from))
  // Customers of a network that verifies phones share it with those who do not.
  return (
    (evidence > 0 ? unverified : earlier - Math.min(flying, 1)) < base + evidence + (isRepeat ? repeats : 0)
  )
}
