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
 * One code for one phone number. Never holds the code itself, which is derived from id and salt when it is needed.
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
 * `verified`, `failed`, `expired` and `canceled` are final. A pending request past `expiresAt` is treated as expired
 * before that is stored; see `isExpired`. Retention deletes requests in any state.
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
  /** Set exactly where the status is `failed`. */
  failureReason: FailureReason | null
  channel: Channel
  provider: string | null
  /** Null where the message stays in the inbox. */
  deliveryStatus: DeliveryStatus | null
  locale: string | null
  clientIp: string | null
  metadata: Record<string, string> | null
  codeSalt: string
  codeHash: string
  attempts: number
  resends: number
  createdAt: number
  /** Of the last message. */
  sentAt: number
  expiresAt: number
  verifiedAt: number | null
  updatedAt: number
}

export type OtpListQuery = {
  developerId: string
  appId?: string | undefined
  /** A request whose time is over counts as expired. */
  status?: OtpStatus | undefined
  now: number
  limit: number
  before?: string | undefined
  /** The lowest id. */
  from?: string | undefined
}

/** What an attempt changes of a request, and what a message that went out meanwhile does. */
export type CountedAttempt = Pick<OtpRequest, 'status' | 'attempts' | 'verifiedAt' | 'updatedAt' | 'channel'>

/**
 * Every change is one guarded statement: it does nothing, and returns undefined, unless the request is still pending
 * and what the change supposes holds. So of several callers at once exactly one passes.
 */
export type OtpRequestStore = {
  find(id: string): Promise<OtpRequest | undefined>
  list(query: OtpListQuery): Promise<OtpRequest[]>
  /** Pending requests whose time is over. */
  listExpired(now: number, limit: number): Promise<OtpRequest[]>
  insert(request: OtpRequest): Promise<void>
  /** One more attempt, if fewer than `attemptsMax` were made and the code still lives. With the right code it verifies. */
  countAttempt(id: string, isRight: boolean, now: number): Promise<CountedAttempt | undefined>
  /** One more message, if resends are left and the last one is `resendAfterMs` old. */
  countResend(
    id: string,
    nextMessage: Pick<OtpRequest, 'channel' | 'provider' | 'deliveryStatus'>,
    now: number,
  ): Promise<OtpRequest | undefined>
  /**
   * Notes how a message fares, whatever the state of the request: the last one, or an earlier one that has arrived.
   * What has arrived stays so.
   */
  setDelivery(
    key: MessageKey,
    update: { deliveryStatus: DeliveryStatus; candidate?: Candidate | undefined },
    now: number,
  ): Promise<OtpRequest | undefined>
  close(id: string, terminalState: OtpTerminalState, now: number): Promise<OtpRequest | undefined>
  /** Some of the oldest, with their messages, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

export type OtpTerminalState =
  { status: 'expired' | 'canceled' } | { status: 'failed'; failureReason: FailureReason }

/** A pending request whose time is over counts as expired, whether or not anybody has written that down yet. */
export const isExpired = (request: OtpRequest, now: number) =>
  request.status === 'pending' && request.expiresAt <= now

/** How a request that has ended answers every further verify, resend and cancel. */
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
