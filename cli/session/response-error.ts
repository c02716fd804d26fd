import { CliError, exitCodeForStatus, exitCodes, type FieldFault } from '../terminal/errors.ts'
import type { HttpResponse } from './http.ts'
import { isRecord } from '../../src/shared/json.ts'
import { sourceSentence, type ServerChoice } from './server-choice.ts'
import { formatRemaining } from '../terminal/text.ts'

/**
 * Converts a response of 400 or more to an error. Reads the API's `{"error": {code, message, …}}` and OAuth's
 * `{"error", "error_description"}` (RFC 6749 §5.2).
 */
export function responseError(
  server: ServerChoice,
  response: HttpResponse,
  moreHints: string[] = [],
): CliError {
  const parsed = readError(response.json)
  if (parsed === null)
    return oversizedStatuses.has(response.status)
      ? oversizedError(server, response.status)
      : foreignResponseError(server, response.status)
  const hints = [...parsed.lines]
  if (response.retryAfterSeconds !== null && !parsed.message.includes('Try again in'))
    hints.push(`Try again in ${formatRemaining(response.retryAfterSeconds * 1000)}.`)
  if (parsed.reason === 'ROUTE_NOT_FOUND' && server.url !== server.origin)
    hints.push(`${sourceSentence(server)} It has a path; without one: --server ${server.origin}`)
  // An outage is counted in the log, not named call by call.
  if (response.status >= 500 && parsed.code !== 'UNAVAILABLE' && parsed.traceId !== null)
    hints.push(`Look for ${parsed.traceId} in the server's log.`)
  return new CliError(exitCodeForStatus(response.status, parsed.code), parsed.code, parsed.message, {
    body: response.body,
    fields: parsed.fields,
    status: response.status,
    reason: parsed.reason,
    retryAfterSeconds: response.retryAfterSeconds,
    hints: [...hints, ...moreHints],
  })
}

/** URI Too Long and Request Header Fields Too Large. The HTTP parser of the server, or of a proxy, sends no body of otpd. */
const oversizedStatuses = new Set([414, 431])

const oversizedError = (server: ServerChoice, status: number) =>
  new CliError(
    exitCodes.refused,
    'REQUEST_TOO_LARGE',
    `${server.url} refused the request: its URL and headers are too large (${status}).`,
    { status, hints: ['Shorten what is longest: a token, credentials, or the value of an option.'] },
  )

/** Makes the error for a response that no otpd server gives. */
export const foreignResponseError = (server: ServerChoice, status: number) =>
  new CliError(
    status < 400 ? exitCodes.bug : exitCodeForStatus(status, ''),
    'UNEXPECTED_ANSWER',
    `${server.url} responded with ${status}, but not like an otpd server.`,
    { status, hints: [`${sourceSentence(server)} Is it an otpd server?`] },
  )

/** Commands to suggest, by the error's reason or else its code: the server's message cannot name them. */
const nextSteps: Partial<Record<string, string>> = {
  DELIVERY_FAILED: 'See what happened with: otpd otp list --phone PHONE',
  APPLICATION_DISABLED: 'Enable it with: otpd app enable APP',
  PROJECT_NOT_EMPTY: 'List its applications with: otpd app list',
  TOTP_REQUIRED: 'Enable it with: otpd profile totp enable',
  PLAN_LIMIT_REACHED: 'Delete one, or ask an operator for another plan: otpd admin set-plan',
  TOKEN_NAME_TAKEN: 'Revoke it with: otpd token revoke NAME',
  TOKEN_LIMIT_REACHED: 'Revoke one with: otpd token list, otpd token revoke TOKEN',
  TEMPLATE_LIMIT_REACHED:
    'Delete one with: otpd template list --app APP, otpd template delete NAME --app APP',
  GUARD_RULE_LIMIT_REACHED: 'Delete one with: otpd guard rules, otpd guard remove RULE',
  ENDPOINT_LIMIT_REACHED: 'Delete one with: otpd webhook list, otpd webhook delete WEBHOOK',
}

/** Says who can do what an API token may not. @param scope one that may; null if no token may */
const scopeHint = (scope: unknown) =>
  typeof scope === 'string'
    ? `The owner of the account creates one with: otpd token create NAME --scope ${scope}`
    : 'Log in with: otpd login'

/** Setting of the operator that sets a rate, by the policy of the limit. */
const planRates: Partial<Record<string, string>> = {
  'otp-send': 'sendPerMinute',
  'otp-verify': 'verifyPerMinute',
  console: 'consolePerMinute',
  lookups: 'lookupsPerMinute',
  sessions: 'sendPerMinute',
}

function readError(json: unknown) {
  if (!isRecord(json)) return null
  if (typeof json.error === 'string')
    return {
      code: json.error,
      reason: undefined,
      message: stringOr(json.error_description, json.error),
      lines: [],
      fields: fieldFaults(json.details),
      traceId: null,
    }
  if (!isRecord(json.error) || typeof json.error.code !== 'string') return null
  const { code, reason, message, details, metadata, traceId } = json.error
  const lines: string[] = []
  if (isRecord(metadata) && typeof metadata.attemptsRemaining === 'number')
    lines.push(`Attempts left: ${metadata.attemptsRemaining}.`)
  const nextStep = nextSteps[stringOr(reason, code)] ?? nextSteps[code]
  if (nextStep !== undefined) lines.push(nextStep)
  if (reason === 'SCOPE_MISSING') lines.push(scopeHint(isRecord(metadata) ? metadata.scope : null))
  const rate = isRecord(metadata) ? planRates[stringOr(metadata.policy, '')] : undefined
  if (rate !== undefined && isRecord(metadata) && typeof metadata.plan === 'string')
    lines.push(
      `An operator can raise plans.${metadata.plan}.${rate}, or set another plan: otpd admin set-plan`,
    )
  return {
    code,
    reason: typeof reason === 'string' ? reason : undefined,
    message: stringOr(message, code),
    lines,
    fields: fieldFaults(details),
    traceId: typeof traceId === 'string' ? traceId : null,
  }
}

/** Reads the invalid fields from the `details` of an error. */
export const fieldFaults = (details: unknown): FieldFault[] =>
  (Array.isArray(details) ? details : [])
    .filter(isRecord)
    .map((detail) => ({ field: stringOr(detail.path, ''), fault: stringOr(detail.message, '') }))

const stringOr = (value: unknown, fallback: string) => (typeof value === 'string' ? value : fallback)
