import { ServiceError } from '../model/errors.ts'
import type { Stores } from '../store/store.ts'

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
  newest(subject: string, policy: string): Promise<Admission | undefined>
  /** The oldest admission later than `after`, or with `skip` the one that has so many such before it. */
  oldestAfter(subject: string, policy: string, after: number, skip: number): Promise<Admission | undefined>
  insert(subject: string, policy: string, admission: Admission): Promise<void>
  /** Forgets the admissions that no window reaches any more. */
  deleteUntil(subject: string, policy: string, time: number): Promise<void>
  /** Forgets admissions of a clock that was wrong. */
  deleteAfter(subject: string, policy: string, time: number): Promise<void>
  /** The subjects that count for a phone, with every application. */
  listSubjectsByPhone(phoneHash: string): Promise<string[]>
  /** Under every policy. @returns how many admissions */
  deleteSubject(subject: string): Promise<number>
  /** Of the application itself, and of every phone with it. @returns how many admissions */
  deleteByApplication(appId: string): Promise<number>
  /** Of every subject: what is later than `time` happened at `time`. */
  clampToNow(now: number): Promise<void>
  /** Of every subject: forgets about `chunk` of the oldest admissions, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

/** seq counts within subject and policy, so that the admissions between two of them are a difference. */
export type Admission = { at: number; seq: number }

/** The longest window of any limit. */
export const admissionLifetimeMs = 24 * 60 * 60 * 1000

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
export async function chargeRateLimit(
  tx: Stores,
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

/** What `admit` would find, without a call being counted. @returns undefined where there is no limit */
export async function peekRateLimit(
  tx: Stores,
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
 * How many admissions the window that ends now holds.
 *
 * @param prefetched the newest admission, for who has read it already
 */
export async function measureUsage(
  tx: Stores,
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

/** The clock of another node runs ahead. What it wrote must not block the subject until that time comes. */
const isAhead = (newest: Admission, { windowMs }: RateLimit, now: number) => newest.at > now + windowMs

export async function recordAdmission(
  tx: Stores,
  limit: RateLimit,
  usage: Pick<Usage, 'newest'>,
  now: number,
): Promise<void> {
  const { subject, policy, windowMs } = limit
  const seq = (usage.newest?.seq ?? 0) + 1
  // Where two nodes' clocks differ a little the log must not go backwards.
  const at = Math.max(now, usage.newest?.at ?? 0)
  await tx.rateLimits.insert(subject, policy, { at, seq })
  if (seq % pruneEvery === 0) await tx.rateLimits.deleteUntil(subject, policy, now - windowMs)
}

/** How long until another call is admitted, or while calls are left, until there is one more. */
export async function waitMsFor(tx: Stores, limit: RateLimit, usage: Usage, now: number): Promise<number> {
  const { subject, policy, windowMs } = limit
  // A limit that was lowered: more admissions than it allows must leave the window.
  const excess = usage.used - limit.limit
  const last =
    excess > 0 ? await tx.rateLimits.oldestAfter(subject, policy, now - windowMs, excess) : undefined
  return (last?.at ?? usage.oldestAt ?? now) + windowMs - now
}

async function toRateState(tx: Stores, limit: RateLimit, usage: Usage, now: number): Promise<RateState> {
  return {
    policy: limit.policy,
    limit: limit.limit,
    windowSeconds: limit.windowMs / 1000,
    remaining: Math.max(0, limit.limit - usage.used),
    resetSeconds: Math.max(1, Math.ceil((await waitMsFor(tx, limit, usage, now)) / 1000)),
  }
}

function rateLimited(state: RateState, reason: string): ServiceError {
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
