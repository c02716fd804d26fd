import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Io } from '../../cli/terminal/io.ts'
import { writeProfile } from '../../cli/session/profile.ts'
import { runCommandLine } from '../../cli/program.ts'

export type RunOptions = {
  env?: Record<string, string>
  /** What is piped in; without it standard input is a terminal. */
  input?: string
  /** What a person types, one answer a question. */
  answers?: (string | null)[]
  /** The width of the terminal that standard output is; without it standard output is a pipe. */
  columns?: number
}

export type RunResult = { exitCode: number; stdout: string; stderr: string; questions: string[] }

/** A person's home with its own configuration directory, and the commands that are run there, in this process. */
export function createHome() {
  const directory = mkdtempSync(join(tmpdir(), 'otpd-cli-'))
  const clock = { nowMs: Date.parse('2026-11-20T12:00:00Z') }
  const credentials = join(directory, '.config/otpd/credentials.json')

  async function otpd(
    args: string[],
    { env = {}, input, answers = [], columns }: RunOptions = {},
  ): Promise<RunResult> {
    const result: RunResult = { exitCode: -1, stdout: '', stderr: '', questions: [] }
    const remainingAnswers = [...answers]
    const io: Io = {
      env,
      workingDirectory: directory,
      homeDirectory: directory,
      stdinIsTerminal: input === undefined,
      stdoutIsTerminal: columns !== undefined,
      columns: () => columns ?? null,
      stderrIsTerminal: input === undefined,
      writeOut: (text) => void (result.stdout += text),
      writeError: (text) => void (result.stderr += text),
      readInput: async () => input ?? '',
      askLine: async (question) => {
        result.questions.push(Bun.stripANSI(question))
        return remainingAnswers.shift() ?? null
      },
      now: () => clock.nowMs,
      // Waiting moves the clock, once for all who wait beside each other. What is real of it is for what other callers do
      // meanwhile over real sockets.
      sleep: async (durationMs) => {
        const endsAt = clock.nowMs + durationMs
        await Bun.sleep(Math.min(durationMs, 20))
        clock.nowMs = Math.max(clock.nowMs, endsAt)
      },
    }
    result.exitCode = await runCommandLine(args, io)
    result.stderr = Bun.stripANSI(result.stderr)
    return result
  }

  return { directory, credentials, clock, otpd, remove: () => rmSync(directory, { recursive: true }) }
}

export type RecordedRequest = { method: string; path: string; headers: Headers; body: string }
export type RequestHandler = (request: RecordedRequest) => Response | Promise<Response>

/** A server on a free port that answers as it is told and remembers what it was asked. */
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
      return await handler(recorded)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, requests, stop: () => server.stop(true) }
}

/** The error body of the API. */
export const errorResponse = (
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
) => Response.json({ error: { code, message, traceId: 'req_1' } }, { status, headers })

const unexpectedRequest: RequestHandler = () =>
  errorResponse(500, 'INTERNAL', 'The test has not told what to answer.')

/** A home that is logged in to a server whose answers the test gives by setting `answer`. */
export function createCliFixture() {
  const home = createHome()
  const fixture = {
    home,
    respond: unexpectedRequest,
  }
  const server = createScriptedServer((recordedRequest) => fixture.respond(recordedRequest))
  const login = { email: null, idToken: 'token', idTokenExpiresAt: null, refreshToken: null }
  writeProfile(home.credentials, { current: server.url, logins: { [server.url]: login }, contexts: {} })
  return Object.assign(fixture, {
    server,
    end() {
      home.remove()
      void server.stop()
    },
  })
}

/** A list of the API with one page. */
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
