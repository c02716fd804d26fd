import type { FailureClass, Receipt } from './delivery.ts'
import type { MessageSettings } from './message-settings.ts'
import type { Channel, OtpRequest } from './request.ts'

/**
 * State of one message.
 *
 * - `pending`: waits for an attempt, or is leased to a sender that makes one.
 * - `sent`: a provider accepted it.
 * - `unknown`: a provider may have it, for example after a timeout.
 * - `delivered`, `undelivered`: what the provider's receipt said.
 * - `refused`: no provider accepted it, and none will be asked again.
 * - `void`: superseded by a resend, or cancelled because its request closed or its application was deleted. The stored
 *   word is older than these two.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> pending: enqueued with its request, leased for the first attempt
 *   pending --> pending: attempt deferred (exponential backoff), or lease expired
 *   pending --> sent: accepted by a provider
 *   pending --> unknown: a provider may have accepted it
 *   pending --> refused: no candidate left, or too little time until the code expires
 *   pending --> void: superseded by a resend while not leased
 *   pending --> void: request closed or expired, or application deleted, before an attempt
 *   unknown --> sent: receipt sent
 *   sent --> delivered: receipt delivered
 *   unknown --> delivered: receipt delivered
 *   sent --> undelivered: receipt undelivered
 *   unknown --> undelivered: receipt undelivered
 *   undelivered --> pending: reopened by the same receipt, if another candidate is left for the newest message
 * ```
 */
export type MessageStatus = 'pending' | 'sent' | 'unknown' | 'delivered' | 'undelivered' | 'refused' | 'void'

/** What a request tells of its delivery: how its last message fares, or that an earlier one has arrived. */
export type DeliveryStatus = 'queued' | 'sent' | 'unknown' | 'delivered' | 'undelivered'

/** A message of a request: 0 is the first one, then its resends. */
export type MessageKey = { requestId: string; message: number }

/** A message that one sender holds. `attempt` counts from 1 and, with the owner, fences what that sender writes. */
export type ClaimedMessage = MessageKey & { attempt: number; owner: string }

export type Message = MessageKey & {
  /** Those that it may take, in order. */
  channels: Channel[]
  status: MessageStatus
  /** Who has it, or may have it. */
  provider: string | null
  /** The provider's own name for it. */
  messageId: string | null
  /** Of the last refusal or receipt. */
  failure: FailureClass | null
  /** Ways that will never carry it, as `candidateKey` writes them. */
  excluded: string[]
  attempts: number
  leaseUntil: number | null
}

export type LoadedMessage = {
  message: Message
  request: OtpRequest
  /** Null once the application is deleted. */
  application: MessageSettings | null
}

export type MessageOutcome = Pick<Message, 'status' | 'provider' | 'messageId' | 'failure'> & {
  /** Where another attempt follows. */
  nextAttemptAt: number | null
  excluded: readonly string[]
}

/** The outbox of messages to phones: neither codes nor texts, which are made when they are sent. */
export type OtpDeliveryStore = {
  /** Writes a message down as held by its sender, who makes the first attempt at once. */
  insert(
    message: MessageKey & { channels: Channel[] },
    owner: string,
    now: number,
    leaseUntil: number,
  ): Promise<void>
  /** Lets this message take the place of earlier ones that wait. */
  supersede(key: MessageKey, now: number): Promise<void>
  find(key: MessageKey): Promise<Message | undefined>
  load(key: MessageKey): Promise<LoadedMessage | undefined>
  /** All of one request, the first one first. */
  list(requestId: string): Promise<Message[]>

  /** Takes what is due, the longest waiting first. Nobody else gets the same until `leaseUntil`. */
  claim(request: { owner: string; now: number; leaseUntil: number; limit: number }): Promise<ClaimedMessage[]>

  /** Ends an attempt. @returns false: the message has gone to another sender meanwhile, and nothing was written */
  finish(claim: ClaimedMessage, outcome: MessageOutcome, now: number): Promise<boolean>

  /** The message that a receipt of this provider's is about: by the provider's name for it, else by the request. */
  findForReceipt(
    provider: string,
    receipt: Pick<Receipt, 'messageId' | 'requestId'>,
  ): Promise<MessageKey | undefined>

  /** Notes what a provider says of a message that it has. @returns false: a later word was there before */
  receive(key: MessageKey, provider: string, receipt: Receipt, now: number): Promise<boolean>

  /** Gives a message that did not arrive to whoever is left. */
  reopen(key: MessageKey, excluded: readonly string[], now: number): Promise<void>

  /** Makes every lease void. Only where no other process can hold one. */
  releaseAll(): Promise<void>

  /** About `chunk` of the oldest, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

/** Outlasts an attempt, so that nobody else takes a message that is still under way. */
export const messageLeaseMs = 20_000

/** Receipts that come later than this match nothing any more. */
export const messageLifetimeMs = 7 * 24 * 60 * 60 * 1000
