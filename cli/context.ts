import type { Command } from 'commander'
import { createApi } from './client/api.ts'
import { usageError, type ExitCode } from './terminal/errors.ts'
import { createHttp, type Connection, type SendHttp } from './session/http.ts'
import { requireOtpd } from './session/server-identity.ts'
import { explainUnexpected } from './session/server-version.ts'
import type { Io } from './terminal/io.ts'
import type { Output } from './terminal/output.ts'
import {
  credentialsPath,
  currentServer,
  readStoredLogins,
  requireContext,
} from './session/credentials-file.ts'
import { chooseServer } from './session/server-choice.ts'
import { createTokens } from './session/tokens.ts'
import { formatDuration } from './terminal/text.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../src/shared/durations.ts'

/** Global flags, which every command takes. */
export type GlobalFlags = {
  json?: boolean
  quiet?: boolean
  color?: boolean
  input?: boolean
  yes?: boolean
  server?: string
  context?: string
  timeout?: string
}

/** Everything that one run of a command needs: I/O, flags, output and a connection to the server. */
export type Context = ReturnType<typeof createContext>

/** Runs the body of one command with a fresh context, and keeps its exit code. The body may leave out code 0. */
export type RunCommand = (
  command: Command,
  body: (context: Context) => Promise<ExitCode | void>,
) => Promise<void>

/**
 * Makes the context of one command.
 *
 * @throws usage error when --timeout or OTPD_TIMEOUT is invalid, or --server or --context empty
 */
export function createContext(io: Io, flags: GlobalFlags, output: Output) {
  // Mostly a variable of the shell that is not set. The command would work on the server of the last login instead.
  for (const flag of ['server', 'context'] as const)
    if (flags[flag] === '')
      throw usageError(`--${flag}: The value is empty.`, 'Name a server, or leave it out.')
  const timeoutMs =
    flags.timeout === undefined && io.env.OTPD_TIMEOUT
      ? durationMs(io.env.OTPD_TIMEOUT, 'OTPD_TIMEOUT')
      : durationMs(flags.timeout ?? '30s', '--timeout')
  let answered: Connection | null = null

  /**
   * Chooses the server and makes clients for it.
   *
   * @param envFileServer the server that an --env-file names
   * @param options.localServer URL of a server that runs on this machine, used instead of the default
   * @param options.waitsForLimits lists of many pages wait for the server's rate limit, with a note; on by default
   */
  function connect(
    envFileServer?: string,
    {
      waitsForLimits = true,
      localServer,
    }: { waitsForLimits?: boolean; localServer?: string | undefined } = {},
  ) {
    const hasServerVariable = Boolean(io.env.OTPD_SERVER)
    const named = flags.context || (hasServerVariable ? undefined : io.env.OTPD_CONTEXT) || undefined
    const contextName = flags.server ? undefined : named
    const hasAddress = Boolean(flags.server) || hasServerVariable || Boolean(envFileServer)
    const needsStoredLogins = contextName !== undefined || !hasAddress
    const stored = needsStoredLogins ? readStoredLogins(credentialsPath(io)) : null
    const server = chooseServer(io, {
      flag: flags.server,
      envFile: envFileServer,
      ...(stored && contextName !== undefined && { context: requireContext(stored, contextName) }),
      current: stored && currentServer(stored),
      local: localServer,
    })
    const http = requireOtpd(server, createHttp(server, timeoutMs))
    const send: SendHttp = async (request) => {
      const response = await http(request)
      answered = { server, send: http }
      return response
    }
    const tokens = createTokens(io, server, send, timeoutMs)
    const waitForLimit = async (seconds: number) => {
      output.note(`The server limits calls per minute; continuing in ${formatDuration(seconds * secondMs)}.`)
      await io.sleep(seconds * secondMs)
    }
    return {
      server,
      send,
      tokens,
      api: createApi(server, send, tokens, waitsForLimits ? waitForLimit : undefined),
    }
  }

  return {
    io,
    flags,
    output,
    timeoutMs,
    /** Whether the command may prompt: on a terminal, and never with --json or --no-input, which are for scripts. */
    mayAsk:
      io.stdinIsTerminal &&
      io.stderrIsTerminal &&
      flags.input !== false &&
      !output.json &&
      !io.env.OTPD_NO_INPUT,
    connect,
    /** The API of the chosen server, as most commands call it. Reading the property chooses the server. */
    get api() {
      return connect().api
    },
    /** Explains what a command threw, if the server that answered it is of another version. */
    explain: async (error: unknown): Promise<unknown> =>
      answered === null ? error : await explainUnexpected(error, answered),
  }
}

const unitMs: Record<string, number> = { ms: 1, s: secondMs, m: minuteMs, h: hourMs }

/**
 * Parses `500ms`, `30s`, `2m` or `1h` to milliseconds; a bare number is seconds. At most a day.
 *
 * @throws usage error naming `flag` when the text is not a duration
 */
export function durationMs(text: string, flag: string) {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  const ms = Number(number) * (unitMs[unit] ?? Number.NaN)
  if (!(ms > 0 && ms <= dayMs)) throw usageError(`${flag} must be a duration like 500ms, 30s or 2m.`)
  return ms
}
