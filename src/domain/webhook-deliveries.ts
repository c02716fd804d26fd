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
  body: string
}

/** How one attempt ended. Success is where `error` is null: a status from 200 to 299. */
export type WebhookAnswer = {
  /** Null where none came. */
  statusCode: number | null
  error: WebhookError | null
  durationMs: number
  /** The beginning of what the receiver answered, at most 4 KiB; null where no status came. */
  body: string | null
}

/**
 * Makes one attempt. Never rejects, whatever the receiver does.
 *
 * @param abort gives up; the answer is then of no meaning
 */
export type SendWebhook = (message: WebhookMessage, abort?: AbortSignal) => Promise<WebhookAnswer>

/** A delivery that one worker holds. `attempt` counts from 1 and, with the owner, fences what the worker writes. */
export type ClaimedDelivery = { id: string; endpointId: string; attempt: number }

export type DeliveryClaim = {
  /** Names the worker; no other one, past or present, has the same. */
  owner: string
  now: number
  leaseUntil: number
  limit: number
  /** Endpoints that get nothing for now. */
  except: string[]
}

/** `now` is the time at which the attempt ended. */
export type DeliveryOutcome = ClaimedDelivery & {
  owner: string
  statusCode: number | null
  error: WebhookError | null
  now: number
}

/** The outbox: a row for each event and endpoint, from the transaction of the event until retention removes it. */
export type WebhookDeliveryStore = {
  insert(delivery: { id: string; endpointId: string; eventSeq: number; now: number }): Promise<void>

  /**
   * Takes what is due, at most one for each endpoint, and counts an attempt for it. Nobody else gets the same until
   * `leaseUntil`. Endpoints that work come before those that fail, then the oldest first. Disabled endpoints get
   * nothing.
   */
  claim(claim: DeliveryClaim): Promise<ClaimedDelivery[]>

  /** What to send, for each of these that is still there and whose endpoint is still enabled, as of this moment. */
  load(ids: string[]): Promise<Array<{ deliveryId: string; message: WebhookMessage }>>

  /** Ends a delivery and notes the success or failure at its endpoint. Does nothing once the lease has gone to another. */
  finish(outcome: DeliveryOutcome): Promise<void>

  /** Makes every lease void. Only where no other process can hold one. */
  releaseAll(): Promise<void>
}
