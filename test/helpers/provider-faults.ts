import { describe, expect, test } from 'bun:test'
import net from 'node:net'
import type { Provider } from '../../src/delivery/kit/provider.ts'
import { sendTo, createOutgoingMessage, startProviderServer } from './provider-server.ts'
import { findUnusedPort } from './unused-port.ts'

export type FaultyServer = { url: string; port: number; stop(): void }

/** Starts a plain TCP server, for faults that an HTTP server cannot produce. */
export async function startFaultyServer(onConnection: (socket: net.Socket) => void): Promise<FaultyServer> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/**
 * Defines the tests that every HTTP provider must pass: broken connections, and statuses without a documented meaning.
 *
 * @param makeProviderAt creates the provider with its API at this URL
 * @param statusSuffices whether the operator's own service accepts by the status alone
 */
export function describeHttpFaults(
  makeProviderAt: (baseUrl: string) => Provider,
  { statusSuffices = false } = {},
) {
  describe('when the connection to the provider fails', () => {
    test('the message is refused if nothing listens', async () => {
      const provider = makeProviderAt(`http://127.0.0.1:${await findUnusedPort()}`)
      expect(await sendTo(provider)).toEqual({
        kind: 'refused',
        failure: { class: 'provider_down', permanent: false, at: 'route', providerCode: 'ECONNREFUSED' },
      })
    })

    test('the outcome is uncertain if the connection is reset after the message was read', async () => {
      const server = await startFaultyServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
      expect(await sendTo(makeProviderAt(server.url))).toMatchObject({
        kind: 'uncertain',
        failure: { class: 'uncertain', providerCode: 'ECONNRESET' },
      })
      server.stop()
    })

    test('the outcome is uncertain if the connection ends within the response', async () => {
      const server = await startFaultyServer((socket) =>
        socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n{"half')),
      )
      expect(await sendTo(makeProviderAt(server.url))).toMatchObject({ kind: 'uncertain' })
      server.stop()
    })

    test('the outcome is uncertain if no response arrives in time', async () => {
      const abort = new AbortController()
      const server = await startFaultyServer((socket) => socket.once('data', () => abort.abort()))
      expect(await makeProviderAt(server.url).send(createOutgoingMessage(), abort.signal)).toMatchObject({
        kind: 'uncertain',
        failure: { class: 'uncertain', providerCode: 'ABORTED' },
      })
      server.stop()
    })

    test.each([
      [500, 'refused', 'provider_down', 'route'],
      [503, 'refused', 'provider_down', 'route'],
      [504, 'uncertain', 'uncertain', 'route'],
      [408, 'uncertain', 'uncertain', 'route'],
      [401, 'refused', 'auth_failed', 'account'],
      [403, 'refused', 'auth_failed', 'account'],
      [402, 'refused', 'no_credit', 'account'],
      [429, 'refused', 'throttled', 'route'],
      [404, 'refused', 'unknown', 'route'],
      [302, 'refused', 'unknown', 'route'],
    ])('HTTP %i without a known body is %s: %s, at the %s', async (status, kind, failureClass, at) => {
      const server = startProviderServer()
      server.setResponse(status, '<html>no JSON here</html>', { location: `${server.url}/elsewhere` })
      const outcome = await sendTo(makeProviderAt(server.url))
      expect(outcome).toMatchObject({ kind, failure: { class: failureClass, at } })
      expect(server.calls).toHaveLength(1)
      server.stop()
    })

    test(`a success that cannot be read is ${statusSuffices ? 'accepted' : 'uncertain'}`, async () => {
      const server = startProviderServer()
      for (const body of ['', 'OK', '{}', '[]', 'null', '<html>no JSON here</html>']) {
        server.setResponse(200, body)
        expect(await sendTo(makeProviderAt(server.url))).toMatchObject(
          statusSuffices
            ? { kind: 'accepted', messageId: null }
            : { kind: 'uncertain', failure: { class: 'uncertain', providerCode: 'HTTP 200' } },
        )
      }
      server.stop()
    })

    test('the retry waits as long as Retry-After says', async () => {
      const server = startProviderServer()
      server.setResponse(429, '', { 'retry-after': '17' })
      const outcome = await sendTo(makeProviderAt(server.url))
      expect(outcome).toMatchObject({
        kind: 'refused',
        failure: { class: 'throttled', retryAfterSeconds: 17 },
      })
      server.stop()
    })
  })
}
