import type { Price } from './price.ts'
import type { Channel } from './request.ts'

/** How a request ended: its final status. */
export type Outcome = 'verified' | 'expired' | 'canceled' | 'failed'

/** The end of a request, for the provider that delivered its code. */
export type OutcomeReport = {
  requestId: string
  /** The provider's id of the message. */
  messageId: string
  /** E.164. */
  to: string
  channel: Channel
  code: string
  outcome: Outcome
  /** When the request ended, in milliseconds since the epoch. */
  endedAt: number
  /** Whether the provider has named the price of the message. */
  isCharged: boolean
}

/**
 * Result of a report.
 *
 * - `done`: the provider took it, or has no use for this outcome.
 * - `rejected`: it will never take it, because it does not know the message or has its outcome.
 * - `retry`: it may take it later.
 */
export type ReportResult =
  | { kind: 'done' }
  | { kind: 'rejected'; providerCode: string }
  | { kind: 'retry'; providerCode: string; retryAfterSeconds?: number }

/**
 * Result of a report, and of asking for the price of the message.
 *
 * - `charge`: the price that the provider names.
 * - `price_pending`: the outcome was reported, but the provider does not know the price yet.
 */
export type ReportedResult =
  Exclude<ReportResult, { kind: 'done' }> | { kind: 'done'; charge?: Price } | { kind: 'price_pending' }
