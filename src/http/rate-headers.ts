import type { RateState } from '../domain/model/rate-limit.ts'
import { setReplayedHeader } from './idempotency.ts'

/** Sets `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
export function setRateHeaders(headers: Record<string, unknown>, rate: RateState | undefined) {
  if (!rate) return
  headers['ratelimit-policy'] = `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`
  headers['ratelimit'] = `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`
}

/**
 * Sets the rate limit of a call that succeeded, and `Idempotency-Replayed` if it is repeated. A repeated call was not charged:
 * its limit is read, and left out if it cannot be. The call has done its work.
 */
export function setResultHeaders(
  request: Request,
  headers: Record<string, string | number>,
  { replayed, rate }: { replayed: boolean; rate: RateState | undefined },
): Promise<void> | void {
  if (!replayed) return setRateHeaders(headers, rate)
  setReplayedHeader(headers, replayed)
  return deferredRate(request).then((deferred) => setRateHeaders(headers, rate ?? deferred))
}

type Peek = () => Promise<RateState | undefined>

const deferred = new WeakMap<Request, Peek>()

/**
 * Registers how to read the rate limit if the limiter does not tell it: the request fails before, for example on an invalid
 * body, or is a repetition. Nothing is read for other responses.
 */
export const deferRateHeaders = (request: Request, peek: Peek) => void deferred.set(request, peek)

/** Reads the rate limit registered for this request. Never rejects: the response is sent without it. */
export const deferredRate = async (request: Request): Promise<RateState | undefined> =>
  deferred
    .get(request)?.()
    .catch(() => undefined)
