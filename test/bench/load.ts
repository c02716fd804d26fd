import { percentile } from './stats.ts'

export type Load = {
  responses: number
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
}

/** Encodes an HTTP request in advance, so that the measurement excludes it. Without a body it is a GET. */
export function encodeRequest(path: string, headers: Record<string, string>, body?: unknown): Uint8Array {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  if (body === undefined) return encode(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join('')}\r\n`)
  const text = JSON.stringify(body)
  return encode(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n${lines.join('')}\r\n${text}`,
  )
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Returns the length of a response in bytes, from its head. Undefined while the head is incomplete. */
export function responseLength(start: Buffer): number | undefined {
  const headEnd = start.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = start.toString('latin1', 0, headEnd)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`a response of unknown length: ${head}`)
  return headEnd + 4 + Number(length)
}

type Connection = { sentAt: number; head: Buffer | undefined; bytesLeft: number }

/**
 * Generates closed-loop load over keep-alive connections: each connection sends the next request as soon as its response
 * is complete, until the time is over or no request is left. Requests in progress at the end are awaited and count.
 *
 * @param port of one server, or of several, to which the connections go in turn
 * @param options.repeat starts over when all requests were sent
 * @param options.isTls does not check the certificate
 * @throws Error at the first response that is not 2xx, and when a connection breaks
 */
export async function runLoad(
  port: number | readonly number[],
  requests: readonly Uint8Array[],
  options: { connections: number; seconds: number; repeat?: boolean; isTls?: boolean },
): Promise<Load> {
  if (requests.length === 0) throw new Error('nothing to send')
  const ports = typeof port === 'number' ? [port] : port
  const latencies: number[] = []
  const done = Promise.withResolvers<void>()
  let next = 0
  let openConnections = options.connections
  let startedAt = 0
  let endedAt = 0

  const sendNext = (socket: Bun.Socket<Connection>, now: number) => {
    if (next === requests.length && options.repeat) next = 0
    const request = requests[next]
    if (request === undefined || now - startedAt > options.seconds * 1000) {
      if (--openConnections === 0) done.resolve()
      return
    }
    next++
    socket.data.sentAt = now
    socket.data.bytesLeft = 0
    // A partial write would send half a request. These requests fit any socket buffer.
    if (socket.write(request) !== request.length) done.reject(new Error('a request was cut'))
  }

  const finish = (socket: Bun.Socket<Connection>) => {
    endedAt = performance.now()
    latencies.push(endedAt - socket.data.sentAt)
    sendNext(socket, endedAt)
  }

  const receive = (socket: Bun.Socket<Connection>, bytes: Buffer) => {
    const state = socket.data
    if (state.bytesLeft > 0) {
      state.bytesLeft -= bytes.length
      if (state.bytesLeft === 0) finish(socket)
      return
    }
    const start = state.head === undefined ? bytes : Buffer.concat([state.head, bytes])
    const length = responseLength(start)
    state.head = length === undefined ? Buffer.from(start) : undefined
    if (length === undefined) return
    // "HTTP/1.1 2…"
    if (start[9] !== 0x32) throw new Error(`an unsuccessful response:\n${start.toString()}`)
    state.bytesLeft = length - start.length
    if (state.bytesLeft === 0) finish(socket)
  }

  const handshakes = Array.from({ length: options.isTls ? options.connections : 0 }, () =>
    Promise.withResolvers<void>(),
  )
  const sockets = await Promise.all(
    Array.from({ length: options.connections }, (_, index) =>
      Bun.connect<Connection>({
        hostname: '127.0.0.1',
        ...(options.isTls && { tls: { rejectUnauthorized: false, serverName: 'localhost' } }),
        port: ports[index % ports.length] ?? 0,
        data: { sentAt: 0, head: undefined, bytesLeft: 0 },
        socket: {
          handshake: () => handshakes[index]?.resolve(),
          data(socket, bytes) {
            try {
              receive(socket, bytes)
            } catch (error) {
              done.reject(error)
            }
          },
          error: (_, error) => done.reject(error),
          close: () => done.reject(new Error('the server closed a connection')),
        },
      }),
    ),
  )
  await Promise.all(handshakes.map(({ promise }) => promise))
  startedAt = performance.now()
  for (const socket of sockets) sendNext(socket, startedAt)
  try {
    await done.promise
  } finally {
    for (const socket of sockets) socket.end()
  }
  return summarizeLoad(latencies, endedAt - startedAt)
}

export function summarizeLoad(latencies: number[], durationMs: number): Load {
  latencies.sort((a, b) => a - b)
  return {
    responses: latencies.length,
    requestsPerSecond: latencies.length / (durationMs / 1000),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  }
}
