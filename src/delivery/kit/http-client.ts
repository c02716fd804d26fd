import http from 'node:http'
import https from 'node:https'
import { systemWorld } from '../../world/system.ts'
import type { World } from '../../world/world.ts'

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  url: string
  headers?: Record<string, string>
  body?: string
  /** Value to send as JSON, instead of `body`. */
  json?: unknown
}

export type HttpResponse = {
  kind: 'response'
  status: number
  /** Names in lower case; the values of a repeated header are joined with commas (RFC 9110 §5.2). */
  headers: Readonly<Record<string, string | undefined>>
  /** At most the first 64 KiB, as UTF-8. */
  text: string
}

/**
 * Result of an exchange. `not_sent`: no byte of the request reached the provider's application (DNS failure,
 * connection refused, invalid certificate, aborted before the connection was established). `no_response`: the
 * request was or may have been written, and no complete response arrived. The code is that of a system or TLS
 * error, or `ABORTED`; it never holds data of the request.
 */
export type HttpResult =
  HttpResponse | { kind: 'not_sent'; code: string } | { kind: 'no_response'; code: string }

/** Whether the status is 2xx. */
export const isSuccess = ({ status }: HttpResponse) => status >= 200 && status < 300

export type ProviderHttp = {
  /** Never throws and never follows redirects. There is no timeout but the signal. */
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResult>
  /** Closes idle keep-alive connections. */
  close(): void
}

type ProviderHttpOptions = {
  /** otpd version, sent as `user-agent`. */
  version?: string
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
  world?: World
}

const responseBytesMax = 64 * 1024

/**
 * Shorter than servers keep an idle connection (5 s is the shortest common value). A request on a connection
 * that the server is closing would end as `no_response`, and its message could not fail over to another
 * provider.
 */
const keepAliveMs = 4_000

/**
 * HTTP client shared by all providers, with keep-alive connections.
 *
 * It uses `node:https` instead of `fetch` because failover needs to know whether a request was sent. Bun's
 * `fetch` reports the same ECONNRESET (and the same timeout) before the TLS handshake and after the request
 * was written; here the socket's events tell the two apart. `fetch` also obeys the proxy variables of the
 * environment, and lets the environment disable certificate verification.
 */
export function createProviderHttp({
  version,
  ca,
  world = systemWorld,
}: ProviderHttpOptions = {}): ProviderHttp {
  const agentOptions = { keepAlive: true, timeout: keepAliveMs }
  const plainAgent = new http.Agent(agentOptions)
  const secureAgent = new https.Agent({
    ...agentOptions,
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
  })
  const userAgent = version === undefined ? 'otpd' : `otpd/${version}`

  return {
    request(
      { method, url, headers, json, body = json === undefined ? undefined : JSON.stringify(json) },
      signal,
    ) {
      const isSecure = /^https:/i.test(url)
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const openRequest = () =>
        world.request(url, {
          method,
          headers: {
            'user-agent': userAgent,
            'accept-encoding': 'identity',
            ...(json !== undefined && { 'content-type': 'application/json' }),
            ...headers,
            ...(bytes && { 'content-length': String(bytes.byteLength) }),
          },
          ...(isSecure ? { agent: secureAgent, rejectUnauthorized: true } : { agent: plainAgent }),
        })
      return exchange(openRequest, isSecure, bytes, signal)
    },
    close() {
      plainAgent.destroy()
      secureAgent.destroy()
    },
  }
}

function exchange(
  openRequest: () => http.ClientRequest,
  isSecure: boolean,
  body: Buffer | undefined,
  signal: AbortSignal,
): Promise<HttpResult> {
  if (signal.aborted) return Promise.resolve({ kind: 'not_sent', code: 'ABORTED' })
  const { promise, resolve } = Promise.withResolvers<HttpResult>()
  let request: http.ClientRequest
  try {
    request = openRequest()
  } catch (error) {
    // Invalid URL or header.
    return Promise.resolve({ kind: 'not_sent', code: errorCode(error) })
  }
  // True once bytes of the request may have been sent.
  let isConnected = false
  let isSettled = false

  const settle = (result: HttpResult) => {
    isSettled = true
    signal.removeEventListener('abort', cancel)
    resolve(result)
  }
  const fail = (code: string) => {
    // A late event must not destroy a connection that another request may have reused.
    if (isSettled) return
    settle({ kind: isConnected ? 'no_response' : 'not_sent', code })
    request.destroy()
  }
  const cancel = () => fail('ABORTED')
  signal.addEventListener('abort', cancel)

  request.on('socket', (socket) => {
    if (request.reusedSocket) isConnected = true
    else socket.once(isSecure ? 'secureConnect' : 'connect', () => (isConnected = true))
  })
  // Stays attached for late errors: without a listener they would crash the process.
  request.on('error', (error) => fail(errorCode(error)))
  request.on('close', () => fail('ECONNRESET'))
  request.on('response', (response) => {
    const chunks: Buffer[] = []
    let bytesRead = 0
    const finish = () =>
      settle({
        kind: 'response',
        status: response.statusCode ?? 0,
        headers: joinHeaders(response.headers),
        text: Buffer.concat(chunks).subarray(0, responseBytesMax).toString('utf8'),
      })
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytesRead += chunk.byteLength
      if (bytesRead < responseBytesMax) return
      finish()
      request.destroy()
    })
    response.on('end', finish)
    response.on('error', (error) => fail(errorCode(error)))
  })
  request.end(body)
  return promise
}

function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'ERROR'
}

const joinHeaders = (headers: http.IncomingHttpHeaders) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
