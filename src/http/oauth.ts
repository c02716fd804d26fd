import { ServiceError, type ErrorCode, type ErrorDetail } from '../domain/model/errors.ts'
import type { GrantForm, TokenErrorResponse } from '../domain/accounts/identity-provider.ts'
import { isRepeatableName } from './caller-names.ts'
import { readText } from './json-body.ts'

/** Error response of a token endpoint (RFC 6749 §5.2), which replaces the API's own error body. */
type OAuthErrorResponse = {
  status: 400 | 413 | 415 | 429 | 503
  body: { error: string; error_description: string; reason?: string; details?: ErrorDetail[] }
}

/** OAuth prescribes 400 for client errors. Other statuses keep theirs; OAuth has no error code for some of them. */
const errorMappings: Partial<Record<ErrorCode, Pick<OAuthErrorResponse, 'status'> & { error: string }>> = {
  INVALID_ARGUMENT: { status: 400, error: 'invalid_request' },
  MALFORMED_JSON: { status: 400, error: 'invalid_request' },
  CONFLICT: { status: 400, error: 'invalid_request' },
  PAYLOAD_TOO_LARGE: { status: 413, error: 'invalid_request' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, error: 'invalid_request' },
  RATE_LIMITED: { status: 429, error: 'rate_limited' },
  UNAVAILABLE: { status: 503, error: 'temporarily_unavailable' },
}

/**
 * Runs the work of a token route. Returns expected failures as OAuth errors, for which it sets `Retry-After`, and
 * rethrows all others.
 */
export async function toOAuthResult<T extends object>(
  headers: Record<string, string | number>,
  work: () => Promise<T | TokenErrorResponse>,
): Promise<{ value: T } | { failure: OAuthErrorResponse }> {
  try {
    const value = await work()
    if (!isRefusal(value)) return { value }
    return { failure: { status: 400, body: value } }
  } catch (thrown) {
    const mapping = thrown instanceof ServiceError ? errorMappings[thrown.code] : undefined
    if (!(thrown instanceof ServiceError) || !mapping) throw thrown
    const { message, reason, details, retryAfterSeconds } = thrown
    if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds)
    // OAuth has one string for people, and clients that read no more.
    const description = details?.map((detail) => `${detail.path}: ${detail.message}`).join(' ') || message
    const body = {
      error: mapping.error,
      error_description: description,
      ...(reason !== undefined && { reason }),
      ...(details && { details }),
    }
    return { failure: { status: mapping.status, body } }
  }
}

const isRefusal = (value: object): value is TokenErrorResponse => 'error' in value

/** No grant has a tenth. */
const parametersMax = 100

/**
 * Parses the parameters of a form. Empty parameters count as omitted (RFC 6749 §3.2); the grant ignores unknown ones.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE; PAYLOAD_TOO_LARGE; MALFORMED_JSON when the body is not UTF-8; INVALID_ARGUMENT when a
 *   parameter is repeated or contains NUL, or there are more than 100
 */
export async function readForm(request: Request): Promise<GrantForm> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded *(;.*)?$/i.test(type)) {
    throw new ServiceError(
      'UNSUPPORTED_MEDIA_TYPE',
      'Unsupported media type. Send the body as application/x-www-form-urlencoded.',
    )
  }
  const text = await readText(request)
  // Callers need no credentials to have a form parsed, and 9,000 parameters take as long as dozens of calls.
  if (text.split('&', parametersMax + 1).length > parametersMax)
    throw new ServiceError('INVALID_ARGUMENT', `The form has more than ${parametersMax} parameters.`)
  const form = new Map<string, string | undefined>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (form.has(name)) {
      const which = isRepeatableName(name) ? `The parameter ${name}` : 'A parameter'
      throw new ServiceError('INVALID_ARGUMENT', `${which} is repeated. Send it once.`)
    }
    // PostgreSQL cannot store it, nor look for it.
    if (value.includes('\0')) throw new ServiceError('INVALID_ARGUMENT', 'A parameter contains NUL.')
    form.set(name, value === '' ? undefined : value)
  }
  return Object.fromEntries(form)
}
