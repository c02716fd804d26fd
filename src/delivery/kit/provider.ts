import type { Failure, Receipt } from '../../domain/model/delivery.ts'
import type { Channel } from '../../domain/model/request.ts'

export type { Failure, FailureClass, Receipt } from '../../domain/model/delivery.ts'

/** One message for one phone. */
export type OutgoingMessage = {
  /** The OTP request, for the provider's reference field: receipts are matched by it. */
  requestId: string
  /** E.164. */
  to: string
  /** ISO code, where it is known. */
  country: string | null
  channel: Channel
  /** The whole text; of a call, what it says. */
  text: string
  /** The code alone, for channels that fill a template of their own. */
  code: string
  /** BCP 47. */
  locale: string
  applicationName: string
  /** How long the code will live on. A provider must not deliver it later. */
  validitySeconds: number
  /** Where receipts are to be sent; null where nobody could reach it. */
  callbackUrl: string | null
  /** From 1: which try of this request it is. */
  attempt: number
}

/**
 * `accepted`: the provider took the message. `refused`: it certainly did not, another provider may try at once.
 * `uncertain`: the request was written and its answer never came, so that the message may be on its way.
 */
export type SendOutcome =
  | { kind: 'accepted'; messageId: string | null }
  | { kind: 'refused'; failure: Failure }
  | { kind: 'uncertain'; failure: Failure }

/** A call of the provider's to our callback URL, as it came. */
export type Callback = {
  method: string
  /** As the provider was told it, with its query. */
  url: string
  headers: Readonly<Record<string, string | undefined>>
  body: string
}

/**
 * `forged`: the signature does not fit, or what should be signed is not. `challenge`: the provider asks whether the URL
 * is ours; the text is to be answered with 200 as `text/plain`.
 */
export type CallbackResult =
  | { kind: 'receipts'; receipts: Receipt[] }
  | { kind: 'challenge'; text: string }
  | { kind: 'forged' }
  | { kind: 'unreadable' }

/** One way to get messages to phones. Made by a factory from its settings; keeps nothing of a message. */
export type Provider = {
  readonly channels: readonly Channel[]

  /**
   * Hands one message over. Never throws: whatever goes wrong is an outcome.
   *
   * @param signal ends the waiting; what was written by then may still be carried out, so that the outcome is
   *   `uncertain`
   */
  send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome>

  /** Reads a call to the callback URL, its signature first. Absent where the provider makes none. */
  readCallback?(callback: Callback, nowMs: number): Promise<CallbackResult> | CallbackResult

  /** Starts what tells of receipts by a connection of its own, SMPP's `deliver_sm`. */
  listen?(onReceipt: (receipt: Receipt) => void): void

  close?(): Promise<void>
}

export const refused = (failure: Failure): SendOutcome => ({ kind: 'refused', failure })
export const accepted = (messageId: string | null): SendOutcome => ({ kind: 'accepted', messageId })
export const uncertain = (providerCode: string | null): SendOutcome => ({
  kind: 'uncertain',
  failure: { class: 'uncertain', permanent: false, at: 'route', providerCode },
})
