import { findFailure, outcomeFromStatus, throttledFailure, type CodeTable } from './failures.ts'
import type { HttpResponse } from './http-client.ts'
import { refused, type SendOutcome } from './provider.ts'

/**
 * What an answer that is no success means by the provider's own code. The status has the last word where it says that
 * the provider is overloaded, broken or waited in vain, and where the table does not have the code.
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
