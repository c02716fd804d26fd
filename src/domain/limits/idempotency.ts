import { ServiceError, type ErrorCode } from '../model/errors.ts'
import { isRejected, reject, unwrap, type Rejected } from '../model/rejected.ts'
import type { Clock } from '../model/clock.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import type { Change } from '../store/operation.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'

/** A result, and whether it was replayed from an earlier call with the same key. */
export type IdempotentResult<T> = { value: T; replayed: boolean }

export const idempotencyLifetimeMs = dayMs

/**
 * Stored form of a result: the value, the refusal, or only that the call succeeded if its value held
 * credentials.
 */
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

/**
 * Runs `work` once per idempotency key: a retry within 24 hours gets the first call's result and changes
 * nothing. The claim of the key, the work and its saved result are one transaction.
 *
 * @param work returns its value; a throw rolls back everything, the claim included, so that a refusal leaves
 *   nothing behind and a retry is judged again
 * @param options.redact the value holds credentials and must not be stored; a retry is refused
 * @throws what `work` threw; IDEMPOTENCY_KEY_REUSED when the key was used with a different body; CONFLICT
 *   (IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_RESULT_NOT_STORED)
 */
export async function runIdempotently<T, Names extends keyof Stores>(
  store: Store<Names | 'idempotency'>,
  clock: Clock,
  scope: IdempotencyScope | undefined,
  work: (tx: Pick<Stores, Names>) => Promise<T>,
  options: { redact?: boolean } = {},
): Promise<IdempotentResult<T>> {
  const { value, replayed } = await store.write(async (tx): Promise<IdempotentResult<T | Rejected>> => {
    const earlier = await claimKey<T>(tx, scope, clock.now())
    if (earlier) return { value: earlier.value, replayed: true }
    const value = await work(tx)
    if (scope) await tx.idempotency.finish(scope, JSON.stringify(toStoredResult(value, options)))
    return { value, replayed: false }
  })
  if (isRejected(value)) throw new ReplayedError(value.rejected)
  return { value, replayed }
}

/** Refusals of calls that made an OTP request: repeating such a call would make another one. */
const storedRefusals: ReadonlySet<ErrorCode> = new Set(['DESTINATION_BLOCKED', 'DELIVERY_FAILED'])

/** A refusal replayed from an earlier call. */
export class ReplayedError extends ServiceError {
  constructor(refusal: ServiceError) {
    super(refusal.code, refusal.message, { reason: refusal.reason, metadata: refusal.metadata })
  }
}

/**
 * The saved result of an earlier call. `isPending`: its work went on after the transaction and may still
 * change it.
 */
type EarlierResult<T> = { value: T | Rejected; isPending: boolean }

/**
 * Claims the key for this call, inside the call's transaction.
 *
 * @returns undefined when this call now holds the key, or has none, otherwise the earlier call's result
 * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body; CONFLICT
 *   (IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_RESULT_NOT_STORED)
 */
async function claimKey<T>(
  tx: Pick<Stores, 'idempotency'>,
  scope: IdempotencyScope | undefined,
  now: number,
): Promise<EarlierResult<T> | undefined> {
  const record = scope && (await tx.idempotency.claim(scope, now, now - idempotencyLifetimeMs))
  const earlier = record && readEarlierResult<T>(record, scope, now)
  return earlier && unwrap(earlier)
}

/**
 * Reads the stored result of an earlier call.
 *
 * @returns undefined if there was none within 24 hours; the refusal IDEMPOTENCY_KEY_REUSED when the key was used with a
 *   different body, or CONFLICT (IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_RESULT_NOT_STORED)
 */
export function readEarlierResult<T>(
  { bodyHash, answer, createdAt }: IdempotencyRecord,
  scope: IdempotencyScope,
  now: number,
): EarlierResult<T> | Rejected | undefined {
  if (createdAt <= now - idempotencyLifetimeMs) return undefined
  if (bodyHash !== scope.bodyHash && !scope.earlierBodyHashes.includes(bodyHash)) {
    return reject(
      new ServiceError(
        'IDEMPOTENCY_KEY_REUSED',
        'This idempotency key was already used with a different body. Use a new key.',
      ),
    )
  }
  if (answer === null) return reject(idempotencyInProgress())
  // Written by toStoredResult for this very route, with this very body.
  const stored = JSON.parse(answer) as StoredResult
  if ('withheld' in stored) {
    return reject(
      new ServiceError(
        'CONFLICT',
        'The first request with this idempotency key succeeded. Its response held credentials, so it was not stored.',
        { reason: 'IDEMPOTENCY_RESULT_NOT_STORED' },
      ),
    )
  }
  if ('refusal' in stored) {
    const { code, message, ...extras } = stored.refusal
    return { value: reject(new ServiceError(code, message, extras)), isPending: false }
  }
  return { value: stored.value as T, isPending: stored.open === true }
}

/**
 * Saves the result of a call with a key. A refusal that made no OTP request is not saved, so that a retry is judged again: its
 * reason may be gone, and refused calls must not fill the disk.
 *
 * @param options.isPending the work goes on after this transaction; a later save replaces this result
 */
export function resultChanges(
  scope: IdempotencyScope | undefined,
  result: unknown,
  now: number,
  options: { isPending?: boolean } = {},
): Change[] {
  if (!scope || (isRejected(result) && !storedRefusals.has(result.rejected.code))) return []
  return [{ kind: 'idempotency', scope, answer: JSON.stringify(toStoredResult(result, options)), at: now }]
}

function toStoredResult(
  result: unknown,
  { redact = false, isPending = false }: { redact?: boolean; isPending?: boolean },
): StoredResult {
  if (isRejected(result)) {
    const { code, message, reason, metadata } = result.rejected
    return { refusal: { code, message, reason, metadata } }
  }
  if (redact) return { withheld: true }
  return isPending ? { value: result, open: true } : { value: result }
}

/** CONFLICT (IDEMPOTENCY_IN_PROGRESS). @param earlier the call that is not finished */
export const idempotencyInProgress = (earlier = 'The first request with this idempotency key') =>
  new ServiceError('CONFLICT', `${earlier} is still in progress. Retry in a second.`, {
    reason: 'IDEMPOTENCY_IN_PROGRESS',
    retryAfterSeconds: 1,
  })
