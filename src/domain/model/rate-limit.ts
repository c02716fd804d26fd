/** At most `limit` admissions of a subject in any window of `windowMs`. A limit of 0 admits everything. */
export type RateLimit = { policy: string; subject: string; limit: number; windowMs: number }

/** State of a limit, for the `RateLimit` headers. */
export type RateState = {
  policy: string
  limit: number
  windowSeconds: number
  remaining: number
  resetSeconds: number
}
