/**
 * The interface that every provider implements, and how to write one.
 *
 * `providers/bird.ts` (SMS, signed receipts) and `test/delivery/providers/bird.test.ts` are a short example.
 *
 * 1. **File.** Add `providers/<kind>.ts`. It exports one kind, made by `defineKind({ kind, title, channels,
 *    fields, create })`. Add it to the list in `providers/all-provider-kinds.ts`; nothing else registers it.
 * 2. **Settings.** `fields` declares the keys of its `[[providers]]` table in the configuration file
 *    (`SettingField`: description, `required`, `secret`, `default`, `pattern` …); `oneOf` and `together`
 *    declare rules across fields. `defineKind` types the values, and `otpd config check` explains what is
 *    missing. Give each HTTP provider `baseUrl: baseUrlField(…)`, so that tests can point it at a local
 *    server. `create(settings, { http, clock })` gets validated values. It must not open connections.
 * 3. **Sending.** `send` makes one `http.request` and returns `outcomeFromResult(result, readResponse)`. That
 *    covers connection faults; your `readResponse` only reads complete HTTP responses. Pass `requestId` as
 *    the provider's reference (if it has none, use `callbackUrlFor`) and `validitySeconds` as the message's
 *    lifetime, within the provider's bounds (`clamp`).
 * 4. **Outcomes.** Return `accepted` only for a response that documents success, and `uncertain` for a
 *    success that cannot be read: the message may be on its way, so no other provider gets it. Map the
 *    provider's error codes to failure classes in a `CodeTable` (`outcomeFromErrorCode`, `findFailure`);
 *    everything else follows from the HTTP status (`outcomeFromStatus`). A `permanent` failure excludes this
 *    route for the message; with `at: 'number'` it excludes the whole channel.
 * 5. **Receipts.** `readCallback` verifies the signature first (`timingSafeEqualBytes`, `isWithinTolerance`)
 *    and returns `forged`, `unreadable`, `noReceipt` or `receiptResult(…)`. Omit it if the provider makes no
 *    callbacks, or if the settings lack the key that verifies them. A provider that reports receipts over its
 *    own connection implements `listen` instead (`smpp.ts`).
 * 6. **Reports, prices, account.** If the provider takes conversion reports, `reportOutcome` makes one call and returns
 *    `readReportResult(result)`, or `readCancelResult(result)` for a call that ends its verification. If it names
 *    prices in receipts, `withCharge` adds them; if only on demand, `findCharge` looks one up. `checkAccount` looks up
 *    the account or service with a call that sends nothing, and returns `readAccountCheck(result, …)`:
 *    `otpd provider add` calls it. A provider that writes the text itself lists the channels in `textByProvider`, and
 *    passes `code` and `locale`. What its fraud filter blocks is `blocked_by_carrier`.
 * 7. **Voice.** Keep calls in `providers/<kind>-voice.ts`: a table of voices by locale, and `renderSpeech`
 *    for the text. `channelSettings` of the kind names the setting that a channel needs, such as the number to call from.
 * 8. **Tests.** `test/delivery/providers/<kind>.test.ts` starts a local server with `startProviderApi` and
 *    checks the documented request, each error class and each receipt, including forged ones. It ends with
 *    `describeHttpFaults`, the contract that every HTTP provider must meet. A provider that writes the text has its server in
 *    `test/helpers/carriers`, and ends with `describeCarrier` too: it sends, resends with the same and another code, refuses,
 *    throttles, hangs, blocks and takes wrong credentials, through the real dispatcher with a second provider behind it.
 *    Build the server from published documents, and name them in its head with what they leave open.
 *    `test/delivery/kit/provider-kinds.test.ts` checks the list of kinds.
 * 9. **Documentation.** The table of kinds in the guide is generated from the descriptions of the fields.
 */

import type { Failure, Receipt as DomainReceipt } from '../../domain/model/delivery.ts'
import type { OutcomeReport, ReportResult } from '../../domain/model/outcome-report.ts'
import type { Charge } from '../../domain/model/price.ts'
import type { Channel } from '../../domain/model/request.ts'
import type { AccountCheck } from './account-check.ts'

export type { OutcomeReport, ReportResult } from '../../domain/model/outcome-report.ts'
export type { Failure, FailureClass } from '../../domain/model/delivery.ts'

/** A delivery receipt as a provider writes it, with the price of the message if it names one. */
export type Receipt = Omit<DomainReceipt, 'charge'> & { charge?: Charge | undefined }

