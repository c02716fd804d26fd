import type { CallingApplication, Environment } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { dayMs, utcDay } from '../../shared/durations.ts'
import { inboxProvider } from '../model/delivery.ts'
import { parseCell, type RouteCell } from '../model/route-choice.ts'
import type { BreakdownDimension } from '../model/breakdown.ts'
import { medianSeconds } from '../model/verification-time.ts'
import type {
  BreakdownFilter,
  BreakdownKeyKind,
  BreakdownRange,
  BreakdownRow,
  CostCount,
  CostCurrency,
  DayCounts,
} from '../store/analytics.ts'
import { keysOf, pick } from '../../shared/fields.ts'

const activeDays = 30

const isoDates = new Map<number, string>()

/** Formats a day as `YYYY-MM-DD`. Cached, because formatting 90 days would take half the time of a series. */
export function isoDate(day: number): string {
  const cached = isoDates.get(day)
  if (cached !== undefined) return cached
  const date = new Date(day * dayMs).toISOString().slice(0, 10)
  isoDates.set(day, date)
  return date
}

type Summary = {
  applications: number
  otpRequests: number
  otpVerified: number
  /** Percentage, 0 to 100; 0 without requests. */
  successRate: number
  /** Identities verified on one of the last thirty UTC days, today included. */
  activeUsers: number
}

/** Sums of one application, country, channel or provider. The key is null for requests that have none. */
export type BreakdownItem = Omit<BreakdownRow, CostCount> & {
  /** Name for people; null if there is none. */
  name: string | null
  /** Percentage of the messages sent whose code was verified, 0 to 100; 0 without messages. */
  conversion: number
  /** Null if otpd counts no costs. */
  costs: ItemCosts | null
  /** From the last send until the code was entered; null without verifications whose time was counted. */
  medianSeconds: number | null
}

type ItemCosts = Record<CostCount, number> & {
  /** ISO 4217. */
  currency: string
  /** Without the cost of relayed codes. Rounded to millionths; null without verified codes, or without a priced message. */
  costPerVerified: number | null
}

/** The last UTC days, today included, of an environment; undefined is both. */
export type CountedDays = { days: number; environment?: Environment | undefined }

/** Counts and costs of a provider on a channel to a country. */
type CellSums = RouteCell & Pick<BreakdownRow, 'sent' | 'verified' | CostCount> & { row: BreakdownRow }

const breakdownRowsMax = 200

/** The breakdown is kept for so many days: a year, and a month to compare it with. */
export const breakdownDays = 400

type MessageFilter = {
  /** Milliseconds since the epoch. */
  from?: number | undefined
  until?: number | undefined
  country?: string | undefined
  channel?: string | undefined
}

export type AnalyticsService = ReturnType<typeof createAnalyticsService>

/**
 * Creates the analytics service. Its counters are updated in the transactions that they count, so the cost of reading them
 * does not depend on the number of requests. An undefined environment is both.
 */
