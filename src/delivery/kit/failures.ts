import { refused, uncertain, type Failure, type FailureClass, type SendOutcome } from './provider.ts'
import type { HttpResponse, HttpResult } from './http-client.ts'

/** What each class means where nothing more is known: whether another try can help, and what is at fault. */
const classDefaults: Record<FailureClass, Pick<Failure, 'permanent' | 'at'>> = {
  invalid_number: { permanent: true, at: 'number' },
  unreachable: { permanent: false, at: 'number' },
  opted_out: { permanent: true, at: 'number' },
  geo_blocked: { permanent: true, at: 'route' },
  content_blocked: { permanent: true, at: 'route' },
  sender_invalid: { permanent: true, at: 'route' },
  auth_failed: { permanent: true, at: 'account' },
  no_credit: { permanent: true, at: 'account' },
  throttled: { permanent: false, at: 'route' },
  provider_down: { permanent: false, at: 'route' },
  uncertain: { permanent: false, at: 'route' },
  unknown: { permanent: false, at: 'route' },
}

/** A failure of that class; `but` says where this one differs from its class. */
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

/** What a reply means; only a whole answer is left to the provider's own words. */
export function outcomeFromResult(
  result: HttpResult,
  readResponse: (response: HttpResponse) => SendOutcome,
): SendOutcome {
  if (result.kind === 'not_sent') return refused(createFailure('provider_down', result.code))
  if (result.kind === 'no_response') return uncertain(result.code)
  return readResponse(result)
}

/**
 * What an answer other than 2xx means by its status alone, for codes that the provider does not document. 408 and 504
 * say that somebody waited in vain (RFC 9110 §15.5.9, §15.6.5): the message may be on its way.
 *
 * @param providerCode the provider's own word, where its body had one; the status otherwise
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

/** Too many, with the provider's `Retry-After` where it gave whole seconds (RFC 9110 §10.2.3). */
export function throttledFailure({ headers }: HttpResponse, providerCode: string | number | null): Failure {
  const seconds = headers['retry-after']
  const isSeconds = seconds !== undefined && /^\d{1,6}$/.test(seconds)
  return createFailure('throttled', providerCode, isSeconds ? { retryAfterSeconds: Number(seconds) } : {})
}

/** A provider's codes: the class of each, and in what it differs from its class. */
export type CodeTable = Readonly<
  Record<string, FailureClass | readonly [FailureClass, Partial<Pick<Failure, 'permanent' | 'at'>>]>
>

/** The failure that a code stands for, or undefined where the table does not have it. */
export function findFailure(table: CodeTable, code: string | undefined): Failure | undefined {
  const entry = code !== undefined && Object.hasOwn(table, code) ? table[code] : undefined
  if (entry === undefined || code === undefined) return undefined
  return typeof entry === 'string' ? createFailure(entry, code) : createFailure(entry[0], code, entry[1])
}
