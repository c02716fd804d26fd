import type { Developer } from '../model/developer.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import { isId } from '../model/ids.ts'
import type { BreakdownDimension, BreakdownRow, DayCounts } from '../store/analytics.ts'

const activeDays = 30

/** Returns the UTC day as days since the epoch. */
export const utcDay = (time: number) => Math.floor(time / dayMs)

const isoDates = new Map<number, string>()

/** Formats a day as `YYYY-MM-DD`. Cached, because formatting 90 days would take half the time of a series. */
export function isoDate(day: number): string {
  const cached = isoDates.get(day)
  if (cached !== undefined) return cached
  const date = new Date(day * dayMs).toISOString().slice(0, 10)
  isoDates.set(day, date)
  return date
}

export type Summary = {
  applications: number
  otpRequests: number
  otpVerified: number
  /** Percentage, 0 to 100; 0 without requests. */
  successRate: number
  /** Identities verified on one of the last thirty UTC days, today included. */
  activeUsers: number
}

/** Sums of one application, country, channel or provider. The key is null for requests that have none. */
export type BreakdownItem = BreakdownRow & {
  /** Name for people; null if there is none. */
  name: string | null
  /** Percentage of the messages sent whose code was verified, 0 to 100; 0 without messages. */
  conversion: number
}

const breakdownRowsMax = 200

type Environment = 'live' | 'test' | undefined

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
        if (!isId('app', appId)) return []
        return analytics.daysOfApplication(developer.id, appId, { environment, ...range })
      }
    },

    /** Lists the values of a dimension in the last `days` days, those with the most messages first, at most 200. */
    async breakdown(
      developer: Developer,
      by: BreakdownDimension,
      environment: Environment,
      days: number,
    ): Promise<BreakdownItem[]> {
      const rows = await analytics.breakdown(developer.id, by, { environment, ...lastDays(days) })
      const most = rows
        .toSorted(
          (a, b) => b.sent - a.sent || b.requests - a.requests || ((a.key ?? '') < (b.key ?? '') ? -1 : 1),
        )
        .slice(0, breakdownRowsMax)
      const keys = most.flatMap(({ key }) => key ?? [])
      const nameOf =
        by === 'application' ? await analytics.applicationNames(developer.id, keys) : nameFinders[by]
      return most.map((row) => ({
        ...row,
        name: row.key === null ? null : (nameOf.get(row.key) ?? null),
        conversion: percentage(row.verified, row.sent),
      }))
    },
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
])

const nameFinders = {
  country: { get: (code: string) => countryNames.of(code) },
  channel: channelNames,
  provider: { get: (name: string) => name },
}
