import type { ErrorCode, ServiceError } from '../../../domain/model/errors.ts'
import { toOAuthError } from './oauth-errors.ts'

export const apiPath = '/one-time-password-sms/v1'
export const tokenPath = '/camara/token'
export const discoveryPath = '/camara/.well-known/openid-configuration'

/** Everything below these belongs to the façade: the API, in any version, and where its tokens come from. */
export const isCamaraPath = (path: string) => /^\/(one-time-password-sms|camara)\//.test(path)

type CamaraError = { status: number; code: string; message: string }

const invalid = {
  status: 400,
  code: 'INVALID_ARGUMENT',
  message: 'Client specified an invalid argument, request body or query param.',
}
const expired = {
  status: 400,
  code: 'ONE_TIME_PASSWORD_SMS.VERIFICATION_EXPIRED',
  message: 'The authenticationId is no longer valid.',
}
const failed = {
  status: 400,
  code: 'ONE_TIME_PASSWORD_SMS.VERIFICATION_FAILED',
  message:
    'The maximum number of attempts for this authenticationId was exceeded without providing a valid OTP.',
}
const denied = {
  status: 403,
  code: 'PERMISSION_DENIED',
  message: 'Client does not have sufficient permissions to perform this action.',
}
const conflict = { status: 409, code: 'CONFLICT', message: 'The request conflicts with another one.' }

const blocked = {
  status: 403,
  code: 'ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_BLOCKED',
  message: 'Phone number is blocked to receive SMS due to any blocking business reason in the operator.',
}

/** Errors as CAMARA one-time-password-sms v1 documents them (release r3.2). */
const errors: Record<ErrorCode, CamaraError> = {
  INVALID_ARGUMENT: invalid,
  MALFORMED_JSON: invalid,
  INVALID_PHONE_NUMBER: invalid,
  PROOF_REJECTED: invalid,
  INVALID_CODE: {
    status: 400,
    code: 'ONE_TIME_PASSWORD_SMS.INVALID_OTP',
    message: 'The provided code is not valid for this authenticationId.',
  },
  ATTEMPTS_EXHAUSTED: failed,
  ALREADY_VERIFIED: expired,
  OTP_EXPIRED: expired,
  OTP_CANCELED: expired,
  UNAUTHENTICATED: {
    status: 401,
    code: 'UNAUTHENTICATED',
    message: 'Request not authenticated due to missing, invalid, or expired credentials.',
  },
  FORBIDDEN: denied,
  ENDPOINT_LIMIT_REACHED: denied,
  PLAN_LIMIT_REACHED: denied,
  DESTINATION_BLOCKED: blocked,
  CHALLENGE_REQUIRED: blocked,
  DELIVERY_FAILED: {
    status: 403,
    code: 'ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_NOT_ALLOWED',
    message: 'Phone number is not allowed to receive SMS: no provider could take the message.',
  },
  NOT_FOUND: { status: 404, code: 'NOT_FOUND', message: 'The specified resource is not found.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    message: 'The requested method is not allowed on this resource.',
  },
  CONFLICT: conflict,
  IDEMPOTENCY_KEY_REUSED: conflict,
  PAYLOAD_TOO_LARGE: { status: 413, code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than 64 KiB.' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'Unsupported media type. Send the body as application/json, in UTF-8.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    code: 'EXPECTATION_FAILED',
    message: 'The only expectation that can be met is 100-continue.',
  },
  RATE_LIMITED: {
    status: 429,
    code: 'TOO_MANY_REQUESTS',
    message: 'Too many requests. Wait for as long as Retry-After says.',
  },
  INTERNAL: { status: 500, code: 'INTERNAL', message: 'The server failed unexpectedly. Retry.' },
  UNAVAILABLE: { status: 503, code: 'UNAVAILABLE', message: 'Service unavailable. Retry.' },
}

const maxCodes = {
  status: 403,
  code: 'ONE_TIME_PASSWORD_SMS.MAX_OTP_CODES_EXCEEDED',
  message: 'Too many codes were requested for this phone number. Try again later.',
}

function findError({ code, reason, metadata }: ServiceError): CamaraError {
  if (reason === 'PHONE_SEND_BUDGET') return maxCodes
  // CAMARA's last wrong code ends the verification with this error; ours says that no attempt is left.
  return code === 'INVALID_CODE' && metadata?.['attemptsRemaining'] === 0 ? failed : errors[code]
}

/**
 * Builds an error in CAMARA's form; in that of OAuth for the token.
 *
 * @param traceId sent back as `x-correlator` by responses that do not reach the routes
 */
export function toCamaraError(error: ServiceError, traceId: string, path: string) {
  const { status, body } = path === tokenPath ? toOAuthError(error) : toApiError(error)
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-correlator': traceId }
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds)
  if (status === 401) headers['www-authenticate'] = `${path === tokenPath ? 'Basic' : 'Bearer'} realm="otpd"`
  return { status, headers, body }
}

function toApiError(error: ServiceError) {
  const body = findError(error)
  return { status: body.status, body }
}
