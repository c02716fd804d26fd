/** The parts of a webhook that its signature covers, as they are sent. `timestamp` is in whole seconds. */
export type SignedMessage = { id: string; timestamp: string; body: string }

/** Signature headers of Standard Webhooks 1.0. */
type SignatureHeaders = {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * Computes HMAC-SHA-256 over `{id}.{timestamp}.{body}`, as any Standard Webhooks library verifies it.
 *
 * The key is the base64-decoded text after `whsec_`. The 48 characters of otpd's own secrets look like hex, but the
 * libraries decode them as base64, which their length allows without padding.
 */
export function computeSignature(secret: string, { id, timestamp, body }: SignedMessage): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return new Bun.CryptoHasher('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}

/** Signs a webhook; the result is the value of `webhook-signature`. */
export const signWebhook = (secret: string, message: SignedMessage): string =>
  `v1,${computeSignature(secret, message).toString('base64')}`

/**
 * Signs one attempt to deliver a webhook.
 *
 * @param message.body the exact text that is sent
 * @param nowMs time of the attempt, not of the event
 */
export function signatureHeaders(
  secret: string,
  { id, body }: { id: string; body: string },
  nowMs: number,
): SignatureHeaders {
  const timestamp = String(Math.floor(nowMs / 1000))
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signWebhook(secret, { id, timestamp, body }),
  }
}
