import type { HashForm } from './keys.ts'
import { dayMs, hourMs, minuteMs } from '../../shared/durations.ts'

/**
 * Rules of the guard, as log entries and `otpd guard status` name them. Unverified messages are the sign of
 * SMS pumping: fraudsters who earn by the message have no use for its code.
 */
export const guardRules = [
  'COUNTRY_NOT_ALLOWED',
  'NUMBER_TYPE',
  'COUNTRY_UNVERIFIED',
  'PREFIX_UNVERIFIED',
  'NETWORK_UNVERIFIED',
  'TOTAL_DAILY',
] as const

export type GuardRule = (typeof guardRules)[number]

/** How often a rule flagged or blocked messages to a country. */
export type GuardDecisions = { rule: GuardRule; country: string; flagged: number; blocked: number }

/** Form of the hashes of prefixes and networks. 96 bits: enough that those of one developer do not collide. */
export const guardHashForm: HashForm = (digest) => digest.toString('base64url').slice(0, 16)

/** Counts of a prefix or a network on one UTC day. */
export type GuardCounts = {
  /** Messages whose code was not verified. */
  unverified: number
  verified: number
  /** Unverified messages of the slot (`pendingSlot`) in which the last one was counted, and of the slot before. */
  slot: number
  pending: number
  pendingBefore: number
  /** Time of the first message of the day. */
  firstAt: number
}

/** Counts of a country, and its alert. */
export type GuardCountry = {
  /** Sliding windows, see `src/domain/guard/country.ts`; empty before the first message. */
  windows: number[][]
  /** 0 if there was none. */
  alertUntil: number
  /** Whether strangers verify enough of its codes that it is never closed to them. */
  converts: boolean
  /** UTC day of the last message. */
  day: number
}

/** Counts of a country before its first message. */
export const unusedCountry: GuardCountry = { windows: [], alertUntil: 0, converts: false, day: 0 }

export type { GuardAlert } from '../../shared/guard-alert.ts'

/**
 * How long a code is pending: until then it is not clear whether it will be verified, so a crowd that signs up at once
 * must not count as unverified.
 */
export const pendingMs = 2 * minuteMs
export const pendingSlot = (at: number) => Math.floor(at / pendingMs)

/** Days for which a verification makes a phone or a context known. */
export const knownDays = 180
/** Longest window of a country's counts. */
export const guardHistoryMs = 14 * dayMs
/** How long an alert lasts after the conversion was last seen low. */
export const alertMs = dayMs

/** How long each kind of row is kept: no rule reads older ones. */
export const guardLifetimes = {
  countDays: 2,
  countryDays: 29,
  contextDays: knownDays,
  decisionsMs: dayMs + hourMs,
}

/** The end user behind a send, as far as the backend tells. */
export type Sender = {
  /** Whether this developer verified this phone within 180 days. */
  isKnownPhone: boolean
  /** Hashed contexts of the send. */
  contexts: readonly string[]
}

/** Reading or writing the guard's rows failed. The message must then pass without the guard: it fails open. */
export class GuardFault extends Error {
  override readonly name = 'GuardFault'

  constructor(cause: unknown) {
    super('the counts of the guard could not be read or written', { cause })
  }
}
