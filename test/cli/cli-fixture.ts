import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeStoredLogins } from '../../cli/session/credentials-file.ts'
import { captureCommand, type RunResult as CommandResult } from '../helpers/run-command.ts'

export type RunOptions = {
  env?: Record<string, string>
  /** Piped standard input; without it standard input is a terminal. */
  input?: string
  /** Answers typed on the terminal, one per prompt. */
  answers?: (string | null)[]
  /** Width of the terminal on standard output; without it standard output is a pipe. */
  columns?: number
}

export type RunResult = CommandResult & { questions: string[] }

/** Makes a home directory with its own configuration, and a function that runs commands there, in this process. */
export function createHome() {
  const directory = mkdtempSync(join(tmpdir(), 'otpd-cli-'))
  const clock = { nowMs: Date.parse('2026-11-20T12:00:00Z') }
  const credentials = join(directory, '.config/otpd/credentials.json')

  async function otpd(
    args: string[],
    { env = {}, input, answers = [], columns }: RunOptions = {},
  ): Promise<RunResult> {
    const questions: string[] = []
    const remainingAnswers = [...answers]
    const result = await captureCommand(args, {
      env,
      workingDirectory: directory,
      homeDirectory: directory,
      stdinIsTerminal: input === undefined,
      stdoutIsTerminal: columns !== undefined,
      columns: () => columns ?? null,
      stderrIsTerminal: input === undefined,
      readInput: async () => input ?? '',
      askLine: async (question) => {
        questions.push(Bun.stripANSI(question))
        return remainingAnswers.shift() ?? null
      },
      now: () => clock.nowMs,
      // Moves the fake clock, once for concurrent sleepers. The short real sleep lets other callers make progress over
      // real sockets.
      sleep: async (durationMs) => {
        const endsAt = clock.nowMs + durationMs
        await Bun.sleep(Math.min(durationMs, 20))
        clock.nowMs = Math.max(clock.nowMs, endsAt)
      },
    })
    return { ...result, stderr: Bun.stripANSI(result.stderr), questions }
  }

  return { directory, credentials, clock, otpd, remove: () => rmSync(directory, { recursive: true }) }
}

const requestId = 'req_01arz3ndektsv4rrffq69g5fav'

export type RecordedRequest = { method: string; path: string; headers: Headers; body: string }
export type RequestHandler = (request: RecordedRequest) => Response | Promise<Response>

/**
 * Starts a server on a free port that responds with `handler` and records its requests. Responses without a request id get one,
 * like those of otpd.
 */
export function createScriptedServer(handler: RequestHandler) {
  const requests: RecordedRequest[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const recorded = {
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        body: await request.text(),
      }
      requests.push(recorded)
      const response = await handler(recorded)
      if (!response.headers.has('x-request-id')) response.headers.set('x-request-id', requestId)
      return response
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, requests, stop: () => server.stop(true) }
}

/** Makes an error response of the API. */
export const errorResponse = (
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
) => Response.json({ error: { code, message, traceId: 'req_1' } }, { status, headers })

const unexpectedRequest: RequestHandler = () =>
  errorResponse(500, 'INTERNAL', 'The test has set no response.')

/** Makes a home that is logged in to a server; the test sets its responses by assigning `respond`. */
export function createCliFixture() {
  const home = createHome()
  const fixture = {
    home,
    respond: unexpectedRequest,
  }
  const server = createScriptedServer((recordedRequest) => fixture.respond(recordedRequest))
  const login = { email: null, idToken: 'token', idTokenExpiresAt: null, refreshToken: null }
  writeStoredLogins(home.credentials, { current: server.url, logins: { [server.url]: login }, contexts: {} })
  return Object.assign(fixture, {
    server,
    end() {
      home.remove()
      void server.stop()
    },
  })
}

/** Makes a list response of the API with one page. */
export const pageResponse = (...data: unknown[]) =>
  Response.json({ data, pagination: { limit: 50, nextCursor: null } })

export const sampleProject = (overrides: Record<string, unknown> = {}) => ({
  id: 'prj_01arz3ndektsv4rrffq69g5fav',
  name: 'storefront',
  description: null,
  applicationCount: 0,
  createdAt: '2026-11-20T11:00:00.000Z',
  updatedAt: '2026-11-20T11:00:00.000Z',
  ...overrides,
})
