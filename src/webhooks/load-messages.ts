import type { Stores } from '../domain/store/store.ts'
import type { ClaimedDelivery, LeasedDelivery, StoredWebhookMessage } from '../domain/store/webhook-outbox.ts'

/** A leased delivery; without `message` it is read from the outbox. */
export type HeldDelivery = ClaimedDelivery & Pick<LeasedDelivery, 'leaseUntil'> & Partial<LeasedDelivery>

/**
 * Loads URL and secret after the claim is committed, because a secret rotated before then must no longer sign. An
 * endpoint that was deleted or disabled has no message.
 *
 * @returns messages by delivery id
 */
export async function loadMessages(
  { webhookOutbox }: Pick<Stores, 'webhookOutbox'>,
  claims: readonly HeldDelivery[],
): Promise<Map<string, StoredWebhookMessage>> {
  const isWhole = (claim: HeldDelivery) => claim.message !== undefined
  const [targets, stored] = await Promise.all([
    webhookOutbox.loadTargets([...new Set(claims.filter(isWhole).map(({ endpointId }) => endpointId))]),
    webhookOutbox.load(claims.filter((claim) => !isWhole(claim)).map(({ id }) => id)),
  ])
  const messages = new Map(stored.map((message) => [message.deliveryId, message]))
  const targetsById = new Map(targets.map((target) => [target.endpointId, target]))
  for (const { id, endpointId, message } of claims) {
    const target = targetsById.get(endpointId)
    if (target && message) messages.set(id, { ...target, ...message, deliveryId: id })
  }
  return messages
}
