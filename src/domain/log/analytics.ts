import type { Developer } from '../accounts/developers.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** What one transaction adds to a day. `active` may be negative: an identity moves to the day of its last success. */
export type CountChanges = {
  requests?: number
  sent?: number
  verified?: number
  failed?: number
  active?: number
}

export type DayCounts = { day: number; sent: number; verified: number; failed: number }

export type AnalyticsStore = {
  add(developerId: string, day: number, changes: CountChanges): Promise<void>
  totals(
    developerId: string,
    activeSinceDay: number,
  ): Promise<{ requests: number; verified: number; active: number }>
  days(developerId: string, firstDay: number): Promise<DayCounts[]>
  countApplications(developerId: string): Promise<number>
}

const dayMs = 86_400_000
const activeDays = 30

/** UTC days since the epoch. */
export const utcDay = (time: number) => Math.floor(time / dayMs)

const isoDates = new Map<number, string>()

/** Each is kept once it has been asked for: writing 90 of them would be half of what a series costs. */
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
  /** Per cent, 0 to 100; 0 while there are no requests. */
  successRate: number
  /** Identities verified on one of the last thirty UTC days, today included. */
  activeUsers: number
}

export type AnalyticsService = ReturnType<typeof createAnalyticsService>

/**
 * Counters that are kept in the transactions that they count, one row a developer and day. Reading them costs the
 * same however many requests there are.
 */
export function createAnalyticsService(needs: { store: Store; clock: Clock }) {
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

    /** Every day of the range, oldest first, today last. */
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
