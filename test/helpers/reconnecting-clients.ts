const program = `
  const [port, path] = process.argv.slice(1)
  let responses = 0
  const call = () => {
    const socket = require('node:net').connect(Number(port), '127.0.0.1')
    socket.end('GET ' + path + ' HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
    socket.on('data', () => responses++)
    socket.on('error', () => {})
    socket.on('close', () => (responses < 300 ? call() : process.exit()))
  }
  for (let i = 0; i < 8; i++) call()
`

/**
 * Runs eight clients that connect again after each response, until they have three hundred: in another process, because the
 * server keeps this one from connecting.
 */
export async function runReconnectingClients(port: number, path: string): Promise<void> {
  await Bun.spawn([process.execPath, '-e', program, String(port), path]).exited
}
