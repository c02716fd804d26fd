import { ServiceError } from './errors.ts'
import type { RateState } from './rate-limit.ts'

/**
 * A refusal as a value. An operation returns it with the changes that stay all the same (the charged rate limit, the
 * counted attempt, the log entry, the result under the idempotency key), or with none. A body of `Store.write` that
 * returns one commits, and one that throws rolls back. `unwrap` turns it into the error that the caller gets.
 */
export type Rejected = { readonly rejected: ServiceError }

/** Refuses a call; see `Rejected`. */
export const reject = (error: ServiceError): Rejected => ({ rejected: error })

/** Tells a refusal from another result. */
export const isRejected = <T>(result: T | Rejected): result is Rejected =>
  typeof result === 'object' &&
  result !== null &&
  'rejected' in result &&
  result.rejected instanceof ServiceError

/** Sets the rate that a refused call was charged to, for the `RateLimit` headers, unless it says so itself. @returns its error */
export function attachRate({ rejected }: Rejected, rate: RateState | undefined): ServiceError {
  rejected.rate ??= rate
  return rejected
}

/** Unwraps the result of a call. @throws the refusal, if it is one */
export function unwrap<T>(result: T | Rejected): T {
  if (isRejected(result)) throw result.rejected
  return result
}