/** One message to one phone number. */
export type OutgoingMessage = {
  /** Id of the OTP request, for the provider's reference field: receipts are matched by it. */
  requestId: string
  /** E.164. */
  to: string
  /** ISO 3166-1 alpha-2; null if unknown. */
  country: string | null
  channel: Channel
  /** The complete text; for a call, the spoken text. */
  text: string
  /** The code alone, for channels whose text is a template at the provider. */
  code: string
  /** BCP 47 language tag of the text. */
  locale: string
  applicationName: string
  /** Remaining lifetime of the code. The provider should not deliver the message later. */
  validitySeconds: number
  /** URL for delivery receipts; null if the provider could not reach it. */
  callbackUrl: string | null
  /** Number of the message within its request: 0 is the first, resends follow. */
  messageNumber: number
  /** Number of this attempt to send the message, from 1. */
  attempt: number
  /** W3C trace context of the caller. */
  traceparent?: string | undefined
}

/**
 * `accepted`: the provider took the message. `refused`: it certainly did not, so another provider may try at
 * once. `uncertain`: the request was sent without a conclusive response, so the message may be on its way.
 */
export type SendOutcome =
  | {
      kind: 'accepted'
      messageId: string | null
      /** Price of the whole message, if the response names it. */
      charge?: Charge | undefined
      /** Channel that a provider chose that chooses itself; for the operator's log. */
      via?: string
    }
  | { kind: 'refused'; failure: Failure }
  | { kind: 'uncertain'; failure: Failure }

/** An HTTP request of the provider to its callback URL, unparsed. */
export type Callback = {
  method: string
  /** The full URL as it was given to the provider, with its query: signatures cover it. */
  url: string
  headers: Readonly<Record<string, string | undefined>>
  body: string
}

/**
 * `forged`: the signature is invalid or missing. `unverifiable`: it cannot be checked at the moment, so the provider must
 * repeat the callback. `challenge`: the provider verifies that we own the URL; the response must be 200 with the text as
 * `text/plain`.
 */
export type CallbackResult =
  | { kind: 'receipts'; receipts: Receipt[] }
  | { kind: 'challenge'; text: string }
  | { kind: 'forged' }
  | { kind: 'unreadable' }
  | { kind: 'unverifiable' }

/** State of a provider's own connection. After a failure it is tried again in `retryMs` at the latest. */
export type ConnectionState = 'connected' | { failure: Failure; retryMs: number }

/**
 * Sends messages through one account at a provider. Created from its settings; keeps no state about messages.
 */
export type Provider = {
  /** Whether its settings leave the text out, so that a message shows the code alone; default: false. */
  readonly leavesOutText?: boolean

  /**
   * Hands over one message. Must not throw: every error is an outcome.
   *
   * @param signal aborts the wait; if the request was already written, the outcome is `uncertain`
   */
  send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome>

  /** Verifies and reads a request to the callback URL. Absent if the provider makes none. */
  readCallback?(callback: Callback, nowMs: number): Promise<CallbackResult> | CallbackResult

  /**
   * Reports how the request of an accepted message ended. Must not throw. Absent if the provider takes no such reports.
   * May be called again with the same report: after a crash, it is not known whether the provider has it.
   */
  reportOutcome?(report: OutcomeReport, signal: AbortSignal): Promise<ReportResult>

  /**
   * Looks up the price of an accepted message after its request has ended. Must not throw. Absent if receipts or responses
   * name the price, or the provider does not tell it.
   */
  findCharge?(
    message: Pick<OutcomeReport, 'messageId' | 'channel'>,
    signal: AbortSignal,
  ): Promise<ChargeLookup>

  /** Tries the account by a look-up that sends nothing and costs nothing. Absent if the provider has none. */
  checkAccount?(signal: AbortSignal): Promise<AccountCheck>

  /**
   * Opens the provider's own connection for receipts (SMPP's `deliver_sm`).
   *
   * @param onConnection called when the connection is made, and each time that it cannot be made
   */
  listen?(onReceipt: (receipt: Receipt) => void, onConnection: (state: ConnectionState) => void): void

  close?(): Promise<void>
}

/** Price of a message; `pending` if the provider may name it later, `none` if it never will. */
type ChargeLookup = { kind: 'charge'; charge: Charge } | { kind: 'pending' } | { kind: 'none' }

/** The provider certainly did not take the message. */
export const refused = (failure: Failure): SendOutcome => ({ kind: 'refused', failure })
/**
 * The provider took the message.
 *
 * @param charge price of the whole message, if the response names it
 * @param messageId its id at the provider, to match receipts. One that cannot be stored counts as none: the message is
 *   sent, and must not be sent again because of it.
 */
export const accepted = (messageId: string | null, charge?: Charge): SendOutcome => ({
  kind: 'accepted',
  messageId: messageId !== null && storableId.test(messageId) ? messageId : null,
  ...(charge && { charge }),
})

/** Without control characters (PostgreSQL refuses NUL) and unpaired surrogates. Real ids have up to about 70 characters. */
const storableId = /^[^\p{Cc}\p{Cs}]{1,255}$/u
/** The provider may have taken the message. */
export const uncertain = (providerCode: string | null): SendOutcome => ({
  kind: 'uncertain',
  failure: { class: 'uncertain', permanent: false, at: 'route', providerCode },
})
