/** What the process ends with. Few and coarse, so that a script can branch on them; the finer word is in the error. */
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

export type CliErrorExtras = {
  /** What to do next, one sentence or command a line. */
  hints?: string[]
  /** The answer of the server as it came, printed as it is with --json. */
  body?: string
  /** HTTP status, where there was an answer. */
  status?: number
  cause?: unknown
}

/** A failure that was foreseen: it has a sentence for a person, a word for a script and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: string
  readonly exitCode: ExitCode
  readonly hints: string[]
  readonly body: string | undefined
  readonly status: number | undefined

  constructor(exitCode: ExitCode, code: string, message: string, extras: CliErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.exitCode = exitCode
    this.code = code
    this.hints = extras.hints ?? []
    this.body = extras.body
    this.status = extras.status
  }
}

/** The command line cannot be carried out as it was typed; nothing was done. Exit code 2. */
export const usageError = (message: string, ...hints: string[]) =>
  new CliError(exitCodes.usage, 'USAGE', message, { hints })

const refusals403 = new Set(['PLAN_LIMIT_REACHED', 'ENDPOINT_LIMIT_REACHED', 'DESTINATION_BLOCKED'])

/** 403 is two things: "you may not" (4), and a limit or block that no other login would lift (6). */
export function exitCodeForStatus(status: number, code: string): ExitCode {
  if (status >= 500) return exitCodes.bug
  if (status === 429) return exitCodes.rateLimited
  if (status === 404) return exitCodes.notFound
  if (status === 401) return exitCodes.notAllowed
  if (status === 403) return refusals403.has(code) ? exitCodes.refused : exitCodes.notAllowed
  // A wrong password, an ended session or a used setup token is 400 in OAuth; for a person it is "not logged in".
  if (code === 'invalid_grant') return exitCodes.notAllowed
  return exitCodes.refused
}
