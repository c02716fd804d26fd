import type { Clock } from '../model/clock.ts'
import { type GuardDecisions, guardRules, type GuardRule } from '../model/guard.ts'
import { costlyNumberTypes } from '../model/number-type.ts'
import { guardFigures, type GuardSettings } from './rules.ts'
import type { Store } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'

export type GuardStatus = {
  mode: GuardSettings['mode']
  /** Start of the counted decisions: about 24 hours ago, on a full hour. */
  since: string
  rules: Array<{
    rule: GuardRule
    /** The limit of the rule, in words; null if it is off. */
    limit: string | null
    flagged: number
    blocked: number
  }>
  /** Decisions by rule and country, most frequent first. */
  countries: GuardDecisions[]
  /** Countries whose conversion is less than half of what it was in the 14 days before. */
  alerts: Array<{ developerId: string; country: string; until: string }>
}

/** The guard as a developer may see it: its rules, and the alerts about messages of their own applications. */
export type DeveloperGuardStatus = {
  mode: GuardSettings['mode']
  rules: Array<{ rule: GuardRule; limit: string | null }>
  alerts: Array<{ country: string; until: number }>
}

export type GuardStatusService = ReturnType<typeof createGuardStatusService>

/** Creates the service that shows the guard to developers. Counts of other developers stay with the operator. */
export function createGuardStatusService(needs: {
  store: Store<'guard'>
  clock: Clock
  settings(): GuardSettings
}) {
  return {
    /** Reads the rules in effect, and the developer's own alerts. */
    async read(developerId: string): Promise<DeveloperGuardStatus> {
      const settings = needs.settings()
      const alerts = await needs.store.read.guard.alerts(needs.clock.now())
      return {
        mode: settings.mode,
        rules: guardRules.map((rule) => ({ rule, limit: describeLimit(rule, settings) })),
        alerts: alerts.flatMap(({ subject, alertUntil }) => {
          const [owner, country = ''] = subject.split(' ')
          return owner === developerId ? [{ country, until: alertUntil }] : []
        }),
      }
    },
  }
}

const hours = 24

/** Reads the guard's decisions of the last 24 hours by rule and by country, and its current alerts. */
export async function readGuardStatus(
  store: Store<'guard'>,
  settings: GuardSettings,
  now: number,
): Promise<GuardStatus> {
  const fromHour = Math.floor(now / hourMs) - hours + 1
  const decisions = await store.read.guard.decisions(fromHour)
  const alerts = await store.read.guard.alerts(now)
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
    alerts: alerts.map(({ subject, alertUntil }) => {
      const [developerId = '', country = ''] = subject.split(' ')
      return { developerId, country, until: new Date(alertUntil).toISOString() }
    }),
  }
}

function describeLimit(rule: GuardRule, settings: GuardSettings): string | null {
  const { countries, deniedCountries, allowedNumberTypes, totalPerDay } = settings
  const { countryPerDay, prefixPerDay, networkPerDay, perVerified, convertsFrom, visitMs } = guardFigures
  const growing = (perDay: number) =>
    `${perDay} unverified messages a day, and ${perVerified} for each verified code`
  switch (rule) {
    case 'COUNTRY_NOT_ALLOWED': {
      const parts = [
        ...(countries.length > 0 ? [`only ${countries.join(' ')}`] : []),
        ...(deniedCountries.length > 0 ? [`all but ${deniedCountries.join(' ')}`] : []),
      ]
      return parts.length > 0 ? parts.join('; ') : null
    }
    case 'NUMBER_TYPE': {
      const refused = costlyNumberTypes.filter((type) => !allowedNumberTypes.includes(type))
      return refused.length > 0 ? `no ${refused.join(', ')} numbers` : null
    }
    case 'COUNTRY_UNVERIFIED':
      return `${growing(countryPerDay)}; no limit from ${convertsFrom} codes and a fifth verified in 14 days`
    case 'PREFIX_UNVERIFIED':
      return `${growing(prefixPerDay)}, to numbers that differ in their last four digits`
    case 'NETWORK_UNVERIFIED':
      return `${growing(networkPerDay)}; ${visitMs / 60_000} minutes a day while few of the country's codes are verified`
    case 'TOTAL_DAILY':
      return totalPerDay > 0 ? `${totalPerDay} messages of all developers` : null
  }
}
