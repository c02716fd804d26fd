import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** Answers of a PostgreSQL server that refuses every connection. */
type FakePostgresOptions = {
  /** SQLSTATE of the refusal. */
  code: string
  /** Certificate for clients that ask for TLS; without one it is declined. */
  tls?: { key: string; cert: string }
}

/** Request for TLS (PostgreSQL documentation, "Message Formats"). */
const sslRequestCode = 80_877_103

/** Starts a server that speaks as much of PostgreSQL's protocol as it needs to refuse a connection. */
export async function startFakePostgres({ code, tls }: FakePostgresOptions) {
  let connections = 0
  const refuse = (socket: Socket) => {
    const fields = ['SFATAL', 'VFATAL', `C${code}`, 'Mrefused by the test', '']
    const body = Buffer.from(`${fields.join('\0')}\0`)
    const head = Buffer.alloc(5)
    head.write('E')
    head.writeInt32BE(body.length + 4, 1)
    socket.end(Buffer.concat([head, body]))
  }
  const server = createServer((socket) => {
    connections++
    socket.on('error', () => {})
    socket.once('data', (data: Buffer) => {
      if (data.readInt32BE(4) !== sslRequestCode) return refuse(socket)
      if (!tls) {
        socket.write('N')
        return
      }
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, ...tls })
      secure.on('error', () => {})
      secure.once('data', () => refuse(secure))
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    connections: () => connections,
    stop: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}
