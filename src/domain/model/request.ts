import type { Facade } from './compat.ts'
import {
  channels,
  otpStatuses,
  type Channel,
  type Environment,
  type FailureReason,
  type OtpStatus,
} from '../../shared/otp-values.ts'
import { ServiceError } from './errors.ts'
import type { SentTemplate } from './sent-template.ts'

export { channels, otpStatuses, type Channel, type OtpStatus }

/** Record of a request that a façade made: the façade, and the messages, oldest first. */
export type CompatRecord = {
  facade: Facade
  messages: ReadonlyArray<{ channel: Channel; sentAt: number }>
}

/** Delivery state of a request: that of its newest message, or `delivered` once any of its messages was. */
export type DeliveryStatus = 'queued' | 'sent' | 'unknown' | 'delivered' | 'undelivered'

/** Resends that a request has, after its first message. */
export const resendsMax = 3
/** Milliseconds from one message of a request to the next. */
export const resendAfterMs = 30_000

/**
 * One code for one phone number. Never holds the code itself, which is derived from id and salt when it is
 * needed.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> pending: send
 *   [*] --> failed: send blocked by the guard (blocked)
 *   [*] --> verified: proved without a code
 *   pending --> pending: resend, or wrong code with attempts left
 *   pending --> verified: right code before expiresAt
 *   pending --> failed: wrong code on attempt attemptsMax (max_attempts)
 *   pending --> failed: no message can arrive any more (delivery_failed)
 *   pending --> expired: swept, verified, resent or canceled after expiresAt
 *   pending --> canceled: cancel before expiresAt
 * ```
 *
 * `verified`, `failed`, `expired` and `canceled` are final. A pending request past `expiresAt` is treated as
 * expired before that is stored; see `isExpired`. Retention deletes requests in any state.
 */
export type OtpRequest = {
  id: string
  developerId: string
  projectId: string
  appId: string
  environment: Environment
  phone: string
  country: string | null
  status: OtpStatus
  /** Set if and only if the status is `failed`. */
  failureReason: FailureReason | null
  channel: Channel
  provider: string | null
  /** Null if the message stays in the inbox. */
  deliveryStatus: DeliveryStatus | null
  locale: string | null
  clientIp: string | null
  metadata: Record<string, string> | null
  /** Text of the caller's own for its messages, with `{{code}}` where the code goes; null for the built-in texts. */
  ownText: string | null
  /** Text of a template for its messages; null for the built-in texts. */
  template: SentTemplate | null
  codeSalt: string
  codeHash: string
  attempts: number
  resends: number
  createdAt: number
  /** Time of the newest message. */
  sentAt: number
  expiresAt: number
  verifiedAt: number | null
  /** The phone's request before this one; null for the first, and where retention cut the list. */
  previousRequest: string | null
  /** `known`: its send came from a device or network that verified the phone. Null if 0.1.0 made the request. */
  startedBy: 'known' | 'stranger' | null
  /** Hashed contexts of the send. */
  contexts: readonly string[]
  /** Log entries and delivery attempts, which the store appends: see `parseHistory`. */
  history: string
  /** Set if a façade made the request. */
  compat: CompatRecord | null
  updatedAt: number
  /** Trace context of the call that changes the request, for its events and its message. Neither stored nor seen by other calls. */
  traceparent?: string | undefined
}

/** Fields that only the calls of a request itself need. Most of them are encrypted. */
export const unlistedFields = ['clientIp', 'ownText', 'codeSalt', 'codeHash', 'contexts'] as const

/** A request as lists have it. */
export type ListedRequest = Omit<OtpRequest, (typeof unlistedFields)[number] | 'traceparent'>

export type OtpTerminalState =
  { status: 'expired' | 'canceled' } | { status: 'failed'; failureReason: FailureReason }

/** Tells whether a pending request is past its `expiresAt`. It counts as expired before that is stored. */
export const isExpired = (request: Pick<OtpRequest, 'status' | 'expiresAt'>, now: number) =>
  request.status === 'pending' && request.expiresAt <= now

/** Tells whether a request can still be verified. */
export const isVerifiable = (request: OtpRequest, now: number) =>
  request.status === 'pending' && request.expiresAt > now

/** The error of every verify, resend and cancel on a closed request. */
export function closedRequestError(request: OtpRequest): ServiceError {
  switch (request.status) {
    case 'verified':
      return new ServiceError(
        'ALREADY_VERIFIED',
        'This code was already verified. There is nothing left to do.',
        { metadata: { verifiedAt: new Date(request.verifiedAt ?? 0).toISOString() } },
      )
    case 'failed':
      return request.failureReason === 'max_attempts'
        ? new ServiceError('ATTEMPTS_EXHAUSTED', 'Too many wrong codes were entered. Send a new code.')
        : new ServiceError('OTP_CANCELED', 'This code was never delivered. Send a new one.', {
            reason: request.failureReason === 'blocked' ? 'BLOCKED' : 'DELIVERY_FAILED',
          })
    case 'canceled':
      return new ServiceError('OTP_CANCELED', 'This code was canceled. Send a new one.')
    default:
      return new ServiceError('OTP_EXPIRED', 'This code has expired. Send a new one.', {
        metadata: { expiresAt: new Date(request.expiresAt).toISOString() },
      })
  }
}
