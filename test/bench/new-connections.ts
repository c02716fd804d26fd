import { responseLength, summarizeLoad, type Load } from './load.ts'

/**
 * Generates closed-loop load on new connections: each of the given number of loops connects, sends the request, reads the
 * response, closes, and begins again.
 *
 * @throws Error at the first response that is not 2xx, and when a connection breaks
 */
export async function runNewConnections(
  port: number,
  request: Uint8Array,
  { connections, seconds, isTls }: { connections: number; seconds: number; isTls: boolean },
): Promise<Load> {
  const latencies: number[] = []
  const startedAt = performance.now()
  const loop = async () => {
    while (performance.now() - startedAt < seconds * 1000) {
      const sentAt = performance.now()
      await callOnce(port, request, isTls)
      latencies.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
  return summarizeLoad(latencies, performance.now() - startedAt)
}

async function callOnce(port: number, request: Uint8Array, isTls: boolean): Promise<void> {
  const done = Promise.withResolvers<void>()
  let received = Buffer.alloc(0)
  const send = (socket: Bun.Socket) => void socket.write(request)
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    ...(isTls && { tls: { rejectUnauthorized: false, serverName: 'localhost' } }),
    socket: {
      open: (opened) => (isTls ? undefined : send(opened)),
      handshake: send,
      data(_, bytes) {
        received = Buffer.concat([received, bytes])
        const length = responseLength(received)
        if (length === undefined || received.length < length) return
        // "HTTP/1.1 2…"
        if (received[9] === 0x32) done.resolve()
        else done.reject(new Error(`an unsuccessful response:\n${received.toString()}`))
      },
      error: (_, error) => done.reject(error),
      close: () => done.reject(new Error('the server closed a connection')),
    },
  })
  try {
    await done.promise
  } finally {
    socket.end()
  }
}
