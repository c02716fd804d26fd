/** Increments for one day. `active` may be negative: an identity counts on the day of its last verification only. */
export type CountChanges = {
  requests?: number
  sent?: number
  verified?: number
  failed?: number
  active?: number
}

export type DayCounts = { day: number; sent: number; verified: number; failed: number }

/** Daily counters per developer. */
export type AnalyticsStore = {
  add(developerId: string, day: number, changes: CountChanges): Promise<void>
  totals(
    developerId: string,
    activeSinceDay: number,
  ): Promise<{ requests: number; verified: number; active: number }>
  days(developerId: string, firstDay: number): Promise<DayCounts[]>
  countApplications(developerId: string): Promise<number>
}
