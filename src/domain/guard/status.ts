import type { ChallengeKind } from '../model/challenge.ts'
import type { Clock } from '../model/clock.ts'
import { alertMs, type GuardDecisions, guardRules, type GuardRow, type GuardRule } from '../model/guard.ts'
import { restrictedNumberTypes } from '../model/number-type.ts'
import type { Store } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'
import { allowanceOf, allowances } from './allowances.ts'
import { ownAllowance } from './relayed.ts'
import type { GuardSettings } from './settings.ts'
import { formatPrice } from '../model/price.ts'
import { namedBase, openSubject, total, usageOf } from './subject.ts'

/** Allowance of a country for 24 hours, and its use. */
export type CountryUsage = {
  developerId: string
  country: string
  /** Distinct phones that were verified in the last 14 days. */
  verifiedPhones: number
  allowance: number
  unverified: number
  /** Those of them that the pool paid for. */
  fromPool: number
}

/** Allowance of all countries of a developer beyond their own, and its use. */
export type PoolUsage = { developerId: string; allowance: number; unverified: number }

/** Codes of other systems to a country in 24 hours, and how many it takes without evidence. */
export type RelayUsage = { developerId: string; country: string; allowance: number; unverified: number }

export type GuardUsage = {
  /** Those of countries, the most used first. */
  allowances: CountryUsage[]
  /** As `allowances`, for codes of other systems. */
  relays: RelayUsage[]
  pools: PoolUsage[]
  /** Countries with an alert. */
  alerts: Array<{ developerId: string; country: string; until: string }>
}

type RuleStatus = {
  rule: GuardRule
  /** The limit of the rule, in words; null if it is off. */
  limit: string | null
}

export type GuardStatus = GuardUsage & {
  mode: GuardSettings['mode']
  /** Null without one. */
  challenge: ChallengeKind | null
  /** Start of the counted decisions: about 24 hours ago, on a full hour. */
  since: string
  rules: Array<RuleStatus & { flagged: number; blocked: number }>
  /** Decisions by rule and country, most frequent first. */
  countries: GuardDecisions[]
}

/** The guard as a developer may see it. */
export type DeveloperGuardStatus = Omit<GuardUsage, 'pools'> & {
  mode: GuardSettings['mode']
  challenge: ChallengeKind | null
  rules: RuleStatus[]
  pool: Pick<PoolUsage, 'allowance' | 'unverified'>
}

export type GuardStatusService = ReturnType<typeof createGuardStatusService>

/** Creates the service that shows the guard to developers. Counts of other developers stay with the operator. */
export function createGuardStatusService(needs: {
  store: Store<'guard'>
  clock: Clock
  settings(): GuardSettings
}) {
  return {
    /** Tells whether the guard blocks. */
    isEnforced: () => needs.settings().mode === 'enforce',

    async read(developerId: string): Promise<DeveloperGuardStatus> {
      const settings = needs.settings()
      const now = needs.clock.now()
      const { pools, ...usage } = await readUsage(needs.store, settings, `${developerId} `, now)
      return {
        mode: settings.mode,
        challenge: settings.challenge?.kind ?? null,
        rules: guardRules.map((rule) => ({ rule, limit: describeLimit(rule, settings) })),
        ...usage,
        pool: pools[0] ?? { allowance: allowances.pool.perDay, unverified: 0 },
      }
    },
  }
}

/** Reads the guard's decisions of the last 24 hours, and what is spent of the allowances of all developers. */
export async function readGuardStatus(
  store: Store<'guard'>,
  settings: GuardSettings,
  now: number,
): Promise<GuardStatus> {
  const fromHour = Math.floor(now / hourMs) - 23
  const decisions = await store.read.guard.decisions(fromHour)
  const sum = (rule: GuardRule, kind: 'flagged' | 'blocked') =>
    decisions.reduce((count, decision) => (decision.rule === rule ? count + decision[kind] : count), 0)
  return {
    mode: settings.mode,
    challenge: settings.challenge?.kind ?? null,
    since: new Date(fromHour * hourMs).toISOString(),
    rules: guardRules.map((rule) => ({
      rule,
      limit: describeLimit(rule, settings),
      flagged: sum(rule, 'flagged'),
      blocked: sum(rule, 'blocked'),
    })),
    countries: decisions.toSorted(
      (a, b) =>
        b.flagged + b.blocked - a.flagged - a.blocked ||
        guardRules.indexOf(a.rule) - guardRules.indexOf(b.rule) ||
        a.country.localeCompare(b.country),
    ),
    ...(await readUsage(store, settings, 'dev_', now)),
  }
}

