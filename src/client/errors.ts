import type { Challenge } from './types.ts'

/** Codes of the API's errors, and those of calls that got no answer. */
export type OtpdErrorCode =
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
  | 'CONNECTION'
  | 'TIMEOUT'
  | 'UNKNOWN'

/** A fault of the request: which field, parameter or header, and what was expected. */
export type ErrorDetail = {
  in: 'body' | 'query' | 'path' | 'header'
  path: string
  code: string
  message: string
}

export type ErrorFacts = {
  /** HTTP status; 0 without an answer. */
  status: number
  code: OtpdErrorCode
  /** More specific machine-readable reason. */
  reason?: string | undefined
  details?: readonly ErrorDetail[] | undefined
  metadata?: Readonly<Record<string, unknown>> | undefined
  /** Id of the HTTP request, which the server's log has too. */
  requestId?: string | undefined
  retryAfterSeconds?: number | undefined
  cause?: unknown
}

/** A call that failed. Several copies of this package may be loaded: test `name`, not only `instanceof`. */
export class OtpdError extends Error {
  override name = 'OtpdError'
  readonly status: number
  readonly code: OtpdErrorCode
  readonly reason: string | undefined
  /** An entry for each fault of the request; the message has the first. */
  readonly details: readonly ErrorDetail[]
  readonly metadata: Readonly<Record<string, unknown>>
  /** Id of the HTTP request (`traceId`), not of a code. */
  readonly requestId: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.status = facts.status
    this.code = facts.code
    this.reason = facts.reason
    this.details = facts.details ?? []
    this.metadata = facts.metadata ?? {}
    this.requestId = facts.requestId
    this.retryAfterSeconds = facts.retryAfterSeconds
  }
}

/** Refused: correct the call (400, 413, 415, 417, 422). */
export class InvalidRequestError extends OtpdError {
  override name = 'InvalidRequestError'
}
/** Credentials are missing or wrong (401). */
export class AuthenticationError extends OtpdError {
  override name = 'AuthenticationError'
}
/** The application is disabled, or the destination blocked (403). */
export class PermissionError extends OtpdError {
  override name = 'PermissionError'
}
/** The user gets a code after a challenge (403): show it, and send again with its token as `challenge`. */
export class ChallengeRequiredError extends PermissionError {
  override name = 'ChallengeRequiredError'

  /** Data that the page needs to show it. */
  get challenge(): Challenge {
    return this.metadata as Challenge
  }
}
/** No such request (404). */
export class NotFoundError extends OtpdError {
  override name = 'NotFoundError'
}
/** Already done (409). */
export class ConflictError extends OtpdError {
  override name = 'ConflictError'
}
/** The request has ended: send a new code (410). */
export class GoneError extends OtpdError {
  override name = 'GoneError'
}
/** Wait for `retryAfterSeconds` (429). */
export class RateLimitError extends OtpdError {
  override name = 'RateLimitError'
}
/** The server failed (5xx). */
export class ServerError extends OtpdError {
  override name = 'ServerError'
}
/** The server cannot be reached. */
export class ConnectionError extends OtpdError {
  override name = 'ConnectionError'
}
/** The server did not answer in time. */
export class TimeoutError extends OtpdError {
  override name = 'TimeoutError'
}

const kinds: Readonly<Record<number, typeof OtpdError>> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  417: InvalidRequestError,
  422: InvalidRequestError,
  429: RateLimitError,
}

/** Creates the error of a status. */
export const createError = (message: string, facts: ErrorFacts): OtpdError =>
  new (facts.code === 'CHALLENGE_REQUIRED'
    ? ChallengeRequiredError
    : (kinds[facts.status] ?? (facts.status >= 500 ? ServerError : OtpdError)))(message, facts)

/** A webhook that is not genuine, or too old: answer 400, and do not read its body. It is no `OtpdError`: nothing was called. */
export class WebhookVerifyError extends Error {
  override name = 'WebhookVerifyError'
}
