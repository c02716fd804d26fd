import type { EventKind } from '../model/event-kinds.ts'
import type { StoredWebhookMessage } from './outbox.ts'

/** Why an attempt was not a success. The list is closed. */
export const webhookErrors = [
  /** The address is not one that events may be sent to. */
  'blocked_address',
  'dns',
  'connect',
  'tls',
  'timeout',
  /** The connection was cut, or what came back was not HTTP. */
  'reset',
  'redirect',
  'bad_status',
] as const

export type WebhookError = (typeof webhookErrors)[number]

/** What is sent: `body` as it is, signed with `secret`. */
export type WebhookMessage = {
  /** Of the event; the same in every attempt, so that the receiver can tell a repeat. */
  id: string
  url: string
  /** `whsec_…` of the application. */
  secret: string
  /** What the endpoint asks for beside ours. */
  headers: Record<string, string>
  body: string
}

/** How one attempt ended. Success is where `error` is null: a status from 200 to 299. */
export type WebhookAttemptResult = {
  /** Null where none came. */
  statusCode: number | null
  error: WebhookError | null
  durationMs: number
  /** The beginning of what the receiver answered, at most 4 KiB; null where no status came. */
  body: string | null
  /** What it answered as `Retry-After`; null where that is missing or unreadable. */
  retryAfterMs: number | null
}

/**
 * Makes one attempt. Never rejects, whatever the receiver does.
 *
 * @param abort gives up; the answer is then of no meaning
 */
export type SendWebhook = (message: WebhookMessage, signal?: AbortSignal) => Promise<WebhookAttemptResult>

/** One attempt, as it is kept. `at` is its beginning. */
export type WebhookAttempt = Omit<WebhookAttemptResult, 'retryAfterMs'> & { at: number }

export const webhookDeliveryStatuses = ['pending', 'delivered', 'failed'] as const

export type WebhookDeliveryStatus = (typeof webhookDeliveryStatuses)[number]

/** An event on its way to an endpoint, or after that. */
export type WebhookDelivery = {
  id: string
  eventId: string
  type: string
  status: WebhookDeliveryStatus
  /** How many were made. */
  attempts: number
  lastStatusCode: number | null
  lastError: WebhookError | null
  /** Null once it has ended. */
  nextAttemptAt: number | null
  createdAt: number
  deliveredAt: number | null
}

export type WebhookDeliveryFilter = {
  status?: WebhookDeliveryStatus | undefined
  type?: EventKind | undefined
}

/** Deliveries as their owner sees them. The finders name the endpoint, whose owner the caller has checked. */
export type WebhookDeliveryStore = {
  /** Newest first. @param query.before an id; only older ones are listed @param query.from the lowest id */
  list(
    endpointId: string,
    query: WebhookDeliveryFilter & { limit: number; before?: string | undefined; from?: string | undefined },
  ): Promise<WebhookDelivery[]>
  find(endpointId: string, id: string): Promise<WebhookDelivery | undefined>
  /** Oldest first. */
  attempts(id: string): Promise<WebhookAttempt[]>
  /** What to send, whatever the status of endpoint and delivery. */
  load(endpointId: string, id: string): Promise<StoredWebhookMessage | undefined>
  /**
   * Writes down an attempt that a developer asked for. A success ends the delivery, a failure leaves it and its schedule
   * as they are. False where the delivery is gone.
   */
  recordManualAttempt(endpointId: string, id: string, attempt: WebhookAttempt, now: number): Promise<boolean>
  /**
   * Puts failed deliveries of events in [since, until] back into the queue, with their schedule from its beginning.
   *
   * @param range.after an id; only later ones
   * @returns their ids, at most `limit`, in order
   */
  requeueFailed(
    endpointId: string,
    range: { since: number; until: number; after?: string | undefined; limit: number },
    now: number,
  ): Promise<string[]>
  /** Removes some of those of before `until`, with their attempts. @returns whether there were any */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
