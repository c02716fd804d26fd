import { ServiceError } from './errors.ts'
import type { RateState } from './rate-limit.ts'

/**
 * A refusal that commits. Inside `Store.write` there are two ways to refuse a call, and they differ in what
 * is kept:
 *
 * - `return reject(error)` **commits**: everything that the transaction wrote stays (the charged rate limit,
 *   the counted attempt, the log entry, the result under the idempotency key), and the caller gets the error
 *   afterwards.
 * - `throw error` **rolls back**: nothing that the transaction wrote stays, its claim of an idempotency key
 *   included, so that the caller can retry.
 *
 * Functions that write and then refuse return a `Rejected`, never a bare `ServiceError`: their caller must
 * return it from the transaction. Outside the transaction, `unwrap` turns it into the error that the caller
 * gets.
 */
export type Rejected = { readonly rejected: ServiceError }

/** Refuses a call and commits what the transaction wrote; see `Rejected`. */
export const reject = (error: ServiceError): Rejected => ({ rejected: error })

/** Tells a refusal from the value of a transaction. */
export const isRejected = <T>(result: T | Rejected): result is Rejected =>
  typeof result === 'object' &&
  result !== null &&
  'rejected' in result &&
  result.rejected instanceof ServiceError

/** Sets the rate that a refused call was charged to, for the `RateLimit` headers. @returns the refusal's error */
export function attachRate({ rejected }: Rejected, rate: RateState | undefined): ServiceError {
  rejected.rate = rate
  return rejected
}

/** Unwraps the result of a committed transaction. @throws the refusal, if it is one */
export function unwrap<T>(result: T | Rejected): T {
  if (isRejected(result)) throw result.rejected
  return result
}
