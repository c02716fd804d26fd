import type { GuardAlert, GuardRow } from '../model/guard.ts'
import { alertMs } from '../model/guard.ts'
import { hourMs } from '../../shared/durations.ts'
import { allowances } from './allowances.ts'
import {
  addToHistory,
  closeHistory,
  hourOf,
  openHistory,
  recentlyUnverified,
  usageOf,
  type Subject,
} from './subject.ts'

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
 * Moves the hours that ended since the last message of a country into its history, and computes what is usual now: the
 * mean of this hour, and of those next to it, of the last two weeks, and the greatest of the 14 days before the last.
 *
 * For codes of other systems the last week is left out. Their allowance follows from what is usual, so that an attacker
 * who spends it raises the next one: once a week instead of once a day.
 *
 * @param stored the country's row before this message
 * @param readHistory called once an hour
 * @returns the history to store; undefined if it is still the same hour
 */
export function noteHours(
  country: Subject,
  stored: GuardRow | undefined,
  readHistory: () => GuardRow | undefined,
  isRelayed = false,
): GuardRow | undefined {
  const { about, now } = country
  const hour = hourOf(now)
  const from = about.hour
  if (from === hour) return undefined
  about.hour = hour
  const history = readHistory()
  if (!stored && !history) return undefined
  const hours = openHistory(history, now)
  const [newest = 0, ...counts] = stored?.windows[0] ?? []
  const [growth, least] = isRelayed
    ? [allowances.relay.duringAlert, allowances.relay.base / 24]
    : [alarm.growth, 1]
  const limit = growth * Math.max(about.usualHour, about.usualDay / 24, least)
  for (const [age, count] of counts.entries()) {
    const ended = newest - age
    if (ended < from || ended >= hour) continue
    const isDuringAlert = Math.abs((ended + 0.5) * hourMs - country.alertedAt) < 1.5 * alertMs
    addToHistory(hours, ended * hourMs, isDuringAlert ? Math.min(count, limit) : count)
  }
  const at = (age: number) => hours[1 + age] ?? 0
  const alike = [weekHours, 2 * weekHours].flatMap((age) => [at(age - 1), at(age), at(age + 1)])
  // In the first week of a country there is no usual hour yet.
  const isYoung = sum(hours.slice(weekHours)) === 0
  about.usualHour = isYoung ? unknown : sum(alike) / alike.length
  about.usualDay = 0
  for (let day = isRelayed ? 6 : 0; day < 14; day++) {
    const first = 26 + 24 * day
    about.usualDay = Math.max(about.usualDay, sum(hours.slice(first, first + 24)))
  }
  return closeHistory(hours, now)
}

const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0)

/**
 * Finds out whether a country, or a prefix of it, sends more unverified messages than usual. At most once an hour.
 *
 * @param prefix with its first digits; undefined for codes of other systems, whose verification is not seen
 * @param isSpent whether the allowance of the country is spent, so that its customers are refused
 */
export function findAlert(
  code: string,
  country: Subject,
  prefix: { digits: string; subject: Subject } | undefined,
  isSpent: boolean,
): GuardAlert | undefined {
  if (country.alertedAt > country.now - alertMs) return undefined
  const found =
    findExcess(country, prefix !== undefined) ??
    (prefix && findExcess(prefix.subject, true)) ??
    (isSpent ? spent(country) : undefined)
  if (!found) return undefined
  const { reason, unverified, usual, subject } = found
  return {
    country: code,
    prefix: prefix && subject !== country ? prefix.digits : null,
    reason,
    unverified: Math.round(unverified),
    usual: Math.round(usual),
  }
}

const spent = (subject: Subject) =>
  ({
    subject,
    reason: 'allowance',
    unverified: usageOf(subject).unverified,
    usual: subject.about.usualDay,
  }) as const

/** Alerts once an hour that the pool is spent: many countries at a time, each with few messages. */
export const poolAlert = (country: string, pool: Subject): GuardAlert | undefined =>
  pool.alertedAt > pool.now - alertMs
    ? undefined
    : { country, prefix: null, reason: 'pool', unverified: usageOf(pool).unverified, usual: 0 }

function findExcess(subject: Subject, isSeen: boolean) {
  const { unverified, inFlight, evidence } = usageOf(subject)
  const { usualHour, usualDay } = subject.about
  const settled = unverified - 0.8 * inFlight
  const recent = recentlyUnverified(subject)
  const usual = Math.max(0, usualHour) / 6
  const isUsualKnown = usualHour !== unknown && usualDay > 0
  // Those in flight count in full: after a burst no later message may come to raise the alert.
  if (isSeen && evidence === 0 && unverified >= alarm.nothingVerified)
    return { subject, reason: 'nothing_verified', unverified, usual: 0 } as const
  // Rates differ by chance. While there is no usual, verified phones are the measure.
  const isRate = isUsualKnown
    ? recent >= alarm.rate * usual + 2 * Math.sqrt(usual)
    : evidence > 0 && settled >= alarm.rate * evidence
  if (isRate && recent >= alarm.perTenMinutes)
    return { subject, reason: 'rate', unverified: recent, usual } as const
  if (isUsualKnown && settled >= alarm.day * usualDay && settled >= usualDay + alarm.dayMore)
    return { subject, reason: 'day', unverified: settled, usual: usualDay } as const
  return undefined
}
