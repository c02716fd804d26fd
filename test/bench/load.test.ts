import { afterEach, describe, expect, test } from 'bun:test'
import { responseLength, encodeRequest, runLoad } from './load.ts'

const loadSettings = { connections: 4, seconds: 60 }
let server: Bun.TCPSocketListener | undefined
afterEach(() => server?.stop(true))

/** Starts a server that answers each request with the given pieces, each in a separate write. */
function serveResponse(...pieces: string[]): { port: number; requests: string[] } {
  const requests: string[] = []
  server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async data(socket, bytes) {
        requests.push(bytes.toString())
        for (const piece of pieces) {
          socket.write(piece)
          socket.flush()
          await new Promise((resolve) => setImmediate(resolve))
        }
      },
    },
  })
  return { port: server.port, requests }
}

const requests = Array.from({ length: 20 }, (_, index) => encodeRequest(`/${index}`, {}, { index }))
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'

describe('the load', () => {
  test('sends every request once and counts complete responses', async () => {
    const { port, requests: received } = serveResponse(`${ok}hello`)
    const load = await runLoad(port, requests, loadSettings)
    expect(load.responses).toBe(20)
    expect(new Set(received.map((text) => text.split(' ')[1])).size).toBe(20)
    expect(load.p99Ms).toBeGreaterThanOrEqual(load.p50Ms)
  })

  test('reassembles responses that arrive in pieces', async () => {
    const { port } = serveResponse('HTTP/1.1 200 OK\r\nContent', '-Length: 5\r\n\r\nhe', 'll', 'o')
    expect((await runLoad(port, requests, loadSettings)).responses).toBe(20)
  })

  test('accepts a head whose body arrives later', async () => {
    const { port } = serveResponse(ok, 'hello')
    expect((await runLoad(port, requests, loadSettings)).responses).toBe(20)
  })

  test('ends when the time is over and waits for each request in progress', async () => {
    const { port } = serveResponse(`${ok}hello`)
    const load = await runLoad(port, requests, { connections: 4, seconds: 0, repeat: true })
    expect(load.responses).toBeGreaterThanOrEqual(4)
  })

  test.each(['429 Too Many Requests', '302 Found', '500 Internal Server Error'])(
    'fails at a %s',
    (status) => {
      const { port } = serveResponse(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`)
      return expect(runLoad(port, requests, loadSettings)).rejects.toThrow(status)
    },
  )

  test('fails when a connection breaks', () => {
    server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => socket.terminate() } })
    return expect(runLoad(server.port, requests, loadSettings)).rejects.toThrow('closed a connection')
  })

  test('refuses an empty list of requests', () => {
    return expect(runLoad(1, [], loadSettings)).rejects.toThrow('nothing to send')
  })
})

test('a request without a body is a GET', () => {
  const text = new TextDecoder().decode(encodeRequest('/v1/logs', { authorization: 'Bearer x' }))
  expect(text).toBe('GET /v1/logs HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer x\r\n\r\n')
})

test('the length of a body is counted in bytes', () => {
  const text = new TextDecoder().decode(encodeRequest('/', {}, 'é'))
  expect(text).toContain('content-length: 4\r\n')
})

test('refuses a response of unknown length', () => {
  expect(() => responseLength(Buffer.from('HTTP/1.1 200 OK\r\nx-length: 5\r\n\r\n'))).toThrow(
    'unknown length',
  )
})
