import type { ChallengeKind } from '../model/challenge.ts'
import type { Clock } from '../model/clock.ts'
import { alertMs, type GuardDecisions, guardRules, type GuardRule } from '../model/guard.ts'
import { restrictedNumberTypes } from '../model/numbering-plans.ts'
import type { Store } from '../store/store.ts'
import { hourMs, utcDay } from '../../shared/durations.ts'
import { allowances, countryAllowance, namedBase, relayAllowance } from './allowances.ts'
import type { GuardSettings } from './settings.ts'
import { formatPrice } from '../model/price.ts'
import { hourOf, Subject } from './subject.ts'

/** An allowance of a developer for 24 hours, and its use. */
type PoolUsage = { developerId: string; allowance: number; unverified: number }

type CountryUsage = PoolUsage & { country: string }

type GuardUsage = {
  /** Those of countries, the most used first, with the distinct phones of 14 days, and what the pool paid for. */
  allowances: Array<CountryUsage & { verifiedPhones: number; fromPool: number }>
  /** As `allowances`, for codes of other systems: how many a country takes without evidence. */
  relays: CountryUsage[]
  /** Those of all countries of a developer beyond their own. */
  pools: PoolUsage[]
  /** Countries with an alert, `pool`, or `relays`. */
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
        rules: describeRules(settings),
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
  const fromHour = hourOf(now) - 23
  const decisions = await store.read.guard.decisions(fromHour)
  const sum = (rule: GuardRule, kind: 'flagged' | 'blocked') =>
    decisions.reduce((count, decision) => (decision.rule === rule ? count + decision[kind] : count), 0)
  return {
    mode: settings.mode,
    challenge: settings.challenge?.kind ?? null,
    since: new Date(fromHour * hourMs).toISOString(),
    rules: describeRules(settings).map((status) => ({
      ...status,
      flagged: sum(status.rule, 'flagged'),
      blocked: sum(status.rule, 'blocked'),
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
  { countries }: GuardSettings,
  prefix: string,
  now: number,
): Promise<GuardUsage> {
  const usage: GuardUsage = { allowances: [], relays: [], pools: [], alerts: [] }
  for (const [subject, row] of await store.read.guard.named(prefix)) {
    const [developerId = '', country = '', kind] = subject.split(' ')
    if (country === '' || subject.endsWith(' history')) continue
    const counts = new Subject(subject, row, now)
    const { unverified, evidence } = counts.usage()
    const launchDay = countries.includes(country) ? (row.windows.launchDay ?? utcDay(now)) : undefined
    if (country === 'pool') usage.pools.push({ developerId, allowance: allowances.pool.perDay, unverified })
    else if (kind === 'relay') {
      const allowance = Math.round(relayAllowance({ ...row.windows, launchDay }, counts.held(), now))
      usage.relays.push({ developerId, country, allowance, unverified })
    } else if (country !== 'relays') {
      const allowance = countryAllowance(evidence, namedBase(launchDay, now))
      const spent = { allowance, unverified, fromPool: counts.total('drawn') }
      usage.allowances.push({ developerId, country, verifiedPhones: evidence, ...spent })
    }
    if (counts.hasAlerted()) {
      const until = new Date(row.alertedAt + alertMs).toISOString()
      usage.alerts.push({ developerId, country, until })
    }
  }
  usage.allowances.sort(byUse)
  usage.relays.sort(byUse)
  return usage
}

/** Rules that limit what the installation sends in a day. */
const dailyCaps = ['TOTAL_DAILY', 'SPEND_DAILY'] as const

/** Lists the daily limits of the installation that have refused messages in this hour. */
export async function readSpentCaps(store: Store<'guard'>, now: number) {
  const decisions = await store.read.guard.decisions(hourOf(now))
  return dailyCaps.filter((cap) => decisions.some(({ rule, blocked }) => rule === cap && blocked > 0))
}

const share = ({ unverified, allowance }: PoolUsage) => unverified / allowance
const byUse = (a: CountryUsage, b: CountryUsage) => share(b) - share(a) || (a.country < b.country ? -1 : 1)

function describeRules(settings: GuardSettings): RuleStatus[] {
  const { countries, deniedCountries, allowedNumberTypes, totalPerDay, spendPerDay } = settings
  const { country, prefix, network, device, pool, relay } = allowances
  const growing = ({ base, perPhone }: { base: number; perPhone: number }, of: string) =>
    `${base} unverified messages in 24 hours, and ${perPhone} for each phone verified ${of} in 14 days`
  const lists = [
    ...(countries.length > 0 ? [`only ${countries.join(' ')}`] : []),
    ...(deniedCountries.length > 0 ? [`all but ${deniedCountries.join(' ')}`] : []),
  ]
  const refused = restrictedNumberTypes.filter((type) => !allowedNumberTypes.includes(type))
  const limits: Record<GuardRule, string | null> = {
    DENY_RULE: 'destinations and networks that a developer denied: otpd guard rules',
    COUNTRY_NOT_ALLOWED: lists.length > 0 ? lists.join('; ') : null,
    NUMBER_TYPE: refused.length > 0 ? `no ${refused.join(', ')} numbers` : null,
    COUNTRY_UNVERIFIED: `${country.perPhone} unverified messages in 24 hours for each phone verified there in 14 days, and ${pool.perCountry} from the pool`,
    POOL_UNVERIFIED: `${pool.perDay} unverified messages in 24 hours of all countries beyond their own allowances`,
    FAIR_SHARE: 'while the allowance of a country or prefix is scarce: networks or devices that sent least',
    PREFIX_UNVERIFIED: `${growing(prefix, 'there')}, to numbers that differ in their last four digits`,
    NETWORK_UNVERIFIED: growing(network, 'from it'),
    DEVICE_UNVERIFIED: growing(device, 'from it'),
    RELAY_VOLUME: `codes of other systems to a country: ${relay.base} in 24 hours, or ${relay.growth} times the most of a day of the last 14, and what a tenth of its allowance has left`,
    TOTAL_DAILY: totalPerDay > 0 ? `${totalPerDay} messages of all developers` : null,
    SPEND_DAILY:
      spendPerDay > 0 ? `messages of all developers that cost ${formatPrice(spendPerDay)} a UTC day` : null,
  }
  return guardRules.map((rule) => ({ rule, limit: limits[rule] }))
}
