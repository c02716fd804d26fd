/** `id` is the one that the server gave the call: its x-request-id. */
export type HttpAnswer = { status: number; id: string; body: string }

export type Connection = Awaited<ReturnType<typeof openConnection>>

/** A request as it goes over the wire. */
export function encodeCall(
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
  let waiting: ((answer: HttpAnswer | undefined) => void) | undefined
  const settle = (answer: HttpAnswer | undefined) => {
    const resolve = waiting
    waiting = undefined
    resolve?.(answer)
  }
  const end = () => {
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
        const border = text.indexOf('\r\n\r\n')
        if (border < 0) return
        const head = text.slice(0, border)
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
        if (text.length < border + 4 + length) return
        const id = /\r\nx-request-id: (\w+)/i.exec(head)?.[1] ?? ''
        const answer = {
          status: Number(head.slice(9, 12)),
          id,
          body: text.slice(border + 4, border + 4 + length),
        }
        text = text.slice(border + 4 + length)
        settle(answer)
      },
      timeout: (idle) => idle.terminate(),
      close: end,
      error: end,
    },
  })

  return {
    /** The whole answer; undefined where the connection ended first, so that nobody knows what became of the call. */
    ask(call: string): Promise<HttpAnswer | undefined> {
      if (closed) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        waiting = resolve
        // Counts from here, whatever moves meanwhile.
        socket.timeout(20)
        socket.write(call)
      })
    },
    isClosed: () => closed,
    close: () => void socket.end(),
  }
}
