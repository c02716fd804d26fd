import { explainCode } from '../../shared/error-cause.ts'
import { isSuccess, type HttpResponse, type HttpResult } from './http-client.ts'

/** Result of trying an account without sending anything. Texts are for people and hold no secrets. */
export type AccountCheck =
  | { kind: 'ready'; facts: ReadonlyArray<readonly [name: string, value: string]> }
  | { kind: 'faulty'; problem: string; remedy: string }

export const accountReady = (...facts: ReadonlyArray<readonly [string, string]>): AccountCheck => ({
  kind: 'ready',
  facts,
})
export const accountFaulty = (problem: string, remedy: string): AccountCheck => ({
  kind: 'faulty',
  problem,
  remedy,
})

/**
 * Reads the response to a look-up that sends nothing.
 *
 * @param readFound reads a 2xx
 * @param resource what was looked up, such as `the account`, for a 404
 */
export function readAccountCheck(
  result: HttpResult,
  resource: string,
  readFound: (response: HttpResponse) => AccountCheck = () => accountReady(),
): AccountCheck {
  if (result.kind !== 'response')
    return accountFaulty(
      `The provider cannot be reached (${explainCode(result.code)}).`,
      "Check this machine's network, and baseUrl if you set it.",
    )
  const { status } = result
  if (isSuccess(result)) return readFound(result)
  if (status === 401 || status === 403)
    return accountFaulty(
      `The provider refuses the credentials (HTTP ${status}).`,
      'Copy them again from its console, and check that they may do this.',
    )
  if (status === 404)
    return accountFaulty(
      `The provider does not know ${resource} (HTTP 404).`,
      'Copy its id again from the console of the provider.',
    )
  return accountFaulty(
    `The provider answers HTTP ${status}.`,
    'Try again later; if it persists, look at its status page.',
  )
}
