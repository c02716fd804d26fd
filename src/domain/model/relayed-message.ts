import { dayMs } from '../../shared/durations.ts'
import type { MessageCost } from './price.ts'
import type { Channel, OtpRequest } from './request.ts'

/**
 * A message with a code that another system made and checks. It has no OTP request, and its code is nowhere: a receipt and
 * the outcome are recorded, and nothing is sent again.
 */
export type RelayedMessage = Pick<
  OtpRequest,
  | 'id'
  | 'developerId'
  | 'projectId'
  | 'appId'
  | 'environment'
  | 'phone'
  | 'country'
  | 'clientIp'
  | 'createdAt'
> &
  MessageCost & {
    channel: Channel
    /** Provider that has, or may have, the message. */
    provider: string
    /** The provider's id of the message. */
    messageId: string | null
    /** `unknown`: the provider may have it, for example after a timeout. */
    status: 'sent' | 'unknown' | 'delivered' | 'undelivered'
    /** Whether the code was entered, as its caller reports; null if it did not. */
    outcome: RelayOutcome | null
  }

export const relayOutcomes = ['verified', 'failed'] as const
export type RelayOutcome = (typeof relayOutcomes)[number]

/** Relayed messages are deleted after this; later receipts and outcomes match nothing. */
export const relayedLifetimeMs = dayMs
