import { dayMs } from '../../shared/durations.ts'
import type { Channel, OtpRequest } from './request.ts'

/**
 * A message with a code that another system made and checks. It has no OTP request, and its code is nowhere: a receipt is
 * recorded, and nothing is sent again.
 */
export type RelayedMessage = Pick<
  OtpRequest,
  'id' | 'developerId' | 'projectId' | 'appId' | 'environment' | 'phone' | 'country' | 'createdAt'
> & {
  channel: Channel
  /** Provider that has, or may have, the message. */
  provider: string
  /** The provider's id of the message. */
  messageId: string | null
  /** `unknown`: the provider may have it, for example after a timeout. */
  status: 'sent' | 'unknown' | 'delivered' | 'undelivered'
}

/** Relayed messages are deleted after this; later receipts match nothing. */
export const relayedLifetimeMs = dayMs
