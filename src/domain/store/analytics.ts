/** Increments for one day. `active` may be negative: an identity counts on the day of its last verification only. */
export type CountChanges = {
  requests?: number
  sent?: number
  verified?: number
  failed?: number
  active?: number
}

export type DayCounts = { day: number; sent: number; verified: number; failed: number }

/** Key of a row of the breakdown. Null if the request has none: test applications have neither channel nor provider. */
export type BreakdownKey = {
  developerId: string
  appId: string
  /** UTC day, in days since the epoch. */
  day: number
  country: string | null
  channel: string | null
  provider: string | null
}

/** Increments of one row of the breakdown. */
export type BreakdownChanges = {
  requests?: number
  sent?: number
  delivered?: number
  undelivered?: number
  verified?: number
  failed?: number
}

/** Daily counters: per developer, and per application, country, channel and provider (the breakdown). */
export type AnalyticsStore = {
  add(developerId: string, day: number, changes: CountChanges): Promise<void>
  addBreakdown(key: BreakdownKey, changes: BreakdownChanges): Promise<void>
  /** Deletes a batch of the breakdown of days before one. @returns true if there may be more */
  deleteBreakdown(beforeDay: number, batchSize: number): Promise<boolean>
  totals(
    developerId: string,
    activeSinceDay: number,
  ): Promise<{ requests: number; verified: number; active: number }>
  days(developerId: string, firstDay: number): Promise<DayCounts[]>
  countApplications(developerId: string): Promise<number>
}
