import type { OutcomeReport, ReportedResult } from './outcome-report.ts'
import type { LocalePreference, MessageSettings } from './message-settings.ts'
import type { TemplateText } from './message-template.ts'
import type { MessageCost, Price, PriceList } from './price.ts'
import type { Channel, OtpRequest } from './request.ts'
import type { RouteChoice, Strategy } from './route-choice.ts'
import { isVirtualPhone } from './phone.ts'

/** Provider of messages that never leave otpd and go to a developer's inbox instead. */
export const inboxProvider = 'inbox'

/**
 * Why a message was not sent or not delivered. A closed list that every provider maps its own codes to, except `no_route`:
 * no provider was there to be asked.
 */
export type FailureClass =
  | 'no_route'
  | 'invalid_number'
  | 'unreachable'
  | 'opted_out'
  | 'geo_blocked'
  | 'content_blocked'
  | 'blocked_by_carrier'
  | 'sender_invalid'
  | 'auth_failed'
  | 'no_credit'
  | 'throttled'
  | 'provider_down'
  | 'uncertain'
  | 'unknown'

export type Failure = {
  class: FailureClass
  /** Retrying with the same candidate cannot help. */
  permanent: boolean
  /**
   * The cause: this phone number, the route to it (sender, country, network), the provider account as a whole, or
   * the message itself, which then no other provider or channel may get.
   */
  at: 'number' | 'route' | 'account' | 'message'
  /** The provider's own error code; goes to the operator's log, never to a caller. */
  providerCode: string | null
  /** Text of the refusal, without codes, phone numbers and credentials, if it is of use to people. */
  reply?: string | null
  /** Present if the provider asked for a delay. */
  retryAfterSeconds?: number
}

/** Delivery receipt: a provider's later report about a message that it accepted. */
export type Receipt = {
  /** At least one of `messageId` and `requestId` is set. */
  messageId: string | null
  requestId: string | null
  status: 'sent' | 'delivered' | 'undelivered'
  failure: Failure | null
  /** Price of the message, in the installation's currency; absent if the provider does not name it. */
  charge?: Price
}

export type Destination = Pick<OtpRequest, 'environment' | 'phone' | 'country' | 'appId'> & {
  /** True for a developer's virtual number. */
  isVirtual: boolean
}

/** One configured provider: the settings of its kind, secrets included. */
export type ProviderSettings = {
  name: string
  kind: string
  values: Readonly<Record<string, string>>
  /** Whether another provider may send a message that this one's fraud filter blocked; default: false. */
  failoverOnBlock?: boolean
  /** Whether this provider hears how the requests of its messages ended; default: true. */
  feedback?: boolean
  /** Prices of its messages; absent: unknown. */
  prices?: PriceList
}

/** Providers of one channel for matching destinations. An empty list matches everything. */
export type Route = {
  channel: Channel
  /** ISO country codes. */
  countries: readonly string[]
  /** E.164 prefixes. */
  prefixes: readonly string[]
  /** Application ids. */
  applications: readonly string[]
  /** Provider names in the order in which they are tried, unless a strategy chooses; or `inbox` alone. */
  providers: readonly string[]
  /** Default: `order`. */
  strategy?: Strategy
}

export type DeliverySettings = {
  providers: readonly ProviderSettings[]
  routes: readonly Route[]
  /** ISO 4217 code of all prices; absent: costs are not counted. */
  currency?: string
}

/** A provider on one of its channels: one way to send a message. */
export type Candidate = { channel: Channel; provider: string }

/** Stored form of a candidate, as in a message's `excluded`. */
export const candidateKey = ({ channel, provider }: Candidate) => `${channel}/${provider}`

/** Tells whether a permanent failure of one candidate excludes another one, too. */
export const isExcludedWith = (
  other: Candidate,
  failed: Pick<Candidate, 'channel'>,
  { permanent, at }: Pick<Failure, 'permanent' | 'at'>,
) => permanent && (at === 'message' || (at === 'number' && other.channel === failed.channel))

/** Fields of a request that lead and make up its message. */
type RoutedRequest = Pick<
  OtpRequest,
  | 'id'
  | 'developerId'
  | 'appId'
  | 'environment'
  | 'phone'
  | 'country'
  | 'locale'
  | 'ownText'
  | 'template'
  | 'expiresAt'
>

