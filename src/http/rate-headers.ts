import type { RateState } from '../domain/model/rate-limit.ts'

/** Sets `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
export function setRateHeaders(headers: Record<string, unknown>, rate: RateState | undefined) {
  if (!rate) return
  headers['ratelimit-policy'] = `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`
  headers['ratelimit'] = `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`
}

type Peek = () => Promise<RateState | undefined>

const deferred = new WeakMap<Request, Peek>()

/**
 * Registers how to read the rate limit if the request fails before it reaches the limiter, for example on an invalid
 * body. Nothing is read for other responses.
 */
export const deferRateHeaders = (request: Request, peek: Peek) => void deferred.set(request, peek)

/** Reads the rate limit registered for this request. Never rejects: the error response is sent without it. */
export const deferredRate = async (request: Request): Promise<RateState | undefined> =>
  deferred
    .get(request)?.()
    .catch(() => undefined)
