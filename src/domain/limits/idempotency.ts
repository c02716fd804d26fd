import { ServiceError, type ErrorCode } from '../model/errors.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

/** Whose call this is, and what it asks for. The same key of another caller or route is another key. */
export type IdempotencyScope = { caller: string; route: string; key: string; bodyHash: string }

/** A result, and whether it is the one of an earlier call with the same key. */
export type IdempotentResult<T> = { value: T; replayed: boolean }

export type IdempotencyRecord = { bodyHash: string; answer: string | null }

export type IdempotencyStore = {
  /**
   * Takes the key for this call. Of several calls at once exactly one takes it.
   *
   * @param expiredBefore a record from before this time counts as absent
   * @returns undefined when the key is now ours, otherwise what the earlier call left
   */
  claim(scope: IdempotencyScope, now: number, expiredBefore: number): Promise<IdempotencyRecord | undefined>
  finish(scope: IdempotencyScope, result: string): Promise<void>
  /** About `chunk` of the oldest, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

export const idempotencyLifetimeMs = 24 * 60 * 60 * 1000

/** What is kept: the value, the refusal, or only that it was done, where the value held credentials. */
type StoredResult =
  | { value: unknown; open?: true }
  | { withheld: true }
  | {
      refusal: {
        code: ErrorCode
        message: string
        reason?: string | undefined
        metadata?: ServiceError['metadata']
      }
    }

/** For work that goes on after its transaction: how its answer is found again where it was never written down. */
export type DeferredResult<T> = {
  /** Whether the work goes on, so that its answer is yet to come. `saveResult` writes it down. */
  isPending(value: T): boolean
  /** @returns the answer as things stand, or undefined while the work goes on */
  resolve(tx: Stores, value: T): Promise<T | ServiceError | undefined>
}

/**
 * Does the work once for each key: a repeat within 24 hours gets the first call's answer and does nothing. The claim
 * of the key, the work and its answer are one transaction.
 *
 * @param work returns its value or the refusal that is final; what it wrote stays in both cases. What it throws
 *   undoes everything, the claim included, so that the call may be repeated.
 * @param options.open the answer is final only later, and lost with a process that dies meanwhile
 * @param options.withhold the value holds credentials and must not be stored; a repeat is refused
 * @throws what `work` threw or returned as a refusal; IDEMPOTENCY_KEY_REUSED the key came with another body;
 *   CONFLICT (IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_RESULT_NOT_STORED)
 */
export async function runIdempotently<T>(
  store: Store,
  clock: Clock,
  scope: IdempotencyScope | undefined,
  work: (tx: Stores) => Promise<T | ServiceError>,
  options: { redact?: boolean; deferred?: DeferredResult<T> } = {},
): Promise<IdempotentResult<T>> {
  const result = await store.write(async (tx): Promise<IdempotentResult<T | ServiceError>> => {
    if (scope) {
      const now = clock.now()
      const existing = await tx.idempotency.claim(scope, now, now - idempotencyLifetimeMs)
      if (existing) return { value: await replay(tx, existing, scope, options.deferred), replayed: true }
    }
    const value = await work(tx)
    if (scope) await tx.idempotency.finish(scope, JSON.stringify(toStoredResult(value, options)))
    return { value, replayed: false }
  })
  const { value, replayed } = result
  if (value instanceof ServiceError) throw replayed ? new ReplayedError(value) : value
  return { value, replayed }
}

/** A refusal of an earlier call, told again. */
export class ReplayedError extends ServiceError {
  constructor(refusal: ServiceError) {
    super(refusal.code, refusal.message, { reason: refusal.reason, metadata: refusal.metadata })
  }
}

/** Writes down what the call with this key has come to. */
export const saveResult = (tx: Stores, scope: IdempotencyScope, result: unknown): Promise<void> =>
  tx.idempotency.finish(scope, JSON.stringify(toStoredResult(result)))

function toStoredResult<T>(
  value: T | ServiceError,
  { redact = false, deferred }: { redact?: boolean; deferred?: DeferredResult<T> } = {},
): StoredResult {
  if (value instanceof ServiceError) {
    const { code, message, reason, metadata } = value
    return { refusal: { code, message, reason, metadata } }
  }
  if (redact) return { withheld: true }
  return deferred?.isPending(value) ? { value, open: true } : { value }
}

async function replay<T>(
  tx: Stores,
  record: IdempotencyRecord,
  scope: IdempotencyScope,
  deferred: DeferredResult<T> | undefined,
): Promise<T | ServiceError> {
  if (record.bodyHash !== scope.bodyHash) {
    throw new ServiceError(
      'IDEMPOTENCY_KEY_REUSED',
      'This idempotency key was already used with a different body. Use a new key.',
    )
  }
  if (record.answer === null) throw inProgress()
  // Written by toStored of this very route, with this very body.
  const stored = JSON.parse(record.answer) as StoredResult
  if ('withheld' in stored) {
    throw new ServiceError(
      'CONFLICT',
      'The first request with this idempotency key succeeded. Its response held credentials, so it was not stored.',
      { reason: 'IDEMPOTENCY_RESULT_NOT_STORED' },
    )
  }
  if ('refusal' in stored)
    return new ServiceError(stored.refusal.code, stored.refusal.message, stored.refusal)
  const value = stored.value as T
  if (!stored.open || !deferred) return value
  const resolved = await deferred.resolve(tx, value)
  if (resolved === undefined) throw inProgress()
  return resolved
}

const inProgress = () =>
  new ServiceError(
    'CONFLICT',
    'The first request with this idempotency key is still in progress. Retry in a second.',
    {
      reason: 'IDEMPOTENCY_IN_PROGRESS',
      retryAfterSeconds: 1,
    },
  )
