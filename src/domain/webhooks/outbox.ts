import type { SealedHeaders } from './headers.ts'
import type { WebhookAttempt } from './delivery.ts'

/** So that a receiver that hangs holds up nobody else: over all processes that work on the database. */
export const sendsPerEndpointMax = 2

/** A delivery that one worker holds. `claim` counts from 1 and, with the owner, fences what the worker writes. */
export type ClaimedDelivery = {
  id: string
  endpointId: string
  claim: number
  /** Of the schedule that runs, before this attempt. */
  failures: number
}

export type DeliveryClaimRequest = {
  /** Names the worker; no other one, past or present, has the same. */
  owner: string
  now: number
  leaseUntil: number
  limit: number
}

export type DeliveryOutcome = ClaimedDelivery & {
  owner: string
  attempt: WebhookAttempt
  /** When to try again after a failure; null where that was the last attempt. */
  retryAt: number | null
  /** The time at which the attempt ended. */
  now: number
}

/** A message as it is stored: `headers` are still sealed. */
export type StoredWebhookMessage = {
  deliveryId: string
  endpointId: string
  /** Of the event. */
  id: string
  url: string
  secret: string
  headers: SealedHeaders
  body: string
}

/** The outbox: a row for each event and endpoint, from the transaction of the event on. */
export type WebhookOutboxStore = {
  /** Part of the transaction of the event. Several are written in the order of their endpoints. */
  insert(delivery: {
    id: string
    endpointId: string
    eventSeq: number
    type: string
    now: number
  }): Promise<void>

  /**
   * Takes what is due, so that at most two deliveries of an endpoint are held at a time, whoever holds them. Nobody else
   * gets the same until `leaseUntil`. Endpoints that work come before those that fail, then those that wait longest.
   * Disabled endpoints get nothing. What it costs depends on what is due, not on what waits or has ended.
   */
  claim(request: DeliveryClaimRequest): Promise<ClaimedDelivery[]>

  /** When the next delivery is due; undefined where none waits. */
  nextDueAt(): Promise<number | undefined>

  /** What waits and nobody holds: how many, counted up to `limit`, and since when the oldest of those does. */
  backlog(limit: number): Promise<{ pending: number; oldestAt: number | null }>

  /** What to send, for each of these that is still there and whose endpoint is still enabled, as of this moment. */
  load(ids: string[]): Promise<StoredWebhookMessage[]>

  /** Gives back what is not sent after all. */
  release(claim: ClaimedDelivery & { owner: string }): Promise<void>

  /**
   * Writes an attempt down: with the delivery, and at its endpoint the last success and since when it fails. Writes
   * nothing once the lease has gone to another.
   *
   * @returns since when the endpoint fails; null where it works or nothing was written
   */
  finish(outcome: DeliveryOutcome): Promise<number | null>

  /** Makes every lease void. Only where no other process can hold one. */
  releaseAll(): Promise<void>
}
