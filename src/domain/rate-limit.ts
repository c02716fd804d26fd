import { ServiceError } from './errors.ts'
import type { Stores } from './store.ts'

/** At most `limit` admissions in any `windowMs`, for each subject. A limit of 0 admits everything. */
export type RateLimit = { policy: string; subject: string; limit: number; windowMs: number }

/** What the `RateLimit` headers tell. */
export type RateState = {
  policy: string
  limit: number
  windowSeconds: number
  remaining: number
  resetSeconds: number
}

export type RateLimitStore = {
  /** The oldest admission later than `after`, and the newest of all. */
  span(
    subject: string,
    policy: string,
    after: number,
  ): Promise<{ oldest: Admission | undefined; newest: Admission | undefined }>
  insert(subject: string, policy: string, admission: Admission): Promise<void>
  /** Forgets the admissions that no window reaches any more. */
  deleteUntil(subject: string, policy: string, time: number): Promise<void>
  /** Forgets admissions of a clock that was wrong. */
  deleteAfter(subject: string, policy: string, time: number): Promise<void>
}

/** seq counts within subject and policy, so that the admissions between two of them are a difference. */
export type Admission = { at: number; seq: number }

/** Old admissions are removed now and then, not each time. */
const pruneEvery = 8

/**
 * Admits a call or refuses it, by a log of the admissions of the last window: the only one of the usual algorithms
 * that holds in *every* window of that length (a fixed window and a token bucket let twice as many through).
 * Whoever calls holds the subject's row, so that no other transaction counts at the same time.
 *
 * @returns undefined where there is no limit
 * @throws RATE_LIMITED (`reason`) nothing was written
 */
export async function admit(
  tx: Stores,
  limit: RateLimit,
  now: number,
  reason: string,
): Promise<RateState | undefined> {
  if (limit.limit === 0) return undefined
  const usage = await measure(tx, limit, now)
  if (usage.used >= limit.limit) {
    const state = stateOf(limit, limit.limit, usage.oldestAt ?? now, now)
    throw rateLimited(state, reason)
  }
  await record(tx, limit, usage, now)
  return stateOf(limit, usage.used + 1, usage.oldestAt ?? now, now)
}

export type Usage = { used: number; oldestAt: number | undefined; newest: Admission | undefined }

/** How many admissions the window that ends now holds. */
export async function measure(tx: Stores, limit: RateLimit, now: number): Promise<Usage> {
  const { subject, policy, windowMs } = limit
  const { oldest, newest } = await tx.rateLimits.span(subject, policy, now - windowMs)
  if (newest && newest.at > now + windowMs) {
    // A past clock ran ahead. What it wrote must not block the subject until that time comes.
    await tx.rateLimits.deleteAfter(subject, policy, now)
    return measure(tx, limit, now)
  }
  const used = oldest && newest ? newest.seq - oldest.seq + 1 : 0
  return { used, oldestAt: oldest?.at, newest }
}

export async function record(tx: Stores, limit: RateLimit, usage: Usage, now: number): Promise<void> {
  const { subject, policy, windowMs } = limit
  const seq = (usage.newest?.seq ?? 0) + 1
  // A clock that was set back over a restart must not make the log go backwards.
  const at = Math.max(now, usage.newest?.at ?? 0)
  await tx.rateLimits.insert(subject, policy, { at, seq })
  if (seq % pruneEvery === 0) await tx.rateLimits.deleteUntil(subject, policy, now - windowMs)
}

function stateOf(limit: RateLimit, used: number, oldestAt: number, now: number): RateState {
  return {
    policy: limit.policy,
    limit: limit.limit,
    windowSeconds: limit.windowMs / 1000,
    remaining: Math.max(0, limit.limit - used),
    resetSeconds: Math.max(1, Math.ceil((oldestAt + limit.windowMs - now) / 1000)),
  }
}

function rateLimited(state: RateState, reason: string): ServiceError {
  const error = new ServiceError('RATE_LIMITED', 'Too many calls. Wait and try again.', {
    reason,
    retryAfterSeconds: state.resetSeconds,
    metadata: { policy: state.policy, limit: state.limit, windowSeconds: state.windowSeconds },
  })
  error.rate = state
  return error
}
