import { ParseError, ValidationError } from 'elysia'
import {
  type ErrorCode,
  type ErrorDetail,
  invalidRequest,
  notFound,
  ServiceError,
} from '../domain/model/errors.ts'
import { ReplayedError } from '../domain/limits/idempotency.ts'
import { keysOf } from '../shared/fields.ts'
import { isRecord } from '../shared/json.ts'
import { isRepeatableName } from './caller-names.ts'
import { describeExpectation, describeUnknown } from './expectations.ts'
import { emptyBody } from './json-body.ts'
import { resourcesAt } from './resources.ts'
import { wwwAuthenticateFor } from './require-developer.ts'

/** HTTP status of each error code. A new code without a status does not compile. */
export const httpStatusByCode = {
  INVALID_ARGUMENT: 400,
  MALFORMED_JSON: 400,
  INVALID_PHONE_NUMBER: 400,
  INVALID_CODE: 400,
  PROOF_REJECTED: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  ENDPOINT_LIMIT_REACHED: 403,
  PLAN_LIMIT_REACHED: 403,
  DESTINATION_BLOCKED: 403,
  CHALLENGE_REQUIRED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  ALREADY_VERIFIED: 409,
  OTP_EXPIRED: 410,
  OTP_CANCELED: 410,
  ATTEMPTS_EXHAUSTED: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  EXPECTATION_FAILED: 417,
  IDEMPOTENCY_KEY_REUSED: 422,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  DELIVERY_FAILED: 502,
  UNAVAILABLE: 503,
} as const satisfies Record<ErrorCode, number>

/** Every error code, by status. */
export const errorCodes = keysOf(httpStatusByCode)

export type ErrorResponse = {
  status: number
  headers: Record<string, string>
  body: {
    error: {
      code: ErrorCode
      message: string
      traceId: string
      reason?: string
      details?: ErrorDetail[]
      metadata?: Record<string, string | number | boolean | null>
    }
  }
}

/**
 * Builds the status, headers and body of an error response.
 *
 * @param traceId the `X-Request-Id` of the same response
 */
export function toErrorResponse(error: ServiceError, traceId: string): ErrorResponse {
  const headers: Record<string, string> = {}
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds)
  const challenge = wwwAuthenticateFor(error)
  if (challenge !== undefined) headers['www-authenticate'] = challenge
  if (error instanceof ReplayedError) headers['idempotency-replayed'] = 'true'
  return {
    status: httpStatusByCode[error.code],
    headers,
    body: {
      error: {
        code: error.code,
        message: error.message,
        traceId,
        ...(error.reason !== undefined && { reason: error.reason }),
        ...(error.details && { details: error.details }),
        ...(error.metadata && { metadata: error.metadata }),
      },
    },
  }
}

/**
 * Converts errors of the framework into errors of the contract.
 *
 * @param thrown any error that reached the error hook, except a missing route
 * @param route pattern of the path, such as `/v1/projects/:id`
 * @returns undefined for an unexpected error, which is a bug
 */
export function toServiceError(thrown: unknown, request: Request, route: string): ServiceError | undefined {
  const error = readServiceError(thrown, route)
  // Without a body its fields are not at fault. Façades read forms, which may be empty.
  const isAboutBody = error?.details?.[0]?.in === 'body' && route.startsWith('/v1/')
  return isAboutBody && request.body === null ? emptyBody() : error
}

function readServiceError(thrown: unknown, route: string): ServiceError | undefined {
  if (thrown instanceof ServiceError) return thrown
  // The framework wraps errors of body parsers: the original is the cause.
  if (thrown instanceof ParseError && thrown.cause instanceof ServiceError) return thrown.cause
  if (!(thrown instanceof ValidationError)) return undefined
  if (isUndecodableId(thrown)) return notFound(resourcesAt(route)[0] ?? 'application')
  return validationError(thrown)
}

/** The framework turns a parameter that cannot be percent-decoded into null. As any malformed id, it is not found. */
const isUndecodableId = (error: ValidationError) =>
  error.type === 'params' && isRecord(error.value) && Object.values(error.value).includes(null)

/** Creates an error with one detail per field. Details say what was expected and never quote the received value. */
function validationError(error: ValidationError): ServiceError {
  if (error.type === 'response') return new ServiceError('INTERNAL', internalMessage)
  const location = locations[error.type] ?? 'body'
  const details = new Map<string, ErrorDetail>()
  for (const fault of error.all) {
    if (!('path' in fault) || typeof fault.path !== 'string') continue
    const schema: unknown = 'schema' in fault ? fault.schema : undefined
    const value: unknown = 'value' in fault ? fault.value : undefined
    const detail = describeFault(location, fault.path, schema, value, String(fault.message ?? ''))
    if (!details.has(detail.path)) details.set(detail.path, detail)
  }
  return invalidRequest([...details.values()].slice(0, 20))
}

/** Converts a JSON pointer to a dotted path, up to a name that an error may not repeat. */
function toDottedPath(pointer: string): string {
  const names = pointer.split('/').slice(1)
  const secretIndex = names.findIndex((name) => !isRepeatableName(name))
  return (secretIndex === -1 ? names : names.slice(0, secretIndex)).join('.')
}

const locations: Record<string, ErrorDetail['in']> = {
  body: 'body',
  query: 'query',
  params: 'path',
  headers: 'header',
}

/** @param message TypeBox's, which tells missing and unknown properties from others */
function describeFault(
  location: ErrorDetail['in'],
  pointer: string,
  schema: unknown,
  value: unknown,
  message: string,
): ErrorDetail {
  const at = { in: location, path: toDottedPath(pointer) }
  if (message.startsWith('Expected required'))
    return { ...at, code: 'REQUIRED', message: 'Required, but missing.' }
  if (message !== 'Unexpected property')
    return { ...at, code: 'INVALID', message: describeExpectation(schema, value) }
  const name = pointer.slice(pointer.lastIndexOf('/') + 1)
  return { ...at, code: 'UNKNOWN', message: describeUnknown(location, schema, name) }
}

export const internalMessage =
  'The server failed unexpectedly. Retry; if it fails again, report the traceId to the operator.'
