import { createHmac } from 'node:crypto'

/** Signature headers of Standard Webhooks 1.0. */
export type SignatureHeaders = {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * Signs one attempt with HMAC-SHA-256 over `{id}.{timestamp}.{body}`, as any Standard Webhooks library
 * verifies it.
 *
 * The key is the base64-decoded text after `whsec_`. Its 48 characters look like hex, but the libraries
 * decode them as base64, which their length allows without padding.
 *
 * @param body the exact text that is sent
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
