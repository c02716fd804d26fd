import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'

/** Faults of the other side of a connection. */
export const misbehaviours = ['refuses', 'hangs', 'endless', 'resets', 'fails'] as const
export type Misbehaviour = (typeof misbehaviours)[number]

export type MisbehavingServer = {
  url: string
  /** Counts the requests that reached it. */ calls(): number
  stop(): void
}

const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`

/** Starts a plain TCP server with a fault that an HTTP server cannot produce. */
export async function startMisbehavingServer(misbehaviour: Misbehaviour): Promise<MisbehavingServer> {
  const sockets = new Set<Socket>()
  let calls = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', () => {
      calls++
      behaviours[misbehaviour](socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const stop = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  // Closing the server leaves a port on which nothing listens.
  if (misbehaviour === 'refuses') stop()
  return { url: `http://127.0.0.1:${port}`, calls: () => calls, stop }
}

const behaviours: Record<Misbehaviour, (socket: Socket) => void> = {
  refuses: () => {},
  hangs: () => {},
  endless(socket) {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
    const flood = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', flood)
    flood()
  },
  resets: (socket) => void socket.resetAndDestroy(),
  fails: (socket) =>
    void socket.end('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'),
}

/** Returns the resident memory of a process, in MB. */
export const residentMb = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
