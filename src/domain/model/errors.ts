import type { RateState } from '../limits/rate-limit.ts'

/** Every code that the API can answer with. The list is closed: a client may switch on it. */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'MALFORMED_JSON'
  | 'INVALID_PHONE_NUMBER'
  | 'INVALID_CODE'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'ENDPOINT_LIMIT_REACHED'
  | 'PLAN_LIMIT_REACHED'
  | 'DESTINATION_BLOCKED'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'CONFLICT'
  | 'ALREADY_VERIFIED'
  | 'OTP_EXPIRED'
  | 'OTP_CANCELED'
  | 'ATTEMPTS_EXHAUSTED'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'RATE_LIMITED'
  | 'INTERNAL'
  | 'DELIVERY_FAILED'
  | 'UNAVAILABLE'

/** One fault of a request that is not valid: where it is and what was expected there. Never the value. */
export type ErrorDetail = {
  in: 'body' | 'query' | 'path' | 'header'
  path: string
  code: string
  message: string
}

export type ErrorExtras = {
  /** A finer machine word than the code. */
  reason?: string | undefined
  details?: ErrorDetail[]
  /** Every part of the message that changes from call to call. */
  metadata?: Record<string, string | number | boolean | null>
  /** Whole seconds until the call is worth repeating; becomes `Retry-After`. */
  retryAfterSeconds?: number
  cause?: unknown
}

/**
 * A failure that is part of the contract. Its message may be shown to anyone and never holds a value of the
 * caller's. Anything else that is thrown is a bug and is answered with INTERNAL.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ErrorCode
  readonly reason: string | undefined
  readonly details: ErrorDetail[] | undefined
  readonly metadata: Record<string, string | number | boolean | null> | undefined
  readonly retryAfterSeconds: number | undefined
  /** Where a rate limit was asked on the way here, what it said; becomes the `RateLimit` headers. */
  rate: RateState | undefined

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.code = code
    this.reason = extras.reason
    this.details = extras.details
    this.metadata = extras.metadata
    this.retryAfterSeconds = extras.retryAfterSeconds
  }
}

/** The one answer for "not there", "not yours" and "another application's": nobody learns that an id exists. */
export const notFound = () =>
  new ServiceError(
    'NOT_FOUND',
    'Resource not found. Check its id and that it belongs to this account or application.',
  )

/** A request that breaks the contract's form: one detail for each fault, none with the caller's value. */
export const invalidRequest = (details: ErrorDetail[], reason?: string) =>
  new ServiceError('INVALID_ARGUMENT', describeFaults(details), { reason, details })

/** Spells out the first fault, because many clients log or show the message alone. */
function describeFaults([first, ...others]: ErrorDetail[]): string {
  if (!first) return 'Invalid request.'
  const field = first.path === '' ? '' : `${first.path}: `
  const more = others.length === 0 ? '' : ` (${others.length} more in details.)`
  return `Invalid request. ${field}${first.message}${more}`
}

/** One field that is not what it should be. @param message ends with a full stop */
export const invalidField = (location: ErrorDetail['in'], path: string, message: string) =>
  invalidRequest([{ in: location, path, code: 'INVALID', message }])
