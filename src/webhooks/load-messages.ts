import type { Stores } from '../domain/store/store.ts'
import type { LeasedDelivery, StoredWebhookMessage } from '../domain/store/webhook-outbox.ts'

/**
 * Loads URL and secret after the claim is committed, because a secret rotated before then must no longer sign. An
 * endpoint that was deleted or disabled has no message.
 *
 * @returns messages by delivery id
 */
export async function loadMessages(
  { webhookOutbox }: Pick<Stores, 'webhookOutbox'>,
  claims: readonly LeasedDelivery[],
): Promise<Map<string, StoredWebhookMessage>> {
  const hasPayload = (claim: LeasedDelivery) => claim.payload !== undefined
  const [targets, stored] = await Promise.all([
    webhookOutbox.loadTargets([...new Set(claims.filter(hasPayload).map(({ endpointId }) => endpointId))]),
    webhookOutbox.load(claims.filter((claim) => !hasPayload(claim)).map(({ id }) => id)),
  ])
  const messages = new Map(stored.map((message) => [message.deliveryId, message]))
  const targetsById = new Map(targets.map((target) => [target.endpointId, target]))
  for (const { id, endpointId, payload } of claims) {
    const target = targetsById.get(endpointId)
    if (target && payload) messages.set(id, { ...target, ...payload, deliveryId: id })
  }
  return messages
}
