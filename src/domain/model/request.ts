import type { Candidate } from './delivery.ts'
import { ServiceError } from './errors.ts'
import type { DeliveryStatus, MessageKey } from './message.ts'

export const otpStatuses = ['pending', 'verified', 'failed', 'expired', 'canceled'] as const
export type OtpStatus = (typeof otpStatuses)[number]

export const channels = ['sms', 'whatsapp', 'telegram', 'voice'] as const
export type Channel = (typeof channels)[number]

export type FailureReason = 'max_attempts' | 'delivery_failed' | 'blocked'

export const attemptsMax = 5
export const resendsMax = 3
export const resendAfterMs = 30_000

/**
 * One code for one phone number. Never holds the code itself, which is derived from id and salt when it is
 * needed.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> pending: send
 *   [*] --> failed: send blocked by the guard (blocked)
 *   pending --> pending: resend, or wrong code 1 to 4
 *   pending --> verified: right code before expiresAt
 *   pending --> failed: wrong code 5 (max_attempts)
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
  environment: 'live' | 'test'
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
  codeSalt: string
  codeHash: string
  attempts: number
  resends: number
  createdAt: number
  /** Time of the newest message. */
  sentAt: number
  expiresAt: number
  verifiedAt: number | null
  updatedAt: number
}

export type OtpListQuery = {
  developerId: string
  appId?: string | undefined
  /** A pending request past `expiresAt` counts as expired. */
  status?: OtpStatus | undefined
  now: number
  limit: number
  before?: string | undefined
  /** Lowest id to list. */
  from?: string | undefined
}

/** Fields that an attempt changes, and the channel, which a concurrent resend may have changed. */
export type CountedAttempt = Pick<OtpRequest, 'status' | 'attempts' | 'verifiedAt' | 'updatedAt' | 'channel'>

/**
 * Every change is one guarded statement (compare-and-set): it does nothing and returns undefined unless the
 * request is still pending and the change's precondition holds. Of several concurrent callers exactly one
 * succeeds.
 */
export type OtpRequestStore = {
  find(id: string): Promise<OtpRequest | undefined>
  list(query: OtpListQuery): Promise<OtpRequest[]>
  /** Pending requests past `expiresAt`. */
  listExpired(now: number, limit: number): Promise<OtpRequest[]>
  insert(request: OtpRequest): Promise<void>
  /**
   * Counts an attempt, if fewer than `attemptsMax` were made and the code has not expired. A right one
   * verifies.
   */
  countAttempt(id: string, isRight: boolean, now: number): Promise<CountedAttempt | undefined>
  /** Counts a resend, if resends are left and the last message is at least `resendAfterMs` old. */
  countResend(
    id: string,
    nextMessage: Pick<OtpRequest, 'channel' | 'provider' | 'deliveryStatus'>,
    now: number,
  ): Promise<OtpRequest | undefined>
  /**
   * Updates the delivery state, whatever the status of the request: for the newest message, or for an older
   * one that was delivered. `delivered` is final.
   */
  setDelivery(
    key: MessageKey,
    update: { deliveryStatus: DeliveryStatus; candidate?: Candidate | undefined },
    now: number,
  ): Promise<OtpRequest | undefined>
  close(id: string, terminalState: OtpTerminalState, now: number): Promise<OtpRequest | undefined>
  /**
   * Deletes about `batchSize` of the oldest requests created up to `until`, with their messages.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

export type OtpTerminalState =
  { status: 'expired' | 'canceled' } | { status: 'failed'; failureReason: FailureReason }

/** Tells whether a pending request is past its `expiresAt`. It counts as expired before that is stored. */
export const isExpired = (request: OtpRequest, now: number) =>
  request.status === 'pending' && request.expiresAt <= now

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
