import type { WebhookAttempt } from '../model/webhook-delivery.ts'
import type { EndpointHeaders } from '../model/webhook-endpoint.ts'

/**
 * A delivery leased by a worker. A claim is one lease: `claim` counts them from 1; with the owner it is the fencing
 * token of the worker's writes.
 */
export type ClaimedDelivery = {
  id: string
  endpointId: string
  claim: number
  /** Failed attempts in the current retry schedule, before this one. */
  failures: number
}

export type DeliveryClaimRequest = {
  /** Unique id of the worker, never reused. */
  owner: string
  now: number
  leaseUntil: number
  limit: number
}

export type DeliveryOutcome = ClaimedDelivery & {
  owner: string
  attempt: WebhookAttempt
  /** Time of the next attempt after a failure; null if this was the last attempt. */
  retryAt: number | null
  /** End of the attempt. */
  now: number
}

/** A message as stored. Secret, headers and body are null if they cannot be decrypted. */
export type StoredWebhookMessage = {
  deliveryId: string
  endpointId: string
  /** Event id. */
  id: string
  url: string
  secret: string | null
  headers: EndpointHeaders | null
  body: string | null
}

/** Transactional outbox: each event writes one row per subscribed endpoint in its own transaction. */
export type WebhookOutboxStore = {
  /** Adds a delivery in the event's transaction. Call it in the order of endpoint ids (lock order). */
  insert(delivery: {
    id: string
    endpointId: string
    eventSeq: number
    type: string
    now: number
  }): Promise<void>

  /**
   * Leases due deliveries until `leaseUntil`; at most two per endpoint are leased at once, across all processes.
   * Healthy endpoints come before failing ones, then those that have waited longest. Disabled endpoints are skipped.
   * The cost depends on the number of due deliveries, not on pending or completed ones.
   */
  claim(request: DeliveryClaimRequest): Promise<ClaimedDelivery[]>

  /** Time at which the next delivery is due; undefined if none is pending. */
  nextDueAt(): Promise<number | undefined>

  /** Counts pending deliveries without a lease, up to `limit`, and returns when the oldest was created. */
  backlog(limit: number): Promise<{ pending: number; oldestAt: number | null }>

  /** Loads the messages of deliveries that still exist and whose endpoint is still enabled, with current settings. */
  load(ids: string[]): Promise<StoredWebhookMessage[]>

  /** Releases a lease without an attempt. */
  release(claim: ClaimedDelivery & { owner: string }): Promise<void>

  /**
   * Records an attempt with its delivery, and updates the endpoint's last success and `failingSince`. Does not record
   * it if another worker has taken over the lease.
   *
   * @returns the time since which the endpoint has been failing; null if it works or the lease was lost
   */
  finish(outcome: DeliveryOutcome): Promise<number | null>

  /** Releases all leases. Only safe if no other process can hold one. */
  releaseAll(): Promise<void>
}
