/** Process exit codes: few and coarse, so that a script can branch on them. The error's code is more specific. */
export const exitCodes = {
  done: 0,
  bug: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
  notFound: 5,
  refused: 6,
  rateLimited: 7,
  negative: 8,
  startRefused: 9,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An invalid value: the field of the API that has it, and what was expected. */
export type FieldFault = { field: string; fault: string }

type CliErrorExtras = {
  /** Next steps, one sentence or command per line. */
  hints?: string[]
  /** Invalid fields, by their names in the API. Commands name the flags instead. */
  fields?: FieldFault[]
  /** Raw response body of the server; --json prints it unchanged. */
  body?: string
  /** HTTP status, if there was a response. */
  status?: number
  /** The API's more specific reason. */
  reason?: string | undefined
  /** Seconds after which the server wants to be asked again, if it said so. */
  retryAfterSeconds?: number | null
  cause?: unknown
}

/** An expected failure, with a message for people, a code for scripts and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: string
  readonly exitCode: ExitCode
  readonly hints: string[]
  readonly fields: FieldFault[]
  readonly body: string | undefined
  readonly status: number | undefined
  readonly reason: string | undefined
  readonly retryAfterSeconds: number | null

  constructor(exitCode: ExitCode, code: string, message: string, extras: CliErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.exitCode = exitCode
    this.code = code
    this.hints = extras.hints ?? []
    this.fields = extras.fields ?? []
    this.body = extras.body
    this.status = extras.status
    this.reason = extras.reason
    this.retryAfterSeconds = extras.retryAfterSeconds ?? null
  }
}

/** Returns what the server expected of a field; undefined if an error is not about that field. */
export const findFieldFault = (error: unknown, name: string) =>
  error instanceof CliError ? error.fields.find(({ field }) => field === name)?.fault : undefined

/** Whether the same call may succeed later. */
export const isRetryable = ({ status, code }: CliError) =>
  status === undefined
    ? code === 'SERVER_UNREACHABLE' || code === 'PROVIDER_UNREACHABLE'
    : status >= 500 || status === 429 || status === 408

/** Whether an API token may not make the call, so that a command or screen does without the answer. */
export const isOutOfScope = (error: unknown): error is CliError =>
  error instanceof CliError && error.reason === 'SCOPE_MISSING'

/** Makes the error for an invalid command line: nothing was done, exit code 2. */
export const usageError = (message: string, ...hints: string[]) =>
  new CliError(exitCodes.usage, 'USAGE', message, { hints })

/**
 * Makes the error for a value that a form of the console also asks for.
 *
 * @param field of the form; commands name their flag, which has the same name
 * @param expected what the value must be: `a lifetime like 12h`
 */
export const invalidValueError = (field: string, expected: string) =>
  new CliError(exitCodes.usage, 'USAGE', `"${field}" must be ${expected}.`, {
    fields: [{ field, fault: `Expected ${expected}.` }],
  })

const usageErrors400 = new Set(['INVALID_PHONE_NUMBER', 'MALFORMED_JSON'])
const refusals403 = new Set([
  'PLAN_LIMIT_REACHED',
  'ENDPOINT_LIMIT_REACHED',
  'DESTINATION_BLOCKED',
  'CHALLENGE_REQUIRED',
])

/**
 * Maps an HTTP status and an error code to an exit code. 403 means either that the caller lacks permission (4), or
 * that a limit or block applies, which no other login would lift (6).
 */
export function exitCodeForStatus(status: number, code: string): ExitCode {
  if (status >= 500) return exitCodes.bug
  if (status === 429) return exitCodes.rateLimited
  if (status === 404) return exitCodes.notFound
  if (status === 401) return exitCodes.notAllowed
  if (status === 403) return refusals403.has(code) ? exitCodes.refused : exitCodes.notAllowed
  // OAuth reports a wrong password, an ended session or a used setup token as 400; for a person it is "not logged in".
  if (code === 'invalid_grant') return exitCodes.notAllowed
  // As if this program had checked the value itself.
  if (usageErrors400.has(code)) return exitCodes.usage
  return exitCodes.refused
}
