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

/** Usage of a limit at the time at which it was measured: everything that a decision needs. */
export type Usage = {
  /** Number of admissions in the window that ends now. */
  used: number
  newest: Admission | undefined
  /**
   * Time of the admission in the window whose expiry makes another call available: the oldest or, if the limit was
   * lowered, a later one.
   */
  expiringAt: number | undefined
  /** Whether later admissions were left out, which a clock that ran far ahead recorded. */
  hasLater: boolean
}

/** An admission to append to the log of its subject and policy. */
export type NewAdmission = Admission & {
  subject: string
  policy: StoredPolicy
  /** Set if the log has later admissions, of a clock that ran far ahead: they are deleted. For PostgreSQL. */
  replacesLater: boolean
  /** Admissions up to this time are outside every window, and may be deleted. */
  expiredUntil: number
}

/** Usage of a limit without admissions. */
export const unused: Usage = { used: 0, newest: undefined, expiringAt: undefined, hasLater: false }

/** The usage of a limit after a call that it admitted. */
export const withAdmission = ({ used, expiringAt }: Usage, { at, seq }: Admission): Usage => ({
  used: used + 1,
  newest: { at, seq },
  expiringAt: expiringAt ?? at,
  hasLater: false,
})
