import type { RateState } from './rate-limit.ts'

/** Every error code of the API. A closed list: clients may switch on it. */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'MALFORMED_JSON'
  | 'INVALID_PHONE_NUMBER'
  | 'INVALID_CODE'
  | 'PROOF_REJECTED'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'ENDPOINT_LIMIT_REACHED'
  | 'PLAN_LIMIT_REACHED'
  | 'DESTINATION_BLOCKED'
  | 'CHALLENGE_REQUIRED'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'CONFLICT'
  | 'ALREADY_VERIFIED'
  | 'OTP_EXPIRED'
  | 'OTP_CANCELED'
  | 'ATTEMPTS_EXHAUSTED'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'EXPECTATION_FAILED'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'RATE_LIMITED'
  | 'INTERNAL'
  | 'DELIVERY_FAILED'
  | 'UNAVAILABLE'

/** One fault of an invalid request: where it is and what was expected. Never holds the value. */
export type ErrorDetail = {
  in: 'body' | 'query' | 'path' | 'header'
  path: string
  code: string
  message: string
}

type ErrorExtras = {
  /** More specific machine-readable reason. */
  reason?: string | undefined
  details?: ErrorDetail[]
  /** Machine-readable values of this occurrence: everything in the message that varies. */
  metadata?: Record<string, string | number | boolean | null> | undefined
  /** Whole seconds until a retry can succeed; becomes `Retry-After`. */
  retryAfterSeconds?: number
  cause?: unknown
}

/**
 * A failure that is part of the API contract. Its message is safe to show to anyone and never contains input
 * values. Any other thrown value is a bug and becomes INTERNAL.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ErrorCode
  readonly reason: string | undefined
  readonly details: ErrorDetail[] | undefined
  readonly metadata: Record<string, string | number | boolean | null> | undefined
  readonly retryAfterSeconds: number | undefined
  /** State of the rate limit that the call was checked against, if any; becomes the `RateLimit` headers. */
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

/** Tells whether a call failed because the database takes nothing right now. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === 'UNAVAILABLE'

/** Message of NOT_FOUND for each kind of resource. */
const notFoundMessages = {
  project: 'No project with this id.',
  application: 'No application with this id.',
  otpRequest: 'No OTP request with this id.',
  session: 'No session of the last 24 hours with this id.',
  relayedMessage: 'No message of the last 24 hours with this id.',
  webhookEndpoint: 'No webhook endpoint with this id.',
  webhookDelivery: 'No webhook delivery with this id.',
  apiToken: 'No API token with this id.',
  guardRule: 'No guard rule with this id.',
  template: 'This application has no template with this name.',
  user: 'No user with this phone number.',
  phone: 'Nothing is kept about this phone number.',
  callback: 'No provider with this callback URL.',
} as const

/** Kinds that paths name. */
export type ResourceKind = Exclude<keyof typeof notFoundMessages, 'phone'>

/** One error for absent resources and for those of another owner, so that callers cannot learn which ids exist. */
export const notFound = (kind: ResourceKind | 'phone') =>
  new ServiceError('NOT_FOUND', notFoundMessages[kind])

/** Says when a call can succeed: `Try again in 41 s.` From two minutes on in whole minutes, from two hours on in hours. */
export function tryAgainIn(seconds: number): string {
  if (seconds < 120) return `Try again in ${seconds} s.`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `Try again in ${minutes} min.` : `Try again in ${Math.ceil(minutes / 60)} h.`
}

/** INVALID_ARGUMENT with one detail per fault. */
export const invalidRequest = (details: ErrorDetail[], reason?: string) =>
  new ServiceError('INVALID_ARGUMENT', describeFaults(details), { reason, details })

/** Spells out the first fault, because many clients log or show the message alone. */
function describeFaults([first, ...others]: ErrorDetail[]): string {
  if (!first) return 'Invalid request.'
  const field = first.path === '' ? '' : `${first.path}: `
  const more = others.length === 0 ? '' : ` (${others.length} more in details.)`
  return `Invalid request. ${field}${first.message}${more}`
}

/** INVALID_ARGUMENT for a single field. @param message ends with a full stop */
export const invalidField = (location: ErrorDetail['in'], path: string, message: string) =>
  invalidRequest([{ in: location, path, code: 'INVALID', message }])
