import type { Developer } from '../model/developer.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import type { DayCounts } from '../store/analytics.ts'

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

export type AnalyticsService = ReturnType<typeof createAnalyticsService>

/**
 * Creates the analytics service. Its counters, one row per developer and day, are updated in the transactions that they
 * count, so the cost of reading them does not depend on the number of requests.
 */
export function createAnalyticsService(needs: { store: Store<'analytics'>; clock: Clock }) {
  const { store, clock } = needs
  return {
    async summary(developer: Developer): Promise<Summary> {
      const { analytics } = store.read
      const totals = await analytics.totals(developer.id, utcDay(clock.now()) - activeDays + 1)
      return {
        applications: await analytics.countApplications(developer.id),
        otpRequests: totals.requests,
        otpVerified: totals.verified,
        successRate: totals.requests === 0 ? 0 : Math.round((100 * totals.verified) / totals.requests),
        activeUsers: totals.active,
      }
    },

    /** Lists the last `days` days, today last; days without requests are zero. */
    async timeSeries(developer: Developer, days: number): Promise<DayCounts[]> {
      const today = utcDay(clock.now())
      const first = today - days + 1
      const rows = await store.read.analytics.days(developer.id, first)
      const byDay = new Map(rows.map((row) => [row.day, row]))
      return Array.from({ length: days }, (_, index) => {
        const day = first + index
        return byDay.get(day) ?? { day, sent: 0, verified: 0, failed: 0 }
      })
    },
  }
}
