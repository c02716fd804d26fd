import { CliError, exitCodes } from '../terminal/errors.ts'
import { isRecord } from '../session/profile.ts'
import { sourceSentence, type ServerChoice } from '../session/server-choice.ts'
import { formatDuration } from '../terminal/text.ts'
import { version } from '../version.ts'

export type HttpRequest = {
  method: string
  /** Begins with a slash; appended to the server's address. */
  path: string
  headers?: Record<string, string>
  body?: string
}

export type HttpResponse = {
  status: number
  /** As it came, for --json. */
  body: string
  /** The body as JSON; null where it is none. */
  json: unknown
  retryAfterSeconds: number | null
}

export type SendHttp = (request: HttpRequest) => Promise<HttpResponse>

/**
 * One exchange with the server; any status is a reply. Redirects are not followed: the headers hold credentials of
 * this origin.
 *
 * Throws CliError SERVER_UNREACHABLE where there is no answer in time.
 */
export function createHttp(server: ServerChoice, timeoutMs: number): SendHttp {
  return async ({ method, path, headers, body }) => {
    let response: Response
    let responseBody: string
    try {
      response = await fetch(server.url + path, {
        method,
        headers: { accept: 'application/json', 'user-agent': `otpd/${version}`, ...headers },
        ...(body !== undefined && { body }),
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      responseBody = await response.text()
    } catch (error) {
      throw unreachableError(server, error, timeoutMs)
    }
    if (response.status >= 300 && response.status < 400) throw redirectError(server, response)
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    return {
      status: response.status,
      body: responseBody,
      json: parseJson(responseBody),
      retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** @param error what `fetch` rejected with */
export function unreachableError(server: ServerChoice, error: unknown, timeoutMs: number) {
  const sourceHint = sourceSentence(server)
  if (error instanceof Error && error.name === 'TimeoutError')
    return new CliError(
      exitCodes.unreachable,
      'SERVER_UNREACHABLE',
      `${server.url} gave no answer within ${formatDuration(timeoutMs)}.`,
      {
        hints: [sourceHint, 'Wait longer with --timeout 60s, or look at the log of the server.'],
        cause: error,
      },
    )
  const code = isRecord(error) && typeof error.code === 'string' ? error.code : ''
  const isTls = /CERT|SELF_SIGNED|VERIFY|TLS|SSL/.test(code)
  const reason = isTls ? `its certificate is not trusted: ${code}` : connectionFailureText(code)
  const hints = isTls
    ? [sourceHint, 'Trust a certificate authority of your own with NODE_EXTRA_CA_CERTS=FILE.']
    : [
        sourceHint,
        'Start a server here with: otpd serve',
        'Or name another one with: --server URL',
        'See what is wrong with: otpd doctor',
      ]
  return new CliError(
    exitCodes.unreachable,
    'SERVER_UNREACHABLE',
    `Cannot reach ${server.url} (${reason}).`,
    {
      hints,
      cause: error,
    },
  )
}

/** Why there was no connection, by the word that `fetch` has for it. */
export const connectionFailureText = (code: string) =>
  connectionFailureTexts[code] ?? (code || 'connection failed')

const connectionFailureTexts: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ConnectionRefused: 'connection refused',
  ECONNRESET: 'connection lost',
  ConnectionClosed: 'connection lost',
  ENOTFOUND: 'no such host',
  FailedToOpenSocket: 'no such host or no network',
}

function redirectError(server: ServerChoice, response: Response) {
  const target = URL.parse(response.headers.get('location') ?? '', server.url)?.origin ?? 'elsewhere'
  return new CliError(
    exitCodes.unreachable,
    'REDIRECTED',
    `${server.url} sends callers on to ${target}; otpd does not follow with your credentials.`,
    {
      hints: [sourceSentence(server), `If it is the right one, use it: --server ${target}`],
    },
  )
}
