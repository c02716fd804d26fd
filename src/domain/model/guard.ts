import type { HashForm } from './keys.ts'
import type { KnownContext } from './phone-record.ts'
import { dayMs, hourMs } from '../../shared/durations.ts'

/**
 * Rules of the guard, as log entries and `otpd guard status` name them. Unverified messages are the sign of
 * SMS pumping: fraudsters who earn by the message have no use for its code.
 */
export const guardRules = [
  'DENY_RULE',
  'COUNTRY_NOT_ALLOWED',
  'NUMBER_TYPE',
  'COUNTRY_UNVERIFIED',
  'POOL_UNVERIFIED',
  'FAIR_SHARE',
  'PREFIX_UNVERIFIED',
  'NETWORK_UNVERIFIED',
  'DEVICE_UNVERIFIED',
  'RELAY_VOLUME',
  'TOTAL_DAILY',
  'SPEND_DAILY',
] as const

export type GuardRule = (typeof guardRules)[number]

/** How often a rule flagged or blocked messages to a country. */
export type GuardDecisions = { rule: GuardRule; country: string; flagged: number; blocked: number }

/** Form of the hashes of prefixes and networks. 96 bits: enough that those of one developer do not collide. */
export const guardHashForm: HashForm = (digest) => digest.toString('base64url').slice(0, 16)

/** Counts by bucket of time: number of the newest bucket, then the counts, newest first, without the zeros at the end. */
type Counts = readonly number[]

/** Counts of a country, a prefix, a network, a device, the relays to a country, the pool, or all messages of a day. */
export type GuardCounts = {
  /** Unverified messages, by hour, and by two minutes of the last ten. */
  unverified?: Counts
  recent?: Counts
  /** Distinct verified phones, by day. */
  evidence?: Counts
  /** Messages of a country that the pool paid for, or of relays that their country did, by hour. */
  drawn?: Counts
  /** Unverified messages of a network or device, by day: an attacker who comes back has sent before. */
  earlier?: Counts
  /** Unverified messages of a country, by hour of two weeks; in a row of their own. */
  hours?: Counts
  /** First day on which `guard.countries` named the country. */
  launchDay?: number | undefined
  /** Hour in which the usual figures of a country were computed: unverified messages of such an hour, and the most of a day. */
  hour?: number
  usualHour?: number
  usualDay?: number
  /** The most codes of other systems of a day a week or more ago. */
  earlierDay?: number
  /** Evidence when the allowance was last spent, or the allowance for codes of other systems, and that day. */
  held?: number
  heldOn?: number
}

export type GuardRow = {
  windows: GuardCounts
  /** Time of its last alert; 0 if there was none. */
  alertedAt: number
  /** First UTC day on which the row is useless. */
  until: number
}

export type { GuardAlert } from '../../shared/guard-alert.ts'

/** Days for which a verified phone is evidence. */
export const evidenceDays = 14
/** How long decisions are kept. */
export const decisionsMs = dayMs + hourMs
/** Time after which an alert is repeated while its cause lasts, and is over otherwise. */
export const alertMs = hourMs

/** The end user behind a send, as far as the backend tells. */
export type Sender = {
  /** Whether this developer verified this phone within 180 days. */
  isKnownPhone: boolean
  /** Hashed contexts of the send: of its network, then of its device. */
  contexts: readonly string[]
  /** Time of the last message to this phone; 0 if there was none. */
  sentAt: number
  /** Time of the last verification of this phone; 0 if there was none. */
  verifiedAt: number
  /** Contexts and networks that verified this phone, with their times. */
  verifiedFrom: readonly KnownContext[]
}

/** Reading or writing the guard's rows failed. The message must then pass without the guard: it fails open. */
export class GuardFault extends Error {
  override readonly name = 'GuardFault'

  constructor(cause: unknown) {
    super('the counts of the guard could not be read or written', { cause })
  }
}
