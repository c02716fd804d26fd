import type { PermitHolder } from './fair-permits.ts'
import type { Candidate, FailureClass } from './delivery.ts'
import type { MessageCost } from './price.ts'
import type { MessageSettings } from './message-settings.ts'
import type { Channel, DeliveryStatus, OtpRequest } from './request.ts'
import { dayMs } from '../../shared/durations.ts'

/**
 * State of one message.
 *
 * - `pending`: waits for an attempt, or is leased to a sender that makes one.
 * - `sent`: a provider accepted it.
 * - `unknown`: a provider may have it, for example after a timeout.
 * - `delivered`, `undelivered`: what the provider's receipt said.
 * - `refused`: no provider accepted it, and none will be asked again.
 * - `void`: superseded by a resend, or canceled because its request closed or its application was deleted.
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
 *   undelivered --> pending: reopened by the same receipt (newest message, candidates left)
 * ```
 */
export type MessageStatus = 'pending' | 'sent' | 'unknown' | 'delivered' | 'undelivered' | 'refused' | 'void'

/** Identifies a message of a request. Number 0 is the first, resends follow. */
export type MessageKey = { requestId: string; messageNumber: number }

/**
 * A message leased to one sender. `attempt` counts from 1 and, with the owner, is the fencing token of its
 * writes.
 */
export type MessageClaim = MessageKey & {
  attempt: number
  owner: string
  /** Whether the attempt before did not end, as its process was killed: a provider may have the message already. */
  isInterrupted?: boolean
}

/** A claimed message, with the developer who has a permit for it. */
export type ClaimedMessage = MessageClaim & PermitHolder

export type Message = MessageKey &
  MessageCost & {
    /** Channels that it may take, in order. */
    channels: Channel[]
    status: MessageStatus
    /** Provider that has, or may have, the message. */
    provider: string | null
    /** The provider's id of the message. */
    messageId: string | null
    /** Failure of the last refused attempt or receipt. */
    failure: FailureClass | null
    /** Candidates that must not be tried again, as `candidateKey` formats them. */
    excluded: readonly string[]
    attempts: number
    /** Null if no attempt follows. */
    nextAttemptAt: number | null
    leaseOwner: string | null
    leaseUntil: number | null
    /** When its provider hears next how the request ended; null if it need not, or has heard it. */
    reportDueAt: number | null
    createdAt: number
    updatedAt: number
  }

export type LoadedMessage = {
  message: Message
  request: OtpRequest
  /** Null once the application is deleted. */
  application: MessageSettings | null
}

export type MessageOutcome = Pick<
  Message,
  | 'status'
  | 'provider'
  | 'messageId'
  | 'failure'
  | 'nextAttemptAt'
  | 'excluded'
  | 'reportDueAt'
  | keyof MessageCost
>

/**
 * Updates the delivery state of a request in any status: the state of its newest message, or of an older one that was
 * delivered. `delivered` is final.
 *
 * @returns undefined if it stays as it is
 */
export function withDelivery(
  request: OtpRequest,
  { messageNumber }: MessageKey,
  { deliveryStatus, candidate }: { deliveryStatus: DeliveryStatus; candidate?: Candidate | undefined },
  now: number,
): OtpRequest | undefined {
  if (deliveryStatus !== 'delivered' && request.resends !== messageNumber) return undefined
  if (request.deliveryStatus === 'delivered') return undefined
  return { ...request, ...candidate, deliveryStatus, updatedAt: now }
}

/** Longest time of an attempt, over all providers that it tries; bounds how long a send request waits. */
export const attemptMsMax = 8_000

/** Twice as long as any attempt and more, so that a message is not leased again while its attempt runs. */
export const messageLeaseMs = 2 * attemptMsMax + 4_000

/**
 * Time that a lease must have left when its message is handed to a provider: longer than an attempt takes. A process that
 * was paused so sends nothing that another has taken over meanwhile.
 */
export const messageLeaseLeftMinMs = attemptMsMax + 2_000

/** Messages are deleted after this; later receipts match nothing. */
export const messageLifetimeMs = 7 * dayMs
