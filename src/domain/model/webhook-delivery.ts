import type { EventKind } from '../../shared/event-kinds.ts'
import type { EndpointHeaders } from './webhook-endpoint.ts'

/** Reasons for a failed attempt. The list is closed. */
export const webhookErrors = [
  /** The address is not an allowed webhook target. */
  'blocked_address',
  'blocked_port',
  'dns',
  'connect',
  'tls',
  'timeout',
  /** The connection was closed early, or the response was not HTTP. */
  'reset',
  'redirect',
  'bad_status',
  /** The stored event, headers or signing secret cannot be decrypted or sent, so nothing was. */
  'unreadable',
] as const

export type WebhookError = (typeof webhookErrors)[number]

/**
 * A webhook message: `body` is sent unchanged, signed with `secret`. Secret, headers and body are null if they cannot be
 * decrypted.
 */
export type WebhookMessage = {
  /** Event id, the same in every attempt, for deduplication by the receiver. */
  id: string
  url: string
  /** Application's signing secret, `whsec_…`. */
  secret: string | null
  /** The endpoint's additional headers. */
  headers: EndpointHeaders | null
  body: string | null
}

/** The head of a request as it was sent, but for the values of the endpoint's own headers: see `maskedValue`. */
export type SentRequest = { url: string; headers: Readonly<Record<string, string>> }

/** Replaces the values of an endpoint's own headers, which may be credentials. */
export const maskedValue = '****'

/** Result of one attempt. It succeeded if `error` is null: a status from 200 to 299. */
export type WebhookAttemptResult = {
  /** Null if nothing was sent. */
  request: SentRequest | null
  /** Null if no response was received. */
  statusCode: number | null
  error: WebhookError | null
  durationMs: number
  /** First 4 KiB of the response body; null if no response was received. */
  body: string | null
  /** The response's `Retry-After`; null if missing or unreadable. */
  retryAfterMs: number | null
}

/** Builds the result of an attempt that sent nothing. */
export const notSent = (error: WebhookError, durationMs: number): WebhookAttemptResult => ({
  request: null,
  statusCode: null,
  error,
  durationMs,
  body: null,
  retryAfterMs: null,
})

/**
 * Makes one attempt. Never rejects: every fault is a result.
 *
 * @param signal aborts the attempt; its result is then meaningless
 */
export type SendWebhook = (message: WebhookMessage, signal?: AbortSignal) => Promise<WebhookAttemptResult>

/** A stored attempt. `at` is its start. */
export type WebhookAttempt = Omit<WebhookAttemptResult, 'retryAfterMs'> & { at: number }

/**
 * `failed`: every retry was used up, or the receiver answered 410 (dead letter). `skipped`: the endpoint was disabled at the
 * time of the event. Both are kept as long as log entries; only a manual redelivery or a recovery sends them.
 */
export const webhookDeliveryStatuses = ['pending', 'delivered', 'failed', 'skipped'] as const

export type WebhookDeliveryStatus = (typeof webhookDeliveryStatuses)[number]

/**
 * The delivery of one event to one endpoint.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> pending: event recorded while the endpoint subscribes to it
 *   [*] --> skipped: event recorded while the endpoint, which subscribes to it, is disabled
 *   pending --> pending: attempt failed (next one scheduled), released, or lease expired
 *   pending --> delivered: attempt succeeded
 *   pending --> failed: last scheduled attempt failed, or the receiver answered 410
 *   pending --> delivered: manual redelivery succeeded
 *   failed --> delivered: manual redelivery succeeded
 *   delivered --> delivered: manual redelivery, whatever its result
 *   skipped --> delivered: manual redelivery succeeded
 *   failed --> pending: recovered, with a new schedule
 *   skipped --> pending: recovered
 *   pending --> pending: recovered while it waits for a retry, with a new schedule
 * ```
 *
 * A manual redelivery that fails changes no status. The pending deliveries of a disabled endpoint wait as they are.
 */
export type WebhookDelivery = {
  id: string
  eventId: string
  type: string
  status: WebhookDeliveryStatus
  /** Number of attempts so far. */
  attempts: number
  lastStatusCode: number | null
  lastError: WebhookError | null
  /** Null unless the delivery is pending. */
  nextAttemptAt: number | null
  createdAt: number
  deliveredAt: number | null
}

export type WebhookDeliveryFilter = {
  status?: WebhookDeliveryStatus | undefined
  type?: EventKind | undefined
}

/** Maximum concurrent sends per endpoint, across all processes, so that a slow receiver does not delay the others. */
export const sendsPerEndpointMax = 2
