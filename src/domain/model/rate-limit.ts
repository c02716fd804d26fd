import { minuteMs } from '../../shared/durations.ts'

/** At most `limit` admissions of a subject in any window of `windowMs`. A limit of 0 admits everything. */
export type RateLimit<Policy extends string = string> = {
  policy: Policy
  subject: string
  limit: number
  windowMs: number
  /** Plan that sets the limit; absent if no plan does. */
  plan?: string
}

/** State of a limit, for the `RateLimit` headers. */
export type RateState = {
  policy: string
  limit: number
  windowSeconds: number
  remaining: number
  resetSeconds: number
}

/**
 * Policies whose admissions are stored and so outlive a restart. Their subjects are applications and developers. The
 * admission log on SQLite stores the place in this list: append only.
 */
export const storedPolicies = ['otp-send', 'otp-verify', 'webhook-test'] as const

export type StoredPolicy = (typeof storedPolicies)[number]

/** Longest window of a stored policy. Older admissions are deleted. */
export const admissionLifetimeMs = minuteMs

/**
 * `seq` numbers the admissions of a subject and policy, so that subtraction gives the number of admissions
 * between two of them.
 */
export type Admission = { at: number; seq: number }

/** An admission to append to the log of its subject and policy. */
export type NewAdmission = Admission & {
  subject: string
  policy: StoredPolicy
  /** Set if the log has later admissions, of a clock that ran far ahead: they are deleted. */
  replacesLater: boolean
  /** Admissions up to this time are outside every window, and may be deleted. */
  expiredUntil: number
}
