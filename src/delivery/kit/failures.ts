import {
  accepted,
  refused,
  uncertain,
  type Failure,
  type FailureClass,
  type SendOutcome,
} from './provider.ts'
import type { HttpResponse, HttpResult } from './http-client.ts'

/**
 * Defaults of each class: whether retrying this route cannot help (`permanent`), and what is at fault (`at`).
 */
const classDefaults: Record<FailureClass, Pick<Failure, 'permanent' | 'at'>> = {
  no_route: { permanent: true, at: 'route' },
  invalid_number: { permanent: true, at: 'number' },
  unreachable: { permanent: false, at: 'number' },
  opted_out: { permanent: true, at: 'number' },
  geo_blocked: { permanent: true, at: 'route' },
  content_blocked: { permanent: true, at: 'route' },
  blocked_by_carrier: { permanent: true, at: 'message' },
  sender_invalid: { permanent: true, at: 'route' },
  auth_failed: { permanent: true, at: 'account' },
  no_credit: { permanent: true, at: 'account' },
  throttled: { permanent: false, at: 'route' },
  provider_down: { permanent: false, at: 'route' },
  uncertain: { permanent: false, at: 'route' },
  unknown: { permanent: false, at: 'route' },
}

/** Creates a failure with the defaults of its class. @param overrides where this failure differs from them */
export function createFailure(
  failureClass: FailureClass,
  providerCode: string | number | null,
  overrides: Partial<Pick<Failure, 'permanent' | 'at' | 'retryAfterSeconds'>> = {},
): Failure {
  return {
    class: failureClass,
    ...classDefaults[failureClass],
    providerCode: providerCode === null ? null : String(providerCode),
    ...overrides,
  }
}

/**
 * Outcome of an HTTP exchange. Connection faults are handled here; `readResponse` maps a complete response.
 */
export function outcomeFromResult(
  result: HttpResult,
  readResponse: (response: HttpResponse) => SendOutcome,
): SendOutcome {
  if (result.kind === 'not_sent') return refused(createFailure('provider_down', result.code))
  if (result.kind === 'no_response') return uncertain(result.code)
  return readResponse(result)
}

/**
 * Outcome of a non-2xx response by its status alone, for undocumented error codes. 408 and 504 are timeouts
 * (RFC 9110 §15.5.9, §15.6.5): the message may be on its way.
 *
 * @param providerCode the error code from the body; default: the status
 */
export function outcomeFromStatus(
  response: HttpResponse,
  providerCode: string | number | null = null,
): SendOutcome {
  const { status } = response
  const code = providerCode ?? `HTTP ${status}`
  if (status === 408 || status === 504) return uncertain(String(code))
  if (status === 429) return refused(throttledFailure(response, code))
  if (status === 401 || status === 403) return refused(createFailure('auth_failed', code))
  if (status === 402) return refused(createFailure('no_credit', code))
  if (status >= 500) return refused(createFailure('provider_down', code))
  return refused(createFailure('unknown', code))
}

/**
 * Outcome of a 2xx response by the id that it gives the message. Without one it is not a documented response, such as the
 * page of a proxy: the message may have been accepted.
 */
export const outcomeFromId = ({ status }: HttpResponse, messageId: string | undefined): SendOutcome =>
  messageId === undefined ? uncertain(`HTTP ${status}`) : accepted(messageId)

/** A `throttled` failure, with `Retry-After` if it gives whole seconds (RFC 9110 §10.2.3). */
export function throttledFailure({ headers }: HttpResponse, providerCode: string | number | null): Failure {
  const seconds = headers['retry-after']
  const isSeconds = seconds !== undefined && /^\d{1,6}$/.test(seconds)
  return createFailure('throttled', providerCode, isSeconds ? { retryAfterSeconds: Number(seconds) } : {})
}

/** Maps a provider's error codes to failure classes, optionally with overrides of the class's defaults. */
export type CodeTable = Readonly<
  Record<string, FailureClass | readonly [FailureClass, Partial<Pick<Failure, 'permanent' | 'at'>>]>
>

/** Looks up the failure for a provider's error code; undefined if the table lacks it. */
export function findFailure(table: CodeTable, code: string | undefined): Failure | undefined {
  const entry = code !== undefined && Object.hasOwn(table, code) ? table[code] : undefined
  if (entry === undefined || code === undefined) return undefined
  return typeof entry === 'string' ? createFailure(entry, code) : createFailure(entry[0], code, entry[1])
}

/**
 * Outcome of an error response by the provider's own code. The HTTP status takes precedence if it says that
 * the provider timed out, throttles or is broken, and it decides if the table lacks the code.
 */
export function outcomeFromErrorCode(
  response: HttpResponse,
  code: string | undefined,
  table: CodeTable,
): SendOutcome {
  const { status } = response
  const failure = findFailure(table, code)
  if (!failure || status === 408 || status === 429 || status >= 500) return outcomeFromStatus(response, code)
  return refused(
    failure.class === 'throttled' ? { ...throttledFailure(response, null), ...failure } : failure,
  )
}
