import { ServiceError, type ErrorCode } from '../domain/model/errors.ts'
import type { GrantForm, TokenErrorResponse } from '../domain/accounts/identity-provider.ts'
import { readText } from './json-body.ts'

/** What a token endpoint answers instead of the contract's error body (RFC 6749 §5.2). */
export type OAuthErrorResponse = {
  status: 400 | 413 | 415 | 429 | 503
  retryAfterSeconds: number | undefined
  body: { error: string; error_description: string; reason?: string }
}

/** OAuth knows 400 for what a client did wrong. The rest has a status of its own and, in part, no word. */
const errorMappings: Partial<Record<ErrorCode, Pick<OAuthErrorResponse, 'status'> & { error: string }>> = {
  INVALID_ARGUMENT: { status: 400, error: 'invalid_request' },
  MALFORMED_JSON: { status: 400, error: 'invalid_request' },
  CONFLICT: { status: 400, error: 'invalid_request' },
  PAYLOAD_TOO_LARGE: { status: 413, error: 'invalid_request' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, error: 'invalid_request' },
  RATE_LIMITED: { status: 429, error: 'rate_limited' },
  UNAVAILABLE: { status: 503, error: 'temporarily_unavailable' },
}

/** Runs what a token route does; an expected failure comes back in OAuth's form, anything else is thrown on. */
export async function toOAuthResult<T extends object>(
  work: () => Promise<T | TokenErrorResponse>,
): Promise<{ value: T } | { failure: OAuthErrorResponse }> {
  try {
    const value = await work()
    if (!isRefusal(value)) return { value }
    return { failure: { status: 400, retryAfterSeconds: undefined, body: value } }
  } catch (thrown) {
    const mapping = thrown instanceof ServiceError ? errorMappings[thrown.code] : undefined
    if (!(thrown instanceof ServiceError) || !mapping) throw thrown
    const { message, reason, details = [], retryAfterSeconds } = thrown
    // There is one string for all that is to say.
    const description = details.map((detail) => `${detail.path}: ${detail.message}`).join(' ') || message
    const body = {
      error: mapping.error,
      error_description: description,
      ...(reason !== undefined && { reason }),
    }
    return { failure: { status: mapping.status, retryAfterSeconds, body } }
  }
}

const isRefusal = (value: object): value is TokenErrorResponse => 'error' in value

/**
 * The parameters of a form. Empty ones count as left out (RFC 6749 §3.2); unknown ones are for the grant to ignore.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE; PAYLOAD_TOO_LARGE; MALFORMED_JSON not UTF-8; INVALID_ARGUMENT a parameter stands twice
 */
export async function readForm(request: Request): Promise<GrantForm> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded *(;.*)?$/i.test(type)) {
    throw new ServiceError(
      'UNSUPPORTED_MEDIA_TYPE',
      'Unsupported media type. Send the body as application/x-www-form-urlencoded.',
    )
  }
  const form = new Map<string, string | undefined>()
  for (const [name, value] of new URLSearchParams(await readText(request))) {
    if (form.has(name)) throw new ServiceError('INVALID_ARGUMENT', 'A parameter is repeated. Send it once.')
    form.set(name, value === '' ? undefined : value)
  }
  return Object.fromEntries(form)
}
