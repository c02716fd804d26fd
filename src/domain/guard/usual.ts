import { alertMs, type GuardAlert, type GuardRule } from '../model/guard.ts'
import { noCountry } from '../model/phone.ts'
import { hourMs } from '../../shared/durations.ts'
import { allowances } from './allowances.ts'
import { historyKey, type GuardedMessage } from './row-keys.ts'
import { hourOf, type Ledger, type Subject } from './subject.ts'

/** When the guard alerts: see `GuardAlert`. */
const alarm = {
  rate: 3,
  /** Least unverified messages of ten minutes. */
  perTenMinutes: 10,
  nothingVerified: 30,
  day: 1.5,
  /** Least messages above the greatest of the last days: those of small countries differ much. */
  dayMore: 30,
  /** Growth that becomes usual in spite of an alert: else a long attack would become the measure of itself. */
  growth: 1.5,
} as const

const weekHours = 7 * 24
/** Usual hour of a country that has none yet. */
const unknown = -1

/**
 * Moves the hours that ended since the last message of a country into its history, once an hour, and computes what is usual
 * now: the mean of this hour, and of those next to it, of the last two weeks, and the greatest of the 14 days before the last.
 */
export function noteHours(ledger: Ledger, country: Subject, isRelayed = false): void {
  const { now, windows, alertedAt } = country
  const hour = hourOf(now)
  const { hour: from = 0, usualHour = 0, usualDay = 0 } = windows
  if (from === hour) return
  const history = ledger.open(historyKey(country.key))
  // Codes of other systems count in full: of them an attacker gets the allowance, which is held while it is spent.
  const limit = isRelayed ? Infinity : alarm.growth * Math.max(usualHour, usualDay / 24, 1)
  for (let age = Math.min(25, hour - from); age >= 1; age--) {
    const count = country.countAt('unverified', age)
    const isDuringAlert = Math.abs((hour - age + 0.5) * hourMs - alertedAt) < 1.5 * alertMs
    const counted = isDuringAlert ? Math.min(count, limit) : count
    if (counted > 0) history.add('hours', (hour - age) * hourMs, counted)
  }
  const sum = (first: number, hours: number) => {
    let count = 0
    for (let age = first; age < first + hours; age++) count += history.countAt('hours', age)
    return count
  }
  // In the first week of a country there is no usual hour yet.
  const isYoung = sum(weekHours - 1, 15 * 24) === 0
  const days = Array.from({ length: 14 }, (_, day) => sum(25 + 24 * day, 24))
  country.note({
    hour,
    usualHour: isYoung ? unknown : (sum(weekHours - 1, 3) + sum(2 * weekHours - 1, 3)) / 6,
    usualDay: Math.max(...days),
    ...(isRelayed && { earlierDay: Math.max(...days.slice(6)) }),
  })
}

type Excess = Pick<GuardAlert, 'reason' | 'unverified' | 'usual'>

/**
 * Finds out, at most once an hour, whether the pool is spent, or whether a country, a prefix of it, or all codes of other
 * systems together, send more unverified messages than usual.
 *
 * @param rules that the message violates
 * @param others the prefix and the pool of a send; or `relays`, all codes of other systems, whose verification is not seen
 */
export function findAlert(
  { phone, country: code }: Pick<GuardedMessage, 'phone' | 'country'>,
  rules: readonly GuardRule[],
  country: Subject,
  { prefix, pool, relays }: { prefix?: Subject; pool?: Subject; relays?: Subject },
): GuardAlert | undefined {
  const raise = (of: Subject, { reason, unverified, usual }: Excess, digits: string | null = null) => {
    of.alert()
    const [sent, often] = [Math.round(unverified), Math.round(usual)]
    return { country: code ?? noCountry, prefix: digits, reason, unverified: sent, usual: often }
  }
  const spent = (of: Subject, reason: GuardAlert['reason']): Excess => ({
    reason,
    unverified: of.usage().unverified,
    usual: of.windows.usualDay ?? 0,
  })
  const payer = rules.includes('POOL_UNVERIFIED') ? pool : undefined
  if (payer && !payer.hasAlerted()) return raise(payer, spent(payer, 'pool'))
  if (country.hasAlerted()) return undefined
  const excess = findExcess(country, prefix !== undefined)
  if (excess) return raise(country, excess)
  const ofPrefix = prefix && findExcess(prefix, true)
  if (ofPrefix) return raise(country, ofPrefix, phone.slice(0, -4))
  if (rules.includes('COUNTRY_UNVERIFIED') || rules.includes('RELAY_VOLUME'))
    return raise(country, spent(country, 'allowance'))
  if (!relays || relays.hasAlerted()) return undefined
  // More than one country gets, whose own alert says more.
  const ofRelays = findExcess(relays, false, allowances.relay.base + 1)
  return (
    ofRelays &&
    raise(relays, { ...ofRelays, reason: ofRelays.reason === 'rate' ? 'relay_rate' : 'relay_day' })
  )
}

/**
 * Compares what a subject sends with what is usual.
 *
 * @param isSeen false for codes of other systems
 * @param firstDay as many in a day are unusual while nothing is usual
 */
function findExcess(subject: Subject, isSeen: boolean, firstDay = Infinity): Excess | undefined {
  const { unverified, inFlight, evidence } = subject.usage()
  const { usualHour = unknown, usualDay = 0 } = subject.windows
  // No verification of those is seen later.
  const settled = isSeen ? unverified - 0.8 * inFlight : unverified
  // Those in flight may be verified yet.
  const recent = subject.total('recent') - inFlight
  const usual = Math.max(0, usualHour) / 6
  const isUsualKnown = usualHour !== unknown && usualDay > 0
  // Those in flight count in full: after a burst no later message may come to raise the alert.
  if (isSeen && evidence === 0 && unverified >= alarm.nothingVerified)
    return { reason: 'nothing_verified', unverified, usual: 0 }
  // Rates differ by chance. While there is no usual, verified phones are the measure.
  const isRate = isUsualKnown
    ? recent >= alarm.rate * usual + 2 * Math.sqrt(usual)
    : evidence > 0 && settled >= alarm.rate * evidence
  if (isRate && recent >= alarm.perTenMinutes) return { reason: 'rate', unverified: recent, usual }
  const least = isUsualKnown ? usualDay + alarm.dayMore : firstDay
  if (settled >= alarm.day * usualDay && settled >= least)
    return { reason: 'day', unverified: settled, usual: usualDay }
  return undefined
}
