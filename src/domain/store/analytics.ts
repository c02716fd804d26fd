import type { BreakdownDimension } from '../model/breakdown.ts'
import type { TimeBucket } from '../model/verification-time.ts'
import type { Environment } from '../../shared/otp-values.ts'

/** Counts of a day. `queued` counts messages before any provider is asked to send them. */
export type CountName = 'requests' | 'queued' | 'verified' | 'failed' | 'active'

/**
 * Increments for one day: of both environments together, and of the test environment. `active` may be negative: an
 * identity counts on the day of its last verification only.
 */
export type CountChanges = { [N in CountName | `test${Capitalize<CountName>}`]?: number }

/** `sent`: queued messages for all applications together, see `CountName`, those of the breakdown for one application. */
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

/**
 * Counts of the breakdown. A provider accepted `sent` messages, or they are in the inbox. `blocked` messages are those that the
 * fraud filter of a provider stopped. `relayed` ones have a code of another system, and are in no other count but `cost`: the
 * other system may not report whether it was entered.
 */
export type BreakdownCount =
  | 'requests'
  | 'sent'
  | 'delivered'
  | 'undelivered'
  | 'verified'
  | 'failed'
  | 'blocked'
  | 'relayed'
  | CostCount
  | TimeBucket

/**
 * `cost` in millionths of the currency, the part of it that is only estimated, the part of messages with codes of other
 * systems, and the number of messages whose price is unknown.
 */
export type CostCount = 'cost' | 'estimatedCost' | 'relayedCost' | 'unpriced'

/** Increments of one row of the breakdown. */
export type BreakdownChanges = { [N in BreakdownCount]?: number }

/** Live messages of a country on a day, of all developers. */
export type CountryDay = { country: string; day: number; sent: number; verified: number }

/** UTC days, both ends included, and an environment; undefined is both. */
export type BreakdownRange = { firstDay: number; lastDay: number; environment: Environment | undefined }

/** Restricts sums to one country, channel or provider. */
export type BreakdownFilter = {
  country?: string | undefined
  channel?: string | undefined
  provider?: string | undefined
}

/** ISO 4217 code, and the first UTC day (days since the epoch) whose costs are in no other currency. */
export type CostCurrency = { currency: string; since: number }

/** Sums of one value of a dimension. The key is null for requests that have none. */
export type BreakdownRow = { key: string | null } & Required<BreakdownChanges>

/** Keys that sums are listed by; a `cell` is a provider, a channel and a country, as `formatCell` writes them. */
export type BreakdownKeyKind = BreakdownDimension | 'cell'

/** Daily counters: per developer, and per application, country, channel and provider (the breakdown). */
export type AnalyticsStore = {
  add(days: ReadonlyArray<{ developerId: string; day: number; counts: CountChanges }>): void
  addBreakdown(rows: ReadonlyArray<{ key: BreakdownKey; counts: BreakdownChanges }>): void
  /** Deletes a batch of the breakdown of days before one. @returns true if there may be more */
  deleteBreakdown(beforeDay: number, batchSize: number): Promise<boolean>
  /** Sums up the live messages of a day of all developers by country. */
  countriesOfDay(day: number): Promise<CountryDay[]>
  /** @param environment undefined: both */
  totals(
    developerId: string,
    environment: Environment | undefined,
    activeSinceDay: number,
  ): Promise<{ requests: number; verified: number; active: number }>
  /** @param environment undefined: both */
  days(developerId: string, environment: Environment | undefined, firstDay: number): Promise<DayCounts[]>
  /** Sums up the breakdown of one application, by day. @param range undefined: all countries, all channels */
  daysOfApplication(
    developerId: string,
    appId: string,
    range: BreakdownRange & { country?: string | undefined; channel?: string | undefined },
  ): Promise<DayCounts[]>
  /** Sums up the breakdown by one of its dimensions, or by cell, without costs of days before `costsFrom`. */
  breakdown(
    developerId: string,
    by: BreakdownKeyKind,
    range: BreakdownRange & { costsFrom: number; filter?: BreakdownFilter },
  ): Promise<BreakdownRow[]>
  /** Reads the currency of costs; undefined if none were ever counted. */
  costCurrency(): Promise<CostCurrency | undefined>
  setCostCurrency(currency: CostCurrency): Promise<void>
  /** Names applications that exist. */
  applicationNames(developerId: string, appIds: readonly string[]): Promise<Map<string, string>>
  countApplications(developerId: string, environment: Environment | undefined): Promise<number>
}
