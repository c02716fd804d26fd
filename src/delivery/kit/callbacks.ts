import type { Callback, CallbackResult, Failure, OutgoingMessage, Receipt } from './provider.ts'

/**
 * The callback URL of one message, for providers that have no field for a reference of ours: the request's id stands in
 * its query. Receipts that overtake the answer to the send, or follow an answer that never came, find their request so.
 */
export function callbackUrlFor({ callbackUrl, requestId }: OutgoingMessage): string | null {
  if (callbackUrl === null) return null
  const url = new URL(callbackUrl)
  url.searchParams.set('request', requestId)
  return url.href
}

/** The id that `callbackUrlFor` put there. Worth nothing before the signature was checked. */
export function requestIdFromUrl({ url }: Callback): string | null {
  return URL.canParse(url) ? new URL(url).searchParams.get('request') : null
}

/** The fields of a form; of a GET, those of the query. */
export function parseForm({ method, url, body }: Callback): URLSearchParams {
  if (method !== 'GET') return new URLSearchParams(body)
  return URL.canParse(url) ? new URL(url).searchParams : new URLSearchParams()
}

export const receiptResult = (
  ids: Pick<Receipt, 'messageId' | 'requestId'>,
  status: Receipt['status'],
  failure: Failure | null = null,
): CallbackResult => ({ kind: 'receipts', receipts: [{ ...ids, status, failure }] })

/** A call that is right and tells nothing about the fate of a message. */
export const noReceipt: CallbackResult = { kind: 'receipts', receipts: [] }
export const forged: CallbackResult = { kind: 'forged' }
export const unreadable: CallbackResult = { kind: 'unreadable' }
