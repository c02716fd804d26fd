import { type GuardDecisions, guardRules, type GuardRule } from '../model/guard.ts'
import type { GuardSettings } from './rules.ts'
import type { Store } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'

export type GuardStatus = {
  mode: GuardSettings['mode']
  /** Start of the counted decisions: about 24 hours ago, on a full hour. */
  since: string
  rules: Array<{
    rule: GuardRule
    /** The configured limit in words; null if the rule is off. */
    limit: string | null
    flagged: number
    blocked: number
  }>
  /** Decisions by rule and country, most frequent first. */
  countries: GuardDecisions[]
}

const hours = 24

/** Reads the guard's decisions of the last 24 hours by rule and by country. */
export async function readGuardStatus(
  store: Store<'guard'>,
  settings: GuardSettings,
  now: number,
): Promise<GuardStatus> {
  const fromHour = Math.floor(now / hourMs) - hours + 1
  const decisions = await store.read.guard.decisions(fromHour)
  const sumDecisions = (rule: GuardRule, kind: 'flagged' | 'blocked') =>
    decisions.reduce((sum, decision) => (decision.rule === rule ? sum + decision[kind] : sum), 0)
  return {
    mode: settings.mode,
    since: new Date(fromHour * hourMs).toISOString(),
    rules: guardRules.map((rule) => ({
      rule,
      limit: describeLimit(rule, settings),
      flagged: sumDecisions(rule, 'flagged'),
      blocked: sumDecisions(rule, 'blocked'),
    })),
    countries: decisions.toSorted(
      (a, b) =>
        b.flagged + b.blocked - a.flagged - a.blocked ||
        guardRules.indexOf(a.rule) - guardRules.indexOf(b.rule) ||
        a.country.localeCompare(b.country),
    ),
  }
}

function describeLimit(rule: GuardRule, settings: GuardSettings): string | null {
  const { unverified, hourlyPercent, dailyPercent, caps } = settings
  const list = (prefix: string, countries: readonly string[]) =>
    countries.length > 0 ? prefix + countries.join(' ') : null
  const adaptive = (floor: number, percent: number) =>
    floor > 0 ? `${floor} unverified, or ${percent} % of the verified` : null
  const fixed = (max: number, unit: string) => (max > 0 ? `${max} ${unit}` : null)
  switch (rule) {
    case 'COUNTRY_NOT_ALLOWED':
      return list('only ', settings.countries)
    case 'COUNTRY_DENIED':
      return list('all but ', settings.deniedCountries)
    case 'COUNTRY_HOURLY':
      return adaptive(unverified.countryPerHour, hourlyPercent)
    case 'COUNTRY_DAILY':
      return adaptive(unverified.countryPerDay, dailyPercent)
    case 'PREFIX_HOURLY':
      return adaptive(unverified.prefixPerHour, hourlyPercent)
    case 'PREFIX_DAILY':
      return adaptive(unverified.prefixPerDay, dailyPercent)
    case 'ADDRESS_HOURLY':
      return adaptive(unverified.addressPerHour, hourlyPercent)
    case 'ADDRESS_DAILY':
      return adaptive(unverified.addressPerDay, dailyPercent)
    case 'ADDRESS_COUNTRIES':
      return fixed(unverified.addressCountries, 'countries')
    case 'APPLICATION_DAILY':
      return fixed(caps.applicationPerDay, 'messages')
    case 'TOTAL_DAILY':
      return fixed(caps.totalPerDay, 'messages')
  }
}
