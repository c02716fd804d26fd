import { timingSafeEqualBytes } from '../shared/hmac.ts'
import { computeSignature } from '../shared/webhook-signature.ts'

/** How far the timestamp of a received webhook may be from our clock. */
const toleranceMs = 300_000

/**
 * Checks the signature of a received webhook. There may be several, separated by spaces, or by commas too as supabase/auth
 * joins them. Takes the same time for each wrong one.
 *
 * @param nowMs by the wall clock
 */
export function isSignedBy(
  secret: string,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  nowMs: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (!id || !timestamp || !signatures || !/^\d{1,12}$/.test(timestamp)) return false
  if (Math.abs(nowMs - Number(timestamp) * 1000) > toleranceMs) return false
  const expected = computeSignature(secret, { id, timestamp, body })
  return signatures.split(' ').some((one) => {
    const presented = Buffer.from(/^v1,([^,]+),?$/.exec(one)?.[1] ?? '', 'base64')
    return timingSafeEqualBytes(presented, expected)
  })
}
