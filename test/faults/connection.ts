/** `id` is the one that the server gave the call: its x-request-id. */
export type HttpResponse = { status: number; id: string; body: string }

export type Connection = Awaited<ReturnType<typeof openConnection>>

/** A request as it goes over the wire. */
export function encodeRequest(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const type = body === undefined ? '' : 'content-type: application/json\r\n'
  const length = Buffer.byteLength(text)
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${type}content-length: ${length}\r\n${lines.join('')}\r\n${text}`
}

/**
 * One keep-alive connection with one call at a time, many times cheaper than `fetch`: the load and the server share
 * the machine. Nobody waits longer than some twenty seconds. Throws where nobody listens.
 */
export async function openConnection(url: string) {
  let text = ''
  let closed = false
  let pendingCall: ((response: HttpResponse | undefined) => void) | undefined
  const settle = (response: HttpResponse | undefined) => {
    const resolve = pendingCall
    pendingCall = undefined
    resolve?.(response)
  }
  const onClose = () => {
    closed = true
    settle(undefined)
  }
  const { hostname, port } = new URL(url)
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, bytes) {
        text += bytes.toString('latin1')
        const headEnd = text.indexOf('\r\n\r\n')
        if (headEnd < 0) return
        const head = text.slice(0, headEnd)
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
        if (text.length < headEnd + 4 + length) return
        const id = /\r\nx-request-id: (\w+)/i.exec(head)?.[1] ?? ''
        const response = {
          status: Number(head.slice(9, 12)),
          id,
          body: text.slice(headEnd + 4, headEnd + 4 + length),
        }
        text = text.slice(headEnd + 4 + length)
        settle(response)
      },
      timeout: (idle) => idle.terminate(),
      close: onClose,
      error: onClose,
    },
  })

  return {
    /** The whole answer; undefined where the connection ended first, so that nobody knows what became of the call. */
    send(request: string): Promise<HttpResponse | undefined> {
      if (closed) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        pendingCall = resolve
        // Counts from here, whatever moves meanwhile.
        socket.timeout(20)
        socket.write(request)
      })
    },
    isClosed: () => closed,
    close: () => void socket.end(),
  }
}
