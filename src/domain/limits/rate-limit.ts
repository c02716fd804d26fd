import { ServiceError, tryAgainIn } from '../model/errors.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import type { Change } from '../store/operation.ts'
import type { RateLimitStore } from '../store/rate-limits.ts'
import type { Stores } from '../store/store.ts'
import {
  admissionLifetimeMs,
  type RateLimit,
  type RateState,
  type StoredPolicy,
  type Usage,
} from '../model/rate-limit.ts'

/**
 * Rate limiter over a sliding window (sliding-window log): admits and records a call, or refuses it. The limit
 * holds in *every* window of that length; fixed windows and token buckets can admit twice as many calls. On
 * PostgreSQL the caller must hold the row lock on the subject; SQLite has one writer.
 *
 * The limits of send and verify come from the developer's plan (`model/plans.ts`).
 *
 * @returns undefined if there is no limit
 * @throws RATE_LIMITED (`reason`) nothing was written
 */
export async function chargeRateLimit(
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit<StoredPolicy>,
  now: number,
  reason: string,
): Promise<RateState | undefined> {
  const { rate, changes } = unwrap(admit(limit, await tx.rateLimits.usage(limit, now), now, reason))
  tx.rateLimits.insert(changes.map(({ admission }) => admission))
  return rate
}

/** Reads the state of a limit without counting a call. @returns undefined if there is no limit */
export async function peekRateLimit(
  tx: { rateLimits: Pick<RateLimitStore, 'usage'> },
  limit: RateLimit<StoredPolicy>,
  now: number,
): Promise<RateState | undefined> {
  return toRateState(limit, await tx.rateLimits.usage(limit, now), now)
}

/** An admitted call, with the changes that charge it. Without a limit there are none, and no rate. */
export type Charged = {
  rate: RateState | undefined
  changes: ReadonlyArray<Extract<Change, { kind: 'admission' }>>
}

/**
 * Decides on a call: pure and synchronous. Its changes belong to the transaction that read the usage.
 *
 * @returns the refusal RATE_LIMITED (`reason`)
 */
export function admit(
  limit: RateLimit<StoredPolicy>,
  usage: Usage,
  now: number,
  reason: string,
): Charged | Rejected {
  const rate = toRateState(limit, usage, now)
  if (!rate) return { rate, changes: [] }
  if (usage.used >= limit.limit) return reject(rateLimited(limit, rate, reason))
  const { newest, hasLater } = usage
  const admission = {
    subject: limit.subject,
    policy: limit.policy,
    // The log must not go backwards if the clocks of two nodes differ a little.
    at: Math.max(now, newest?.at ?? 0),
    seq: (newest?.seq ?? 0) + 1,
    replacesLater: hasLater,
    expiredUntil: now - admissionLifetimeMs,
  }
  return { rate: { ...rate, remaining: rate.remaining - 1 }, changes: [{ kind: 'admission', admission }] }
}

/** @returns undefined if there is no limit */
export function toRateState(
  { policy, limit, windowMs }: RateLimit,
  { used, expiringAt }: Pick<Usage, 'used' | 'expiringAt'>,
  now: number,
): RateState | undefined {
  if (limit === 0) return undefined
  // Until another call is admitted or, while calls remain, until one more becomes available.
  const waitMs = (expiringAt ?? now) + windowMs - now
  return {
    policy,
    limit,
    windowSeconds: windowMs / 1000,
    remaining: Math.max(0, limit - used),
    resetSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  }
}

/** RATE_LIMITED with the state of the limit, for the response's headers. */
export function rateLimited({ policy, plan }: RateLimit, state: RateState, reason: string): ServiceError {
  const { limit, windowSeconds, resetSeconds } = state
  const error = new ServiceError(
    'RATE_LIMITED',
    `${describeLimit(policy, limit)}${plan === undefined ? '' : ` (plan ${plan})`}. ${tryAgainIn(resetSeconds)}`,
    {
      reason,
      retryAfterSeconds: resetSeconds,
      metadata: { policy, limit, windowSeconds, ...(plan !== undefined && { plan }) },
    },
  )
  error.rate = state
  return error
}

/** Says who may do what. Every limit counts per minute. */
function describeLimit(policy: string, limit: number): string {
  const [subject, action, one, many] = limitTexts[policy] ?? ['You', 'make', 'call', 'calls']
  return `${subject} may ${action} ${limit} ${limit === 1 ? one : many} per minute`
}

const limitTexts: Readonly<Record<string, readonly [string, string, string, string]>> = {
  'otp-send': ['This application', 'send', 'code', 'codes'],
  'otp-verify': ['This application', 'verify', 'code', 'codes'],
  lookups: ['This application', 'make', 'look-up', 'look-ups'],
  sessions: ['This application', 'create', 'session', 'sessions'],
  'webhook-test': ['You', 'send', 'test event', 'test events'],
  'webhook-redeliver': ['You', 'redeliver or recover', 'time', 'times'],
}
