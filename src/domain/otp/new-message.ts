// Shared by send and resend: their input, the channels of a message, and how it begins. Reads and writes nothing.

import type { SentTemplate } from '../model/sent-template.ts'
import type { MessageVariables } from '../model/message-variables.ts'
import { inboxProvider, type DestinationRoutes } from '../model/delivery.ts'
import { ServiceError, tryAgainIn } from '../model/errors.ts'
import type { TypedPhone } from './phones.ts'
import {
  resendAfterMs,
  resendsMax,
  type Channel,
  type CompatRecord,
  type OtpRequest,
} from '../model/request.ts'

/** Channels of a message: the one that is asked for, or those of the routes, without some. */
export type ChannelChoice = {
  channel?: Channel | undefined
  withoutChannels?: readonly Channel[] | undefined
}

export type SendInput = ChannelChoice &
  TypedPhone & {
    locale?: string | undefined
    /** Defaults to the application's. */
    ttlSeconds?: number | undefined
    metadata?: Record<string, string> | undefined
    /** End user's IP address. */
    clientIp?: string | undefined
    /** Names the end user's device; stored only as a keyed hash. */
    deviceId?: string | undefined
    /** Token of a challenge that the end user passed. */
    challenge?: string | undefined
    /** Name of a template of the application. */
    template?: string | undefined
    /** Amount and payee, for a template that shows them. */
    variables?: MessageVariables | undefined
    /** Text of the caller's own, with `{{code}}`. */
    ownText?: string | undefined
  }

export type SentOtp = {
  requestId: string
  phone: string
  status: 'pending'
  expiresAt: number
  /**
   * Number of the message that goes to a provider (`MessageKey`); null if it stays in the inbox. Idempotent
   * results are stored with this name.
   */
  message: number | null
  /** Messages up to this one, and time of the request, if a façade made it. */
  compat?: Pick<CompatRecord, 'messages'> & Pick<OtpRequest, 'createdAt'>
}

/** The part of a request that answers a send, and that is saved under its idempotency key. */
export const toSentOtp = (request: OtpRequest): SentOtp => ({
  requestId: request.id,
  phone: request.phone,
  status: 'pending',
  expiresAt: request.expiresAt,
  message: request.provider === inboxProvider ? null : request.resends,
  ...(request.compat && { compat: { messages: request.compat.messages, createdAt: request.createdAt } }),
})

/** The provider of a message before one has it: the inbox if it stays there, otherwise null. */
export const firstProvider = (routes: DestinationRoutes, channels: readonly Channel[]) =>
  routes.candidatesFor(channels)[0]?.provider === inboxProvider ? inboxProvider : null

/**
 * How a message begins: in the inbox, or queued for a provider.
 *
 * @param previous the channel if none leads to the destination, and the provider until another has the
 *   message
 */
export function startDelivery(
  routes: DestinationRoutes,
  channels: readonly Channel[],
  previous: Pick<OtpRequest, 'channel' | 'provider'>,
): Pick<OtpRequest, 'channel' | 'provider' | 'deliveryStatus'> {
  const channel = channels[0] ?? previous.channel
  if (firstProvider(routes, channels) === inboxProvider)
    return { channel, provider: inboxProvider, deliveryStatus: null }
  const provider = previous.provider === inboxProvider ? null : previous.provider
  return { channel, provider, deliveryStatus: 'queued' }
}

/**
 * Channels of a resend, in order: from the channel of the last message on, or from the one after it if that
 * message was undelivered. All, if that channel is none of them any more.
 */
export function resendChannels(
  routes: DestinationRoutes,
  request: OtpRequest,
  choice: ChannelChoice,
  refused: readonly Channel[],
): Channel[] {
  const channels = chooseChannels(routes, choice, refused, request.template)
  if (choice.channel) return channels
  if (channels.length === 0) return [request.channel]
  const index = channels.indexOf(request.channel)
  if (index === -1) return channels
  const remaining = channels.slice(request.deliveryStatus === 'undelivered' ? index + 1 : index)
  return remaining.length > 0 ? remaining : channels
}

/**
 * Channels of a message, in order. A voice call cannot say amount and payee, so a payment is sent on the other channels.
 *
 * @param refused channels that the guard refuses for the number
 */
export function chooseChannels(
  routes: DestinationRoutes,
  { channel, withoutChannels = [] }: ChannelChoice,
  refused: readonly Channel[],
  template: SentTemplate | null = null,
): Channel[] {
  if (channel) return [channel]
  const left = routes.channels.filter((name) => !withoutChannels.includes(name) && !refused.includes(name))
  return template?.variables ? left.filter((name) => name !== 'voice') : left
}

/** Tells whether the last message is so new that a resend must wait. */
export const isTooSoon = ({ sentAt }: OtpRequest, now: number): boolean => sentAt + resendAfterMs > now

/** CONFLICT (RESENDS_EXHAUSTED). @param waitMs until a call may help, where it makes a new code only after this one */
export const resendsExhausted = (waitMs: number | undefined) =>
  new ServiceError(
    'CONFLICT',
    `This code was already resent ${resendsMax} times, the maximum. Send a new code.`,
    {
      reason: 'RESENDS_EXHAUSTED',
      metadata: { resendsMax },
      ...(waitMs !== undefined && { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }),
    },
  )

/** RATE_LIMITED (RESEND_TOO_SOON). */
export function resendTooSoon({ sentAt }: OtpRequest, now: number): ServiceError {
  const retryAfterSeconds = Math.max(1, Math.ceil((sentAt + resendAfterMs - now) / 1000))
  return new ServiceError(
    'RATE_LIMITED',
    `This code was sent less than ${resendAfterMs / 1000} seconds ago. ${tryAgainIn(retryAfterSeconds)}`,
    { reason: 'RESEND_TOO_SOON', retryAfterSeconds },
  )
}
