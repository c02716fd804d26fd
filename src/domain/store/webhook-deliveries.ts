import type { WebhookDeliveryFilter, WebhookDelivery, WebhookAttempt } from '../model/webhook-delivery.ts'
import type { StoredWebhookMessage } from './webhook-outbox.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** Time of the next attempt, and id. */
export type RetryPosition = [number, string]

/** Deliveries as their developer sees them. The caller must have checked that the endpoint is the developer's. */
export type WebhookDeliveryStore = {
  /**
   * Lists newest first.
   *
   * @param query.before an id; lists older deliveries only
   */
  list(
    endpointId: string,
    query: WebhookDeliveryFilter & { limit: number; before?: string | undefined },
  ): Promise<WebhookDelivery[]>
  find(endpointId: string, id: string): Promise<WebhookDelivery | undefined>
  /** Lists the attempts of a delivery, oldest first. */
  attempts(id: string): Promise<WebhookAttempt[]>
  /** Loads the message, whatever the status of endpoint and delivery. */
  load(endpointId: string, id: string): Promise<StoredWebhookMessage | undefined>
  /**
   * Records an attempt that a developer requested. A success completes the delivery; a failure changes neither it nor
   * its schedule.
   *
   * @returns false if the delivery no longer exists
   */
  recordManualAttempt(endpointId: string, id: string, attempt: WebhookAttempt, now: number): Promise<boolean>
  /**
   * Requeues failed and skipped deliveries created in [since, until], with their retry schedule reset.
   *
   * @param range.after an id; later deliveries only
   * @returns their ids, at most `limit`, in order
   */
  requeueEnded(
    endpointId: string,
    range: { since: number; until: number; after?: string | undefined; limit: number },
    now: number,
  ): Promise<string[]>
  /**
   * Makes deliveries created in [since, until] that wait for a retry due at once, with their retry schedule reset.
   *
   * @param range.after `last` of the batch before
   */
  hurryRetries(
    endpointId: string,
    range: { since: number; until: number; after?: RetryPosition | undefined; limit: number },
    now: number,
  ): Promise<{ count: number; last: RetryPosition | undefined }>
  /**
   * Deletes deliveries of an endpoint with their attempts, oldest first.
   *
   * @param range.after the id that the call before returned
   * @returns the id of the last one; undefined if there were fewer than `limit`
   */
  deleteFirst(
    endpointId: string,
    range: { after?: string | undefined; limit: number },
  ): Promise<string | undefined>
  /** Deletes deliveries with their attempts. */
  deleteOldest: DeleteOldest
}
