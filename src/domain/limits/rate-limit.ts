import { ServiceError } from '../model/errors.ts'
import type { Stores } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import type { RateLimit, RateState } from '../model/rate-limit.ts'
import type { Admission } from '../store/rate-limits.ts'

/** Longest window of any limit. */
export const admissionLifetimeMs = dayMs

/** Number of admissions between two deletions of expired ones. */
const pruneEvery = 8

/**
 * Rate limiter over a sliding window (sliding-window log): admits and records a call, or refuses it. The limit
 * holds in *every* window of that length; fixed windows and token buckets can admit twice as many calls. The
 * caller must hold the row lock on the subject.
 *
 * The limits of send and verify come from the developer's plan (`model/plans.ts`).
 *
 * @returns undefined if there is no limit
 * @throws RATE_LIMITED (`reason`) nothing was written
 */
export async function chargeRateLimit(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  now: number,
  reason: string,
): Promise<RateState | undefined> {
  if (limit.limit === 0) return undefined
  const usage = await measureUsage(tx, limit, now)
  if (usage.used >= limit.limit) throw rateLimited(await toRateState(tx, limit, usage, now), reason)
  await recordAdmission(tx, limit, usage, now)
  return toRateState(tx, limit, { ...usage, used: usage.used + 1 }, now)
}

/** Reads the state of a limit without counting a call. @returns undefined if there is no limit */
export async function peekRateLimit(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  now: number,
): Promise<RateState | undefined> {
  if (limit.limit === 0) return undefined
  const newest = await tx.rateLimits.newest(limit.subject, limit.policy)
  const isNewestAhead = newest !== undefined && isAhead(newest, limit, now)
  const usage = isNewestAhead
    ? { used: 0, oldestAt: undefined, newest }
    : await measureUsage(tx, limit, now, { newest })
  return toRateState(tx, limit, usage, now)
}

export type Usage = { used: number; oldestAt: number | undefined; newest: Admission | undefined }

/**
 * Counts the admissions in the window that ends now. Deletes those from a clock that ran far ahead.
 *
 * @param prefetched the newest admission, if the caller has already read it
 */
export async function measureUsage(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  now: number,
  prefetched?: { newest: Admission | undefined },
): Promise<Usage> {
  const { subject, policy, windowMs } = limit
  const { newest } = prefetched ?? { newest: await tx.rateLimits.newest(subject, policy) }
  if (!newest || newest.at <= now - windowMs) return { used: 0, oldestAt: undefined, newest }
  if (isAhead(newest, limit, now)) {
    await tx.rateLimits.deleteAfter(subject, policy, now)
    return measureUsage(tx, limit, now)
  }
  const oldest = (await tx.rateLimits.oldestAfter(subject, policy, now - windowMs, 0)) ?? newest
  return { used: newest.seq - oldest.seq + 1, oldestAt: oldest.at, newest }
}

/**
 * Detects an admission from a clock that ran far ahead: it must not block the subject until that time.
 */
const isAhead = (newest: Admission, { windowMs }: RateLimit, now: number) => newest.at > now + windowMs

/** Appends an admission to the log and prunes it from time to time. */
export async function recordAdmission(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  usage: Pick<Usage, 'newest'>,
  now: number,
): Promise<void> {
  const { subject, policy, windowMs } = limit
  const seq = (usage.newest?.seq ?? 0) + 1
  // The log must not go backwards if the clocks of two nodes differ a little.
  const at = Math.max(now, usage.newest?.at ?? 0)
  await tx.rateLimits.insert(subject, policy, { at, seq })
  if (seq % pruneEvery === 0) await tx.rateLimits.deleteUntil(subject, policy, now - windowMs)
}

/** Milliseconds until another call is admitted or, while calls remain, until one more becomes available. */
export async function waitMsFor(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  usage: Usage,
  now: number,
): Promise<number> {
  const { subject, policy, windowMs } = limit
  // If the limit was lowered, more than one admission must leave the window first.
  const excess = usage.used - limit.limit
  const last =
    excess > 0 ? await tx.rateLimits.oldestAfter(subject, policy, now - windowMs, excess) : undefined
  return (last?.at ?? usage.oldestAt ?? now) + windowMs - now
}

async function toRateState(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  usage: Usage,
  now: number,
): Promise<RateState> {
  return {
    policy: limit.policy,
    limit: limit.limit,
    windowSeconds: limit.windowMs / 1000,
    remaining: Math.max(0, limit.limit - usage.used),
    resetSeconds: Math.max(1, Math.ceil((await waitMsFor(tx, limit, usage, now)) / 1000)),
  }
}

/** RATE_LIMITED with the state of the limit, for the response's headers. */
export function rateLimited(state: RateState, reason: string): ServiceError {
  const error = new ServiceError(
    'RATE_LIMITED',
    `Too many requests: the limit is ${state.limit} per ${state.windowSeconds} seconds. Wait, then retry.`,
    {
      reason,
      retryAfterSeconds: state.resetSeconds,
      metadata: { policy: state.policy, limit: state.limit, windowSeconds: state.windowSeconds },
    },
  )
  error.rate = state
  return error
}
