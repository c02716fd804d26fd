import { minuteMs, dayMs, hourMs } from '../../shared/durations.ts'

/**
 * Rules of the guard, as log entries and `otpd guard status` name them. Unverified messages are the sign of
 * SMS pumping: fraudsters who earn by the message have no use for its code.
 */
export const guardRules = [
  'COUNTRY_NOT_ALLOWED',
  'COUNTRY_DENIED',
  'COUNTRY_HOURLY',
  'COUNTRY_DAILY',
  'PREFIX_HOURLY',
  'PREFIX_DAILY',
  'ADDRESS_HOURLY',
  'ADDRESS_DAILY',
  'ADDRESS_COUNTRIES',
  'APPLICATION_DAILY',
  'TOTAL_DAILY',
] as const

export type GuardRule = (typeof guardRules)[number]

/** Counts of one subject: a country, a phone prefix or a client address of one application. */
export type GuardUsage = {
  /** Messages whose code was not verified. */
  unverifiedHour: number
  unverifiedDay: number
  /** Codes that were verified. */
  verifiedHour: number
  verifiedDay: number
}

/** How often a rule flagged or blocked messages to a country. */
export type GuardDecisions = { rule: GuardRule; country: string; flagged: number; blocked: number }

/** Length of a counting window. An hour or a day includes every window that it overlaps. */
export const guardWindowMs = 15 * minuteMs
/** How many past days of verifications count when a country's limit is derived from its history. */
export const guardHistoryDays = 14

/** How long each kind of count is kept: no rule reads older ones. `days` is in days, the rest in milliseconds. */
export const guardLifetimes = {
  windowsMs: dayMs + guardWindowMs,
  addressCountriesMs: dayMs,
  days: guardHistoryDays + 1,
  decisionsMs: dayMs + hourMs,
}

/**
 * Returns the start of the window that contains a time. All messages of a request count in the window of its
 * `createdAt`, so that its verification can correct their counts.
 */
export const windowStart = (at: number) => Math.floor(at / guardWindowMs) * guardWindowMs

/** The end user behind a send, as far as the backend tells. */
export type Sender = {
  /** Whether this developer verified this phone within 180 days. */
  isKnownPhone: boolean
  /** Hashed contexts of the send. */
  contexts: readonly string[]
}
