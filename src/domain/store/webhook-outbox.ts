import type { ClaimRequest, PermitHolder } from '../model/fair-permits.ts'
import type { WebhookAttempt, WebhookMessage } from '../model/webhook-delivery.ts'

/**
 * A delivery leased by a worker. A claim is one lease: `claim` counts them from 1; with the owner it is the fencing
 * token of the worker's writes.
 */
export type DeliveryClaim = {
  id: string
  endpointId: string
  claim: number
  /** Failed attempts in the current retry schedule, before this one. */
  failures: number
}

/** A claim, with what its worker gives a permit to. */
export type ClaimedDelivery = DeliveryClaim & PermitHolder

/** The worker and the time that a lease of a new delivery names, on SQLite. `leaseUntil` is later than `now` of the insertion. */
export type DeliveryLease = { owner: string; leaseUntil: number }

export type NewDelivery = {
  developerId: string
  /** Application of the event, which decides whether it is a test; null if it is an event of the developer. */
  appId: string | null
  id: string
  endpointId: string
  eventSeq: number
  type: string
  now: number
  /** Event id and body, as the log entry has them. */
  payload: { id: string; body: string }
}

/**
 * A delivery with its lease. SQLite may lease one as it inserts it; then it has its payload, which need not be read again.
 */
export type LeasedDelivery = ClaimedDelivery & { leaseUntil: number; payload?: NewDelivery['payload'] }

/**
 * The worker's queue in memory, on SQLite, where no other process sends. It only saves work: the outbox has each delivery,
 * and a queue that is lost is found there when the leases expire, or at the next start.
 */
export type DeliveryQueue = {
  /** Returns a lease if such a delivery could be sent at once; undefined leaves it to the next claim. */
  offerLease(now: number, use: PermitHolder): DeliveryLease | undefined
  /** Takes deliveries with such a lease, after the commit. */
  push(deliveries: LeasedDelivery[]): void
}

/** Where to send the webhooks of an endpoint. */
export type EndpointTarget = Pick<WebhookMessage, 'url' | 'secret' | 'headers'>

type DeliveryOutcome = DeliveryClaim & {
  owner: string
  attempt: WebhookAttempt
  /** Time of the next attempt after a failure; null if this was the last attempt. */
  retryAt: number | null
  /** End of the attempt. */
  now: number
}

export type StoredWebhookMessage = WebhookMessage & { deliveryId: string }

/** Transactional outbox: each event writes one row per subscribed endpoint in its own transaction. */
export type WebhookOutboxStore = {
  /**
   * Locks the endpoints that `insert` is about to get deliveries for, and makes them due. Call it in the order of their
   * ids. Does nothing on SQLite, where `insert` does it.
   */
  lockEndpoints(endpointIds: readonly string[], now: number): void
  /**
   * Adds deliveries in the event's transaction; one to a disabled endpoint is skipped. Order them by endpoint ids (lock
   * order). On SQLite a delivery is leased and queued at once if the queue offers a lease and the endpoint is healthy, has
   * nothing else that is due, and has fewer than two leases.
   */
  insert(deliveries: readonly NewDelivery[]): void

  /**
   * Leases due deliveries until `leaseUntil`, while `permits` has one for their developer; at most two per endpoint are
   * leased at once, across all processes. Live applications come before test ones, healthy endpoints before failing ones;
   * then the developers take turns, each with the endpoint that has waited longest. Disabled endpoints are skipped.
   * The cost depends on the number of due deliveries, not on pending or completed ones.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>

  /** Time at which the next delivery is due; undefined if none is pending. */
  nextDueAt(): Promise<number | undefined>

  /** Counts pending deliveries without a lease, up to `limit`, and returns when the oldest was created. */
  backlog(limit: number): Promise<{ pending: number; oldestAt: number | null }>

  /**
   * Loads the messages of deliveries whose endpoint is still enabled, with its current settings. A delivery without its payload
   * must still exist.
   */
  load(
    deliveries: ReadonlyArray<Pick<LeasedDelivery, 'id' | 'endpointId' | 'payload'>>,
  ): Promise<StoredWebhookMessage[]>

  /** Releases a lease without an attempt. */
  release(claim: DeliveryClaim & { owner: string }): Promise<void>

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
