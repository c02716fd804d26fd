import { readAmount, type Charge } from '../../domain/model/price.ts'
import type { Callback, CallbackResult, Failure, OutgoingMessage, Receipt } from './provider.ts'

/**
 * Callback URL of one message, with the request id in its query, for providers without a reference field. It
 * matches receipts that arrive before the response to the send, or without one.
 */
export function callbackUrlFor({ callbackUrl, requestId }: OutgoingMessage): string | null {
  if (callbackUrl === null) return null
  const url = new URL(callbackUrl)
  url.searchParams.set('request', requestId)
  return url.href
}

/** Request id from a URL made by `callbackUrlFor`. Verify the signature before you trust it. */
export function requestIdFromUrl({ url }: Callback): string | null {
  return URL.canParse(url) ? new URL(url).searchParams.get('request') : null
}

/** Parses form fields: of the query for a GET, of the body otherwise. */
export function parseForm({ method, url, body }: Callback): URLSearchParams {
  if (method !== 'GET') return new URLSearchParams(body)
  return URL.canParse(url) ? new URL(url).searchParams : new URLSearchParams()
}

/** Result of a callback that reports the status of one message. */
export const receiptResult = (
  ids: Pick<Receipt, 'messageId' | 'requestId'>,
  status: Receipt['status'],
  failure: Failure | null = null,
): CallbackResult => ({ kind: 'receipts', receipts: [{ ...ids, status, failure }] })

/** Adds what a provider charges for a message to the result of its callback. @param amount as the provider writes it */
export function withCharge(
  result: CallbackResult,
  amount: unknown,
  currency: string | undefined,
): CallbackResult {
  const charge = readCharge(amount, currency)
  if (result.kind !== 'receipts' || charge === undefined) return result
  return { kind: 'receipts', receipts: result.receipts.map((receipt) => ({ ...receipt, charge })) }
}

/** Reads a price; undefined if there is none. @param amount as the provider writes it */
export function readCharge(amount: unknown, currency: string | undefined): Charge | undefined {
  const price = readAmount(amount)
  return price === undefined || currency === undefined ? undefined : { amount: price, currency }
}

/** A valid callback that reports nothing about delivery. */
export const noReceipt: CallbackResult = { kind: 'receipts', receipts: [] }
/** A callback with an invalid or missing signature. */
export const forged: CallbackResult = { kind: 'forged' }
/** A callback that lacks required fields. */
export const unreadable: CallbackResult = { kind: 'unreadable' }
/** A callback that cannot be verified at the moment. */
export const unverifiable: CallbackResult = { kind: 'unverifiable' }
