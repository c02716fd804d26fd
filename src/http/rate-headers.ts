import type { RateState } from '../domain/limits/rate-limit.ts'

/** `RateLimit-Policy` and `RateLimit` as in the IETF draft (draft-ietf-httpapi-ratelimit-headers-10). */
export function setRateHeaders(headers: Record<string, string | number>, rate: RateState | undefined) {
  if (!rate) return
  headers['ratelimit-policy'] = `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`
  headers['ratelimit'] = `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`
}

type Peek = () => Promise<RateState | undefined>

const deferred = new WeakMap<Request, Peek>()

/**
 * Lets the answer to a request tell what is left of a rate also where it is refused before it comes to the limit, such
 * as for a body that is not valid. Nothing is read for other answers.
 */
export const deferRateHeaders = (request: Request, peek: Peek) => void deferred.set(request, peek)

/** What was offered for this request. Never rejects: a refusal is answered whether or not its rate is known. */
export const deferredRate = async (request: Request): Promise<RateState | undefined> =>
  deferred
    .get(request)?.()
    .catch(() => undefined)
