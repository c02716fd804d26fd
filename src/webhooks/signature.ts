import { createHmac } from 'node:crypto'

/** The headers that make a message verifiable, by Standard Webhooks 1.0. */
export type SignatureHeaders = {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * Signs one attempt: `{id}.{timestamp}.{body}`, HMAC-SHA-256, as every Standard Webhooks library verifies it.
 *
 * The key is what base64 makes of the 48 characters behind `whsec_`. They look like hex, but the libraries decode
 * them as base64, and the length fits without padding.
 *
 * @param body the very text that is sent
 * @param now time of the attempt, not of the event
 */
export function signWebhook(
  { id, secret, body }: { id: string; secret: string; body: string },
  now: number,
): SignatureHeaders {
  const timestamp = String(Math.floor(now / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}
