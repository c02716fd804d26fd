import type { ErrorCode, ServiceError } from '../../../domain/model/errors.ts'
import { isFieldName } from './fields.ts'
import { findResource, resourceName, type Resource } from './resources.ts'

/** Everything below these belongs to the façade: the paths of Twilio Verify, and those that it had before. */
export const isTwilioPath = (path: string) => /^\/v[23]\//.test(path)

type TwilioError = { status: number; code: number; message: string }

const notFound = { status: 404, code: 20404, message: 'The requested resource was not found' }
const invalid = { status: 400, code: 60200, message: 'Invalid parameter' }
const forbidden = { status: 403, code: 20403, message: 'Forbidden' }
const maxChecks = { status: 429, code: 60202, message: 'Max check attempts reached' }
const maxSends = { status: 429, code: 60203, message: 'Max send attempts reached' }

const blocked = { status: 403, code: 60410, message: 'Verification delivery attempt blocked' }

/** Errors as Twilio Verify documents them. Codes 20004, 20409 to 20417 and 20422 are not Twilio's. */
const errors: Record<ErrorCode, TwilioError> = {
  UNAUTHENTICATED: { status: 401, code: 20003, message: 'Authenticate' },
  FORBIDDEN: { status: 403, code: 20005, message: 'Account not active' },
  NOT_FOUND: notFound,
  ALREADY_VERIFIED: notFound,
  OTP_EXPIRED: notFound,
  OTP_CANCELED: notFound,
  METHOD_NOT_ALLOWED: { status: 405, code: 20004, message: 'Method not allowed' },
  PAYLOAD_TOO_LARGE: { status: 413, code: 20413, message: 'Payload too large' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    code: 20415,
    message: 'Unsupported media type. Send the body as application/x-www-form-urlencoded.',
  },
  EXPECTATION_FAILED: { status: 417, code: 20417, message: 'Expectation failed' },
  INVALID_ARGUMENT: invalid,
  MALFORMED_JSON: invalid,
  INVALID_CODE: invalid,
  PROOF_REJECTED: invalid,
  INVALID_PHONE_NUMBER: invalid,
  ATTEMPTS_EXHAUSTED: maxChecks,
  RATE_LIMITED: { status: 429, code: 20429, message: 'Too Many Requests' },
  CONFLICT: { status: 409, code: 20409, message: 'A call with this Idempotency-Key is in progress' },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    code: 20422,
    message: 'The Idempotency-Key was used with a different request',
  },
  DESTINATION_BLOCKED: blocked,
  CHALLENGE_REQUIRED: blocked,
  DELIVERY_FAILED: { status: 400, code: 60205, message: 'The number cannot be reached by this channel' },
  ENDPOINT_LIMIT_REACHED: forbidden,
  PLAN_LIMIT_REACHED: forbidden,
  INTERNAL: { status: 500, code: 20500, message: 'Internal Server Error' },
  UNAVAILABLE: { status: 503, code: 20503, message: 'Service Unavailable' },
}

/** Reasons of refusals that have an error of their own. */
const errorsByReason: Record<string, TwilioError> = {
  PHONE_CHECK_BUDGET: maxChecks,
  PHONE_SEND_BUDGET: maxSends,
  RESENDS_EXHAUSTED: maxSends,
  CUSTOM_CODE: { status: 403, code: 60204, message: 'Custom code not allowed' },
  SERVICES_ARE_APPLICATIONS: {
    ...forbidden,
    message: 'Services are applications of otpd: make and change them with `otpd app`',
  },
  SAFE_LIST_IS_READ_ONLY: {
    ...forbidden,
    message:
      'The safe list is kept as guard rules: change it with `otpd guard allow` and `otpd guard remove`',
  },
}

/** Builds an error in the form that Twilio's libraries read. @param path of the request */
export function toTwilioError(error: ServiceError, path: string) {
  const { status, code, message } = errorsByReason[error.reason ?? ''] ?? errors[error.code]
  const resource = findResource(path)
  const missing = code === notFound.code && resource ? resourceName(resource) : undefined
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds)
  if (status === 401) headers['www-authenticate'] = 'Basic realm="otpd"'
  return {
    status,
    headers,
    body: {
      code,
      message: missing
        ? `The requested resource ${missing} was not found`
        : message + nameField(error, resource?.kind),
      more_info: `https://www.twilio.com/docs/errors/${code}`,
      status,
    },
  }
}

/** Names the field that is invalid, if it is one of Twilio's: nothing that a caller made up is repeated. */
function nameField(error: ServiceError, kind: Resource['kind'] | undefined): string {
  const name = error.code === 'INVALID_PHONE_NUMBER' ? 'To' : error.details?.[0]?.path
  if (name === undefined || !isFieldName(name)) return ''
  if (name !== 'Channel') return ` \`${name}\``
  return ` \`Channel\`: use sms, call, whatsapp${kind === 'verifications' ? ' or auto' : ', email or rbm'}`
}