export function createAnalyticsService(needs: { store: Store<'analytics'>; clock: Clock }) {
  const { clock } = needs
  const { analytics } = needs.store.read

  const lastDays = (days: number) => {
    const lastDay = utcDay(clock.now())
    return { firstDay: lastDay - days + 1, lastDay }
  }

  /** Sums of past days, the least recently used first. */
  const pastSums = new Map<string, Promise<BreakdownRow[]>>()

  /**
   * Sums up the breakdown. Sums of past days are kept, as their counters do not change any more, and would be read again
   * with every look: a day has a row for each application, country, channel and provider. Of yesterday, changes may still
   * be on their way.
   */
  async function sumUp(
    developerId: string,
    by: BreakdownKeyKind,
    range: BreakdownRange & { costsFrom: number; filter: BreakdownFilter },
  ): Promise<BreakdownRow[]> {
    const past = { ...range, lastDay: range.lastDay - 2 }
    const key = JSON.stringify([developerId, by, past])
    const sums = pastSums.get(key) ?? analytics.breakdown(developerId, by, past)
    pastSums.delete(key)
    pastSums.set(key, sums)
    sums.catch(() => pastSums.delete(key))
    const [oldest] = pastSums.keys()
    if (pastSums.size > pastSumsMax && oldest !== undefined) pastSums.delete(oldest)
    const recent = analytics.breakdown(developerId, by, { ...range, firstDay: range.lastDay - 1 })
    return addRows([...(await sums), ...(await recent)])
  }

  return {
    async summary(developer: Developer, environment?: Environment): Promise<Summary> {
      const { firstDay } = lastDays(activeDays)
      const totals = await analytics.totals(developer.id, environment, firstDay)
      return {
        applications: await analytics.countApplications(developer.id, environment),
        otpRequests: totals.requests,
        otpVerified: totals.verified,
        successRate: percentage(totals.verified, totals.requests),
        activeUsers: totals.active,
      }
    },

    /** Lists the last `days` days, today last; days without requests are zero. An application has one environment. */
    async timeSeries(
      developer: Developer,
      days: number,
      { environment, appId }: { environment?: Environment; appId?: string | undefined } = {},
    ): Promise<DayCounts[]> {
      const range = lastDays(days)
      const rows = await readRows()
      const byDay = new Map(rows.map((row) => [row.day, row]))
      return Array.from({ length: days }, (_, index) => {
        const day = range.firstDay + index
        return byDay.get(day) ?? { day, sent: 0, verified: 0, failed: 0 }
      })

      async function readRows(): Promise<DayCounts[]> {
        if (appId === undefined) return analytics.days(developer.id, environment, range.firstDay)
        return analytics.daysOfApplication(developer.id, appId, { environment, ...range })
      }
    },

    /**
     * Counts the messages of an application, and those whose code was verified, in whole UTC days.
     *
     * @param filter `from` is in the first day, `until` the end of the last; undefined counts from the first that is kept,
     *   and until now
     */
    async countMessages(
      { developerId, id, environment }: Pick<CallingApplication, 'id' | 'developerId' | 'environment'>,
      { from = 0, until = Infinity, ...filter }: MessageFilter,
    ): Promise<{ sent: number; verified: number }> {
      const kept = lastDays(breakdownDays + 1)
      const range = {
        firstDay: Math.max(utcDay(from), kept.firstDay),
        lastDay: Math.min(utcDay(until - 1), kept.lastDay),
        environment,
        ...filter,
      }
      const isEmpty = range.firstDay > range.lastDay
      const rows = isEmpty ? [] : await analytics.daysOfApplication(developerId, id, range)
      const sum = (name: 'sent' | 'verified') => rows.reduce((total, row) => total + row[name], 0)
      return { sent: sum('sent'), verified: sum('verified') }
    },

    /** Lists the values of a dimension in the last `days` days, those with the most messages first, at most 200. */
    async breakdown(
      developer: Developer,
      by: BreakdownDimension,
      {
        environment,
        days,
        ...filter
      }: BreakdownFilter & { environment?: Environment | undefined; days: number },
    ): Promise<BreakdownItem[]> {
      const currency = await analytics.costCurrency()
      const range = { environment, ...lastDays(days), costsFrom: currency?.since ?? 0, filter }
      const rows = await sumUp(developer.id, by, range)
      const most = rows
        .toSorted(
          (a, b) => b.sent - a.sent || b.requests - a.requests || ((a.key ?? '') < (b.key ?? '') ? -1 : 1),
        )
        .slice(0, breakdownRowsMax)
      const keys = most.flatMap(({ key }) => key ?? [])
      const nameOf =
        by === 'application' ? await analytics.applicationNames(developer.id, keys) : nameFinders[by]
      return most.map((row) => describe(row, nameOf, currency))
    },

    costCurrency: analytics.costCurrency,

    /** Sums up the messages that providers had, by provider, channel and country; without those of the inbox. */
    async listCells(developerId: string, { days, environment }: CountedDays): Promise<CellSums[]> {
      const currency = await analytics.costCurrency()
      const range = { environment, ...lastDays(days), costsFrom: currency?.since ?? 0, filter: {} }
      return (await sumUp(developerId, 'cell', range)).flatMap((row) => {
        const cell = parseCell(row.key ?? '')
        return cell && cell.provider !== '' && cell.provider !== inboxProvider
          ? [{ ...row, ...cell, row }]
          : []
      })
    },

    /** Adds to the sums of a value what follows from them. */
    describeRow: (row: BreakdownRow, by: keyof typeof nameFinders, currency: CostCurrency | undefined) =>
      describe(row, nameFinders[by], currency),
  }
}

/** About a megabyte, if developers have hundreds of applications. */
const pastSumsMax = 100

/** Adds up the rows that have the same key. */
export function addRows(rows: readonly BreakdownRow[]): BreakdownRow[] {
  const byKey = new Map<string | null, BreakdownRow>()
  for (const row of rows) {
    const sums = byKey.get(row.key)
    byKey.set(row.key, sums ? addCounts(sums, row) : row)
  }
  return [...byKey.values()]
}

const describe = (
  row: BreakdownRow,
  names: { get(key: string): string | undefined },
  currency: CostCurrency | undefined,
): BreakdownItem => ({
  ...row,
  name: row.key === null ? null : (names.get(row.key) ?? null),
  conversion: percentage(row.verified, row.sent),
  costs: currency ? toCosts(row, currency.currency) : null,
  medianSeconds: medianSeconds(row),
})

const addCounts = ({ key, ...a }: BreakdownRow, b: BreakdownRow): BreakdownRow => {
  const sums = { key, ...a }
  for (const name of keysOf(a)) sums[name] += b[name]
  return sums
}

function toCosts(row: BreakdownRow, currency: string): ItemCosts {
  const { cost, relayedCost, unpriced, verified, sent, relayed } = row
  const isKnown = verified > 0 && unpriced < sent + relayed
  return {
    currency,
    ...pick(row, ['cost', 'estimatedCost', 'relayedCost', 'unpriced']),
    costPerVerified: isKnown ? Math.round((cost - relayedCost) / verified) : null,
  }
}

/** A code can be sent more than once, and verified where the message was counted on another day. */
const percentage = (part: number, whole: number) =>
  whole === 0 ? 0 : Math.min(100, Math.round((100 * part) / whole))

const countryNames = new Intl.DisplayNames('en', { type: 'region' })
const channelNames: ReadonlyMap<string, string> = new Map([
  ['sms', 'SMS'],
  ['whatsapp', 'WhatsApp'],
  ['telegram', 'Telegram'],
  ['voice', 'Voice'],
  ['rcs', 'RCS'],
])

const nameFinders = {
  country: { get: (code: string) => countryNames.of(code) },
  channel: channelNames,
  provider: { get: (name: string) => name },
}