/** Reads what developers have spent. @param prefix of the names of their rows */
async function readUsage(
  store: Store<'guard'>,
  settings: GuardSettings,
  prefix: string,
  now: number,
): Promise<GuardUsage> {
  const usage: GuardUsage = { allowances: [], relays: [], pools: [], alerts: [] }
  for (const [subject, row] of await store.read.guard.named(prefix)) {
    const [developerId = '', country = '', kind] = subject.split(' ')
    if (country === '' || subject.endsWith(' history')) continue
    if (country === 'pool') {
      const { unverified } = usageOf(openSubject(row, now))
      usage.pools.push({ developerId, allowance: allowances.pool.perDay, unverified })
      continue
    }
    if (kind === 'relay') usage.relays.push(toRelayUsage(developerId, country, row, settings, now))
    else usage.allowances.push(toCountryUsage(developerId, country, row, settings, now))
    if (row.alertedAt > now - alertMs)
      usage.alerts.push({ developerId, country, until: new Date(row.alertedAt + alertMs).toISOString() })
  }
  usage.allowances.sort(byUse)
  usage.relays.sort(byUse)
  return usage
}

const share = ({ unverified, allowance }: RelayUsage) => unverified / allowance
const byUse = (a: RelayUsage, b: RelayUsage) => share(b) - share(a) || (a.country < b.country ? -1 : 1)

function toRelayUsage(
  developerId: string,
  country: string,
  row: GuardRow,
  settings: GuardSettings,
  now: number,
): RelayUsage {
  const relay = openSubject(row, now)
  const allowance = Math.round(ownAllowance(settings, relay, country))
  return { developerId, country, allowance, unverified: usageOf(relay).unverified }
}

function toCountryUsage(
  developerId: string,
  country: string,
  row: GuardRow,
  settings: GuardSettings,
  now: number,
): CountryUsage {
  const subject = openSubject(row, now)
  const { unverified, evidence } = usageOf(subject)
  const base = namedBase(settings, subject, country) ?? allowances.pool.perCountry
  return {
    developerId,
    country,
    verifiedPhones: evidence,
    allowance: allowanceOf('country', evidence) + base,
    unverified,
    fromPool: total(subject.drawn),
  }
}

function describeLimit(rule: GuardRule, settings: GuardSettings): string | null {
  const { countries, deniedCountries, allowedNumberTypes, totalPerDay, spendPerDay } = settings
  const { country, prefix, network, device, pool, relay } = allowances
  const growing = ({ base, perPhone }: { base: number; perPhone: number }, of: string) =>
    `${base} unverified messages in 24 hours, and ${perPhone} for each phone verified ${of} in 14 days`
  switch (rule) {
    case 'DENY_RULE':
      return 'destinations and networks that a developer denied: otpd guard rules'
    case 'COUNTRY_NOT_ALLOWED': {
      const parts = [
        ...(countries.length > 0 ? [`only ${countries.join(' ')}`] : []),
        ...(deniedCountries.length > 0 ? [`all but ${deniedCountries.join(' ')}`] : []),
      ]
      return parts.length > 0 ? parts.join('; ') : null
    }
    case 'NUMBER_TYPE': {
      const refused = restrictedNumberTypes.filter((type) => !allowedNumberTypes.includes(type))
      return refused.length > 0 ? `no ${refused.join(', ')} numbers` : null
    }
    case 'COUNTRY_UNVERIFIED':
      return `${country.perPhone} unverified messages in 24 hours for each phone verified there in 14 days, and ${pool.perCountry} from the pool`
    case 'POOL_UNVERIFIED':
      return `${pool.perDay} unverified messages in 24 hours of all countries beyond their own allowances`
    case 'FAIR_SHARE':
      return 'once half of the allowance of a country is spent: networks or devices that sent least'
    case 'PREFIX_UNVERIFIED':
      return `${growing(prefix, 'there')}, to numbers that differ in their last four digits`
    case 'NETWORK_UNVERIFIED':
      return growing(network, 'from it')
    case 'DEVICE_UNVERIFIED':
      return growing(device, 'from it')
    case 'RELAY_VOLUME':
      return `codes of other systems to a country: ${relay.base} in 24 hours, or ${relay.growth} times the most of a day one to two weeks ago, and what its allowance has left`
    case 'TOTAL_DAILY':
      return totalPerDay > 0 ? `${totalPerDay} messages of all developers` : null
    case 'SPEND_DAILY':
      return spendPerDay > 0
        ? `messages of all developers that cost ${formatPrice(spendPerDay)} a UTC day`
        : null
  }
}