/** One attempt to send a message. */
export type DeliveryJob = {
  request: RoutedRequest
  code: string
  application: MessageSettings
  /** Channels that the message may take, in order. */
  channels: readonly Channel[]
  /** Number of the message within its request: 0 is the first, resends follow. */
  messageNumber: number
  /** Number of this attempt to send the message, from 1. */
  attempt: number
  /** Candidates that must not be tried again, as `candidateKey` formats them. */
  excluded: readonly string[]
  /** Candidates that already had a message with this code; a strategy prefers others. */
  tried?: readonly string[]
  /** Deadline over all providers; default: that of the dispatcher. */
  withinMs?: number | undefined
  /** W3C trace context of the call that the attempt belongs to; absent in a retry. */
  traceparent?: string | undefined
}

/** One provider that was asked to deliver a message. */
export type DeliveryTry = {
  /** Start, in milliseconds since the epoch. */
  at: number
  channel: Channel
  provider: string
  /** The provider's id of the message. */
  messageId: string | null
  /** `uncertain`: the provider may have the message. */
  outcome: 'accepted' | 'refused' | 'uncertain'
  /** Why it was not accepted; of a message that failed over, why it did not arrive. */
  error: FailureClass | null
  /** Text of the refusal, see `Failure`; null if there is none. */
  reply: string | null
  latencyMs: number
  /** Whether the attempt before did not end, as its process was killed: its provider may have had the message, too. */
  isInterrupted?: boolean
  /** Decision of the route's strategy that led to this try; absent without one, and in tries that follow it. */
  choice?: RouteChoice
  /** Cost of a message that the provider has, or may have; absent if otpd counts no costs. */
  cost?: MessageCost
}

/**
 * Outcome of one attempt over the candidates.
 *
 * - `accepted`: a provider accepted the message.
 * - `uncertain`: a provider may have accepted it, so no other one may get it for now.
 * - `refused`: every candidate refused it permanently, or there is none.
 * - `deferred`: no provider has it; another attempt may succeed after `waitMs`.
 *
 * The cost is absent if otpd counts no costs.
 */
export type DispatchResult =
  | { kind: 'accepted'; candidate: Candidate; messageId: string | null; cost?: MessageCost | undefined }
  | { kind: 'uncertain'; candidate: Candidate; failure: Failure; cost?: MessageCost | undefined }
  | { kind: 'refused'; failure: Failure }
  | { kind: 'deferred'; failure: Failure | null; excluded: string[]; waitMs: number }

/** The outcome, and each provider that was asked, in order. */
export type Dispatched = DispatchResult & { tries: readonly DeliveryTry[] }

/** The routes to one destination. */
export type DestinationRoutes = {
  /** Channels that reach the destination, first choice first. Empty if no route matches. */
  channels: readonly Channel[]
  /** Candidates on these channels in order; only `inbox` if the message stays in otpd. */
  candidatesFor(channels: readonly Channel[]): Candidate[]
}

export type Delivery = {
  /** Finds the routes to a destination. */
  routesFor(destination: Destination): DestinationRoutes
  /**
   * Tries the candidates in order until a provider accepts, or may have accepted, the message. Rejects only if
   * the message cannot be routed or composed.
   */
  dispatch(job: DeliveryJob): Promise<Dispatched>
  /**
   * Renders the text of a code's message.
   *
   * @param application null once it is deleted: the text then names no sender
   * @param sentAtMs time of sending, from which the text derives the remaining minutes
   */
  render(request: OtpRequest, code: string, application: MessageSettings | null, sentAtMs: number): string
  /** Chooses the text of a template, by the languages that a send, the application and the country of a phone ask for. */
  chooseText(texts: readonly TemplateText[], preference: LocalePreference): TemplateText
  /** Estimates what a message costs that takes its first candidate; null: unknown, or it stays in the inbox. */
  estimatePrice(
    destination: Destination,
    channels: readonly Channel[],
    excluded?: readonly string[],
  ): Price | null
  /** Tells whether a provider hears how the requests of its messages ended, or is asked for their prices then. */
  takesReports(provider: string): boolean
  /**
   * Reports how a request ended to the provider of one of its messages, and asks for the price if it is only told on demand.
   * Never rejects.
   */
  report(provider: string, report: OutcomeReport): Promise<ReportedResult>
  /** Asks for the price of a message that failed over, if its provider tells it only on demand. Never rejects. */
  findPrice(provider: string, message: Pick<OutcomeReport, 'messageId' | 'channel'>): Promise<ReportedResult>
}

/** The destination of a request's messages. */
export const toDestination = (request: Omit<Destination, 'isVirtual'>): Destination => ({
  environment: request.environment,
  phone: request.phone,
  country: request.country,
  appId: request.appId,
  isVirtual: isVirtualPhone(request.phone),
})

/** A provider whose circuit is open at a node: it gets no messages from it until `openUntil`. */
export type OpenCircuit = { node: string; name: string; failure: FailureClass; openUntil: number }
