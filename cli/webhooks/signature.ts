import { createHmac, timingSafeEqual } from 'node:crypto'

export type SignedMessage = { id: string; timestamp: string; body: string }

export const secretPattern = /^whsec_[0-9a-f]{48}$/

/** Signs as Standard Webhooks 1.0: HMAC-SHA-256 over `{id}.{timestamp}.{body}`; the key is the base64 after `whsec_`. */
export function signWebhook(secret: string, { id, timestamp, body }: SignedMessage): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

/**
 * Whether one of the signatures is valid, compared in constant time.
 *
 * @param signatures header value: one or more signatures, separated by spaces
 */
export function isSignedBy(secret: string, message: SignedMessage, signatures: string): boolean {
  const expected = Buffer.from(signWebhook(secret, message))
  return signatures
    .split(' ')
    .map((signature) => Buffer.from(signature))
    .some((signature) => signature.length === expected.length && timingSafeEqual(signature, expected))
}
