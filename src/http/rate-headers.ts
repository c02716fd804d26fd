import type { RateState } from '../domain/limits/rate-limit.ts'

/** `RateLimit-Policy` and `RateLimit` as in the IETF draft (draft-ietf-httpapi-ratelimit-headers-10). */
export function markRate(headers: Record<string, string | number>, rate: RateState | undefined) {
  if (!rate) return
  headers['ratelimit-policy'] = `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`
  headers['ratelimit'] = `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`
}

type Peek = () => Promise<RateState | undefined>

const offered = new WeakMap<Request, Peek>()

/**
 * Lets the answer to a request tell what is left of a rate also where it is refused before it comes to the limit, such
 * as for a body that is not valid. Nothing is read for other answers.
 */
export const offerRate = (request: Request, peek: Peek) => void offered.set(request, peek)

/** What was offered for this request. Never rejects: a refusal is answered whether or not its rate is known. */
export const offeredRate = async (request: Request): Promise<RateState | undefined> =>
  offered
    .get(request)?.()
    .catch(() => undefined)
