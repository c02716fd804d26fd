import http from 'node:http'
import https from 'node:https'

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PUT'
  url: string
  headers?: Record<string, string>
  body?: string
}

export type HttpResponse = {
  kind: 'response'
  status: number
  /** Names in lower case; of one that came twice the values are joined as RFC 9110 §5.2 says. */
  headers: Readonly<Record<string, string | undefined>>
  /** At most the first 64 KiB, as UTF-8. */
  text: string
}

/**
 * What became of a request. `unsent`: certainly not a byte of it reached the provider's application (no such name,
 * refused, certificate wrong, given up before the connection stood). `unanswered`: it was written or might have been,
 * and no whole answer came. The code is a system error's or TLS's own, or `ABORTED`; it never holds a value.
 */
export type HttpResult =
  HttpResponse | { kind: 'not_sent'; code: string } | { kind: 'no_response'; code: string }

export type ProviderHttp = {
  /** Never throws and never follows a redirect. The signal alone ends the waiting. */
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResult>
  /** Drops the connections that are kept for the next request. */
  close(): void
}

export type ProviderHttpOptions = {
  /** Of otpd, for `user-agent`. */
  version?: string
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
}

const responseBytesMax = 64 * 1024

/**
 * Shorter than any provider keeps an idle connection (5 s is the least that is common). A request on a connection that
 * the other side is just closing would be `unanswered`, and its message could not be given to another provider.
 */
const keepAliveMs = 4_000

/**
 * The way of every provider to its HTTP interface; connections are kept, so that the second message saves the TLS
 * handshake.
 *
 * `node:https` and not `fetch`: Bun's `fetch` reports a connection that was reset before the TLS handshake ended and
 * one that was reset after the request was written by the same ECONNRESET, and a time-out in either phase alike. Here
 * the socket tells when it was ready to be written to. `fetch` also obeys the proxy variables of the environment, and
 * lets the environment turn the check of certificates off.
 */
export function createProviderHttp({ version, ca }: ProviderHttpOptions = {}): ProviderHttp {
  const agentOptions = { keepAlive: true, timeout: keepAliveMs }
  const plainAgent = new http.Agent(agentOptions)
  const secureAgent = new https.Agent({
    ...agentOptions,
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
  })
  const userAgent = version === undefined ? 'otpd' : `otpd/${version}`

  return {
    request({ method, url, headers, body }, signal) {
      const isSecure = /^https:/i.test(url)
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const openRequest = () =>
        (isSecure ? https : http).request(url, {
          method,
          headers: {
            'user-agent': userAgent,
            'accept-encoding': 'identity',
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
    // An address or a header that cannot be written.
    return Promise.resolve({ kind: 'not_sent', code: errorCode(error) })
  }
  // From when on bytes of the request may be on their way.
  let isConnected = false
  let isSettled = false

  const settle = (result: HttpResult) => {
    isSettled = true
    signal.removeEventListener('abort', cancel)
    resolve(result)
  }
  const fail = (code: string) => {
    // What comes late must not end a connection that another request may have by now.
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
  // Also for errors that come late: without a listener they would end the process.
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
