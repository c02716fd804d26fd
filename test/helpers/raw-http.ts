export type RawResponse = { status: number; headers: Map<string, string>; body: string }

type RawExchange = {
  responses: RawResponse[]
  /** Whether the server closed the connection. */ closed: boolean
}

/**
 * Sends raw bytes to a server on this machine, including requests that an HTTP client would not send.
 *
 * @param parts sent in order, each after the previous one was written; a promise is waited for
 * @param responsesMax resolves after this many responses, or when the server closes the connection
 */
export function exchangeRaw(
  port: number,
  parts: ReadonlyArray<string | Uint8Array | Promise<unknown>>,
  responsesMax = 1,
): Promise<RawExchange> {
  const { promise, resolve, reject } = Promise.withResolvers<RawExchange>()
  let received = ''
  let done = false
  const finish = (closed: boolean) => {
    done = true
    resolve({ responses: parseResponses(received), closed })
  }
  Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      async open(socket) {
        for (const part of parts) {
          if (part instanceof Promise) {
            await part
            continue
          }
          const bytes = typeof part === 'string' ? Buffer.from(part, 'latin1') : part
          for (let sent = 0; sent < bytes.length;) {
            if (done) return
            const written = socket.write(bytes.subarray(sent))
            if (written < 0) return
            sent += written
            // Lets the socket drain and responses arrive.
            await new Promise((next) => setImmediate(next))
          }
        }
      },
      data(socket, chunk) {
        received += chunk.toString('latin1')
        if (parseResponses(received).length < responsesMax) return
        finish(false)
        socket.end()
      },
      close: () => finish(true),
      error: (_, error) => reject(error),
      connectError: (_, error) => reject(error),
    },
  }).catch(reject)
  return promise
}

/** Parses the complete responses at the beginning of a text. */
function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = []
  let rest = text
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return responses
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n')
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const length = Number(headers.get('content-length') ?? 0)
    const body = rest.slice(headEnd + 4, headEnd + 4 + length)
    if (body.length < length) return responses
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
    if (status !== 100)
      responses.push({ status, headers, body: Buffer.from(body, 'latin1').toString('utf8') })
    rest = rest.slice(headEnd + 4 + length)
  }
}
