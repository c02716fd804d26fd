import type { MessageSettings } from './message-settings.ts'
import type { Channel, OtpRequest } from './request.ts'
import { isVirtualPhone } from './phone.ts'

/** The provider of what never leaves otpd: such a message lies in a developer's inbox. */
export const inboxProvider = 'inbox'

/** Why a message did not go out or did not arrive. The list is closed: every provider maps its own words to it. */
export type FailureClass =
  | 'invalid_number'
  | 'unreachable'
  | 'opted_out'
  | 'geo_blocked'
  | 'content_blocked'
  | 'sender_invalid'
  | 'auth_failed'
  | 'no_credit'
  | 'throttled'
  | 'provider_down'
  | 'uncertain'
  | 'unknown'

export type Failure = {
  class: FailureClass
  /** Another try by the same way cannot help. */
  permanent: boolean
  /** What is at fault: this phone number, this way to it (sender, country, network), or the account as a whole. */
  at: 'number' | 'route' | 'account'
  /** The provider's own word or number for it; goes to the operator's log, never to a caller. */
  providerCode: string | null
  /** Where the provider said when to come back. */
  retryAfterSeconds?: number
}

/** What a provider tells later about a message that it took. */
export type Receipt = {
  /** One of the two is there. */
  messageId: string | null
  requestId: string | null
  status: 'sent' | 'delivered' | 'undelivered'
  failure: Failure | null
}

export type Destination = Pick<OtpRequest, 'environment' | 'phone' | 'country' | 'appId'> & {
  /** A virtual number of a developer. */
  isVirtual: boolean
}

/** One provider of the operator's: its settings are those of its kind, secrets among them. */
export type ProviderSettings = { name: string; kind: string; values: Readonly<Record<string, string>> }

/** Who carries one channel to some of the phones. A list that is empty leaves nobody out. */
export type Route = {
  channel: Channel
  /** ISO codes. */
  countries: readonly string[]
  /** Beginnings of numbers in E.164. */
  prefixes: readonly string[]
  /** Ids. */
  applications: readonly string[]
  /** Names, in the order in which they are asked; or `inbox` alone. */
  providers: readonly string[]
}

export type DeliverySettings = { providers: readonly ProviderSettings[]; routes: readonly Route[] }

/** A provider on one of its channels. */
export type Candidate = { channel: Channel; provider: string }

/** A way as a message remembers it. */
export const candidateKey = ({ channel, provider }: Candidate) => `${channel}/${provider}`

/** One message to be carried, and how it fared so far. */
export type DeliveryJob = {
  request: OtpRequest
  code: string
  application: MessageSettings
  /** Those that it may take, in order. */
  channels: readonly Channel[]
  /** From 1. */
  attempt: number
  /** Ways that will never carry it, as `candidateKey` writes them. */
  excluded: readonly string[]
}

/**
 * How one round over the ways ended.
 *
 * `accepted`: a provider has it. `uncertain`: one may have it, so that nobody else may get it for now. `refused`: nobody
 * will ever take it. `later`: nobody has it, and somebody may take it in `waitMs` or later.
 */
export type DispatchResult =
  | { kind: 'accepted'; candidate: Candidate; messageId: string | null }
  | { kind: 'uncertain'; candidate: Candidate; failure: Failure }
  | { kind: 'refused'; failure: Failure }
  | { kind: 'deferred'; failure: Failure | null; excluded: string[]; waitMs: number }

/** The routes to one destination. */
export type DestinationRoutes = {
  /** Channels that reach the destination, first choice first. Empty if no route matches. */
  channels: readonly Channel[]
  /** Candidates on these channels in order; only `inbox` if the message stays in otpd. */
  candidatesFor(channels: readonly Channel[]): Candidate[]
}

export type Delivery = {
  /** Matches the routes with a destination. */
  routesFor(destination: Destination): DestinationRoutes
  /** Offers the letter by one way after the other, until somebody has it or may have it. Never rejects. */
  dispatch(job: DeliveryJob): Promise<DispatchResult>
  /**
   * The message of a code, as the phone shows it.
   *
   * @param application null once it is deleted: such a message names nobody
   * @param sentAtMs when it is sent, for the minutes that it tells
   */
  render(request: OtpRequest, code: string, application: MessageSettings | null, sentAtMs: number): string
}

/** Where the messages of a request go to. */
export const toDestination = (request: Omit<Destination, 'isVirtual'>): Destination => ({
  environment: request.environment,
  phone: request.phone,
  country: request.country,
  appId: request.appId,
  isVirtual: isVirtualPhone(request.phone),
})
