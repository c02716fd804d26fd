import { CliError, exitCodes } from '../terminal/errors.ts'
import { codeText } from '../../src/shared/error-cause.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'
import { readUpTo } from '../../src/shared/read-up-to.ts'
import { sourceSentence, type ServerChoice } from './server-choice.ts'
import { formatDuration } from '../terminal/text.ts'
import { version } from '../version.ts'

type HttpRequest = {
  method: string
  /** Starts with a slash; appended to the server's address. */
  path: string
  headers?: Record<string, string>
  body?: string
}

export type HttpResponse = {
  status: number
  headers: Headers
  /** Raw body, for --json. */
  body: string
  /** Body parsed as JSON; undefined if it is not JSON. */
  json: unknown
  retryAfterSeconds: number | null
}

export type SendHttp = (request: HttpRequest) => Promise<HttpResponse>

/** A server, and the function that sends requests to it. */
export type Connection = { server: ServerChoice; send: SendHttp }

/**
 * Makes a function that sends one request and returns the response, whatever its status. Redirects are not followed:
 * the headers hold credentials of this origin.
 *
 * The function throws CliError SERVER_UNREACHABLE without a response in time, REDIRECTED for a redirect, and a usage error
 * for a header that HTTP cannot send.
 */
export function createHttp(server: ServerChoice, timeoutMs: number): SendHttp {
  return async ({ method, path, headers = {}, body }) => {
    requireSendable(headers)
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
      responseBody = await readBody(server, response)
    } catch (error) {
      if (error instanceof CliError) throw error
      throw unreachableError(server, error, timeoutMs)
    }
    if (response.status >= 300 && response.status < 400) throw redirectError(server, response)
    return toHttpResponse(response, responseBody)
  }
}

/** @throws usage error for a value that `fetch` refuses, as if there were no server, or that the server cannot read */
function requireSendable(headers: Record<string, string>) {
  for (const [name, value] of Object.entries(headers)) {
    // A line break at the end, as of a file, is not sent.
    if (!/[^\t -~\u0080-\u00FF]/.test(value.replaceAll(/^[\t\r\n ]+|[\t\r\n ]+$/g, ''))) continue
    const fault = 'Expected a value without line breaks and other characters that HTTP does not allow.'
    throw new CliError(exitCodes.usage, 'INVALID_ARGUMENT', `${name}: ${fault}`, {
      fields: [{ field: name, fault }],
      hints: headerHints[name] ?? [],
    })
  }
}

const applicationHints = ['Check the --env-file, or OTPD_CLIENT_ID, OTPD_CLIENT_SECRET and OTPD_API_KEY.']

/** Where the values of headers come from that no flag sets. */
const headerHints: Partial<Record<string, string[]>> = {
  authorization: ['Check OTPD_TOKEN, or log in again: otpd login'],
  'x-client-id': applicationHints,
  'x-client-secret': applicationHints,
  'x-api-key': applicationHints,
}

/** Makes the response of a call from its parts. */
export function toHttpResponse({ status, headers }: Response, body: string): HttpResponse {
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN)
  const retryAfterSeconds = Number.isFinite(retryAfter) ? retryAfter : null
  return { status, headers, body, json: parseJson(body), retryAfterSeconds }
}

/** Larger than the longest list. */
const responseBytesMax = 64 * 1024 * 1024

/** Reads a body. @throws CliError RESPONSE_TOO_LARGE, before it takes the memory of this machine */
async function readBody(server: ServerChoice, { body }: Response): Promise<string> {
  const tooLarge = () =>
    new CliError(
      exitCodes.unreachable,
      'RESPONSE_TOO_LARGE',
      `${server.url} responded with more than ${responseBytesMax / 1024 / 1024} MiB.`,
      { hints: [sourceSentence(server), 'Check that it is the address of an otpd server.'] },
    )
  return new TextDecoder().decode(await readUpTo(responseBytesMax, body, tooLarge))
}

