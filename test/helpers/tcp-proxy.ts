import { connect, createServer, type Socket } from 'node:net'

/**
 * Starts a proxy for TCP connections. While it swallows, it takes the bytes of both sides and drops them, and tells neither
 * side when the other one ends its connection: a network that was cut.
 */
export async function startTcpProxy(targetPort: number) {
  let swallows = false
  const sockets = new Set<Socket>()

  function join(from: Socket, to: Socket) {
    sockets.add(from)
    let isBroken = false
    from.on('data', (bytes) => {
      // A connection that has lost bytes passes no later ones.
      isBroken ||= swallows
      if (!isBroken) to.write(bytes)
    })
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      if (!swallows) to.destroy()
    })
  }

  const listener = createServer((client) => {
    const server = connect(targetPort, '127.0.0.1')
    for (const socket of [client, server]) socket.setNoDelay(true)
    join(client, server)
    join(server, client)
  })
  await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()

  return {
    port: typeof address === 'object' && address ? address.port : 0,
    swallow(on: boolean) {
      swallows = on
    },
    stop() {
      swallows = false
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
