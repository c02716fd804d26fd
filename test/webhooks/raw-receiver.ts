import { createServer, type AddressInfo, type Socket } from 'node:net'

const okResponse = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

/**
 * Starts a bare TCP server, for behavior that an HTTP server cannot show.
 *
 * @param onRequest answers the request with this number on its connection, from 1; by default 200 with the body `ok`
 */
export async function startRawReceiver(
  onRequest: (socket: Socket, number: number) => unknown = (socket) => socket.write(okResponse),
  hostname = '127.0.0.1',
) {
  const sockets = new Set<Socket>()
  /** Local address of each connection so far. */
  const connected: string[] = []
  /** Requests as text. */
  const received: string[] = []
  const server = createServer((socket) => {
    sockets.add(socket)
    connected.push(socket.localAddress ?? '')
    let requests = 0
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    // The requests of these tests arrive in one piece.
    socket.on('data', (bytes) => {
      received.push(bytes.toString())
      onRequest(socket, ++requests)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, hostname, resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/`,
    sockets,
    connected,
    received,
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
