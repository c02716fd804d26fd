import { createServer } from 'node:net'

/**
 * Finds a port on loopback on which nothing listens. It is below those that systems give to connections and to port 0, so
 * that no other test takes it before it is used.
 */
export async function findUnusedPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (await canListen(port)) return port
  }
}

function canListen(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
