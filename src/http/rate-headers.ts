import type { RateState } from '../domain/rate-limit.ts'

/** `RateLimit-Policy` and `RateLimit` as in the IETF draft (draft-ietf-httpapi-ratelimit-headers-10). */
export function markRate(headers: Record<string, string | number>, rate: RateState | undefined) {
  if (!rate) return
  headers['ratelimit-policy'] = `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`
  headers['ratelimit'] = `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`
}
