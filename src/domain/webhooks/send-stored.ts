import {
  notSent,
  type SendWebhook,
  type WebhookAttemptResult,
  type WebhookMessage,
} from '../model/webhook-delivery.ts'
import type { EndpointHeaders } from '../model/webhook-endpoint.ts'

type StoredParts = { secret: string | null; headers: EndpointHeaders | null; body: string | null }

/** Makes one attempt to send a stored message. It fails as `unreadable` if a part of it cannot be decrypted. */
export async function sendStored(
  send: SendWebhook,
  message: Omit<WebhookMessage, keyof StoredParts> & StoredParts,
  signal?: AbortSignal,
): Promise<WebhookAttemptResult> {
  const { secret, headers, body } = message
  if (secret === null || headers === null || body === null) return notSent('unreadable', 0)
  return send({ ...message, secret, headers: { ...headers }, body }, signal)
}
