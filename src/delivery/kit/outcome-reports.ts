import type { ReportResult } from '../../domain/model/outcome-report.ts'
import { isSuccess, type HttpResponse, type HttpResult } from './http-client.ts'

export const reportDone: ReportResult = { kind: 'done' }

/**
 * Reads the response to the end of a verification whose code was not entered. It may have ended there before, by its own time or
 * by a later code for the phone, so that the provider does not know it any more.
 */
export function readCancelResult(
  result: HttpResult,
  readCode?: (response: HttpResponse) => string | undefined,
): ReportResult {
  const isGone = result.kind === 'response' && result.status === 404
  return isGone ? reportDone : readReportResult(result, readCode)
}

/**
 * Reads the response to the report of an outcome. 2xx is done. Faults of connection, account and provider are tried again: the
 * operator or the provider can mend them. Every other status rejects the report.
 *
 * @param readCode the provider's own error code in a response; default: the status
 */
export function readReportResult(
  result: HttpResult,
  readCode: (response: HttpResponse) => string | undefined = () => undefined,
): ReportResult {
  if (result.kind !== 'response') return { kind: 'retry', providerCode: result.code }
  const { status, headers } = result
  if (isSuccess(result)) return reportDone
  const providerCode = readCode(result) ?? `HTTP ${status}`
  if (status < 500 && !accountStatuses.has(status)) return { kind: 'rejected', providerCode }
  const seconds = headers['retry-after'] ?? ''
  return {
    kind: 'retry',
    providerCode,
    ...(/^\d{1,5}$/.test(seconds) && { retryAfterSeconds: Number(seconds) }),
  }
}

/** Unauthorized, out of credit, forbidden, timed out, throttled. */
const accountStatuses: ReadonlySet<number> = new Set([401, 402, 403, 408, 429])