/**
 * Makes the error for a server that cannot be reached.
 *
 * @param error rejection of `fetch`
 */
export function unreachableError(server: ServerChoice, error: unknown, timeoutMs: number) {
  const sourceHint = sourceSentence(server)
  if (error instanceof Error && error.name === 'TimeoutError')
    return new CliError(
      exitCodes.unreachable,
      'SERVER_UNREACHABLE',
      `${server.url} did not respond within ${formatDuration(timeoutMs)}.`,
      {
        hints: [sourceHint, "Wait longer with --timeout 60s, or check the server's log."],
        cause: error,
      },
    )
  const code = isRecord(error) && typeof error.code === 'string' ? error.code : ''
  if (/CERT|SELF_SIGNED|VERIFY|TLS|SSL/.test(code)) return certificateError(server, error, code)
  const otherScheme = otherSchemeUrl(server, code)
  const hints =
    otherScheme !== null
      ? [sourceHint, otherSchemeHint(otherScheme), 'Find the problem with: otpd doctor']
      : [
          sourceHint,
          'Start a server on this machine with: otpd serve',
          'Or use another server with: --server URL',
          'Find the problem with: otpd doctor',
        ]
  return new CliError(
    exitCodes.unreachable,
    'SERVER_UNREACHABLE',
    `Cannot reach ${server.url} (${connectionFailureText(code)}).`,
    { hints, cause: error },
  )
}

/** Makes the error for a server whose certificate is refused; a repetition does not help. */
function certificateError(server: ServerChoice, error: unknown, code: string) {
  const [reason, hint] = certificateFaults[code] ?? [
    `not trusted: ${code}`,
    'To trust your own certificate authority, set NODE_EXTRA_CA_CERTS=FILE to its root certificate.',
  ]
  return new CliError(
    exitCodes.unreachable,
    'CERTIFICATE_REFUSED',
    `The certificate of ${server.url} is ${reason}.`,
    { hints: [sourceSentence(server), hint], cause: error },
  )
}

/** Faults of a certificate that no authority cures: what it is, and what helps. */
const certificateFaults: Record<string, [reason: string, hint: string]> = {
  ERR_TLS_CERT_ALTNAME_INVALID: ['for another name', 'Use a name that it covers: --server https://NAME'],
  CERT_HAS_EXPIRED: ['out of date', "Renew it on the server's machine; otpd doctor there says more."],
  CERT_NOT_YET_VALID: ['not valid yet', 'Check the clock of this machine: timedatectl'],
}

/** Describes a connection failure by the error code of `fetch`. */
export const connectionFailureText = (code: string) => codeText(code) ?? (code || 'connection failed')

/** Codes of a failure after which the other protocol may succeed, by the protocol that was tried. */
const protocolFaults = { http: ['ECONNRESET', 'ConnectionClosed'], https: ['EPROTO'] }

/** Address of the server with the other protocol; null if the failure has another cause. */
function otherSchemeUrl({ url }: ServerChoice, code: string): string | null {
  const [scheme, other] = url.startsWith('https:')
    ? (['https', 'http'] as const)
    : (['http', 'https'] as const)
  return protocolFaults[scheme].includes(code) ? url.replace(scheme, other) : null
}

const otherSchemeHint = (url: string) =>
  url.startsWith('http:')
    ? `Without a scheme an address means https. If the server has no TLS: --server ${url}`
    : `The server may expect TLS: --server ${url}`

function redirectError(server: ServerChoice, response: Response) {
  const target = URL.parse(response.headers.get('location') ?? '', server.url)?.origin ?? 'another address'
  return new CliError(
    exitCodes.unreachable,
    'REDIRECTED',
    `${server.url} redirects to ${target}; otpd does not send your credentials there.`,
    {
      hints: [sourceSentence(server), `If that is the right server, use: --server ${target}`],
    },
  )
}
