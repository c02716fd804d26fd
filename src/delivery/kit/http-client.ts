import http from 'node:http'
import https from 'node:https'

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PUT'
  url: string
  headers?: Record<string, string>
  body?: string
}

export type HttpAnswer = {
  kind: 'answer'
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
export type HttpReply = HttpAnswer | { kind: 'unsent'; code: string } | { kind: 'unanswered'; code: string }

export type ProviderHttp = {
  /** Never throws and never follows a redirect. The signal alone ends the waiting. */
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
  /** Drops the connections that are kept for the next request. */
  close(): void
}

export type ProviderHttpOptions = {
  /** Of otpd, for `user-agent`. */
  version?: string
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
}

const bytesMax = 64 * 1024

/**
 * Shorter than any provider keeps an idle connection (5 s is the least that is common). A request on a connection that
 * the other side is just closing would be `unanswered`, and its message could not be given to another provider.
 */
const idleMs = 4_000

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
  const kept = { keepAlive: true, timeout: idleMs }
  const plainAgent = new http.Agent(kept)
  const secureAgent = new https.Agent({ ...kept, rejectUnauthorized: true, ...(ca !== undefined && { ca }) })
  const userAgent = version === undefined ? 'otpd' : `otpd/${version}`

  return {
    request({ method, url, headers, body }, signal) {
      const secure = /^https:/i.test(url)
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const open = () =>
        (secure ? https : http).request(url, {
          method,
          headers: {
            'user-agent': userAgent,
            'accept-encoding': 'identity',
            ...headers,
            ...(bytes && { 'content-length': String(bytes.byteLength) }),
          },
          ...(secure ? { agent: secureAgent, rejectUnauthorized: true } : { agent: plainAgent }),
        })
      return exchange(open, secure, bytes, signal)
    },
    close() {
      plainAgent.destroy()
      secureAgent.destroy()
    },
  }
}

function exchange(
  open: () => http.ClientRequest,
  secure: boolean,
  body: Buffer | undefined,
  signal: AbortSignal,
): Promise<HttpReply> {
  if (signal.aborted) return Promise.resolve({ kind: 'unsent', code: 'ABORTED' })
  const { promise, resolve } = Promise.withResolvers<HttpReply>()
  let request: http.ClientRequest
  try {
    request = open()
  } catch (error) {
    // An address or a header that cannot be written.
    return Promise.resolve({ kind: 'unsent', code: codeOf(error) })
  }
  // From when on bytes of the request may be on their way.
  let ready = false
  let settled = false

  const settle = (reply: HttpReply) => {
    settled = true
    signal.removeEventListener('abort', cancel)
    resolve(reply)
  }
  const fail = (code: string) => {
    // What comes late must not end a connection that another request may have by now.
    if (settled) return
    settle({ kind: ready ? 'unanswered' : 'unsent', code })
    request.destroy()
  }
  const cancel = () => fail('ABORTED')
  signal.addEventListener('abort', cancel)

  request.on('socket', (socket) => {
    if (request.reusedSocket) ready = true
    else socket.once(secure ? 'secureConnect' : 'connect', () => (ready = true))
  })
  // Also for errors that come late: without a listener they would end the process.
  request.on('error', (error) => fail(codeOf(error)))
  request.on('close', () => fail('ECONNRESET'))
  request.on('response', (response) => {
    const chunks: Buffer[] = []
    let bytesRead = 0
    const answer = () =>
      settle({
        kind: 'answer',
        status: response.statusCode ?? 0,
        headers: joinHeaders(response.headers),
        text: Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8'),
      })
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytesRead += chunk.byteLength
      if (bytesRead < bytesMax) return
      answer()
      request.destroy()
    })
    response.on('end', answer)
    response.on('error', (error) => fail(codeOf(error)))
  })
  request.end(body)
  return promise
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'ERROR'
}

const joinHeaders = (headers: http.IncomingHttpHeaders) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
