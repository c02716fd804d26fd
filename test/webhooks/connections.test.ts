import { afterEach, describe, expect, test } from 'bun:test'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { createConnections } from '../../src/webhooks/connections.ts'
import type { Resolve } from '../../src/webhooks/resolve.ts'
import { createWebhookSender, type SenderOptions } from '../../src/webhooks/sender.ts'
import { createTargetGuard } from '../../src/webhooks/targets.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'
import { startRawReceiver } from './raw-receiver.ts'
import { waitUntil } from './worker-fixture.ts'

const cleanups: Array<() => unknown> = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function startReceiver(...options: Parameters<typeof startRawReceiver>) {
  const receiver = await startRawReceiver(...options)
  cleanups.push(receiver.stop)
  return receiver
}

const guard = createTargetGuard({ hosts: ['hooks.internal'], cidrs: ['127.0.0.0/8'] })

/** Creates a sender of `{}` to a URL, with a pool of its own. */
function createTestSender(
  poolOptions: Parameters<typeof createConnections>[0] = {},
  options: Partial<SenderOptions> = {},
) {
  const connections = createConnections(poolOptions)
  cleanups.push(connections.closeIdle)
  const resolve: Resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const clock = { now: () => Date.now() }
  const sender = createWebhookSender({ guard, resolve, clock, version: '0', connections, ...options })
  const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
  return {
    connections,
    send: (url: string, abort?: AbortSignal) =>
      sender({ id: 'evt_1', url, secret, headers: {}, body: '{}' }, abort),
  }
}

const okResponse = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const delivered = { statusCode: 200, error: null, body: 'ok' }

describe('a connection', () => {
  test('carries one request after the other, to the same origin and address', async () => {
    const receiver = await startReceiver()
    const { send } = createTestSender()
    for (let i = 0; i < 5; i++) expect(await send(`${receiver.url}${i}`)).toMatchObject(delivered)
    expect(receiver.connected).toHaveLength(1)
    expect(receiver.received.map((text) => text.split(' ')[1])).toEqual(['/0', '/1', '/2', '/3', '/4'])
  })

  test('carries no second request before the first is answered', async () => {
    const waiting: Array<() => void> = []
    const receiver = await startReceiver((socket) => waiting.push(() => socket.write(okResponse)))
    const { send } = createTestSender()
    const sent = [send(receiver.url), send(receiver.url), send(receiver.url)]
    await waitUntil(() => waiting.length === 3)
    expect(receiver.connected).toHaveLength(3)
    for (const answer of waiting) answer()
    expect(await Promise.all(sent)).toMatchObject([delivered, delivered, delivered])
  })

  test.each([
    ['its response says so', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
    ['it speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    ['more follows its response', `${okResponse}${okResponse}`],
  ])('is used once if %s', async (_reason, response) => {
    const receiver = await startReceiver((socket) => socket.write(response))
    const { send, connections } = createTestSender()
    for (let i = 0; i < 2; i++) expect(await send(receiver.url)).toMatchObject(delivered)
    expect(receiver.connected).toHaveLength(2)
    expect(connections.idleCount()).toBe(0)
  })

  test('is closed if the receiver writes without a request', async () => {
    const receiver = await startReceiver()
    const { send, connections } = createTestSender()
    await send(receiver.url)
    for (const socket of receiver.sockets) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged')
    await waitUntil(() => connections.idleCount() === 0)
    expect(await send(receiver.url)).toMatchObject(delivered)
    expect(receiver.connected).toHaveLength(2)
  })

  test('is not kept after an abort or a timeout', async () => {
    const receiver = await startReceiver(() => undefined)
    const { send, connections } = createTestSender({}, { exchangeTimeoutMs: 30 })
    expect(await send(receiver.url)).toMatchObject({ error: 'timeout' })
    const abort = new AbortController()
    const aborted = send(receiver.url, abort.signal)
    abort.abort()
    expect(await aborted).toMatchObject({ error: 'timeout' })
    expect(connections.idleCount()).toBe(0)
    await waitUntil(() => receiver.sockets.size === 0)
  })
})

describe('a connection that the receiver closed while it was idle', () => {
  test.each([
    ['closes', 'end'],
    ['resets', 'resetAndDestroy'],
  ] as const)('is replaced once if it %s at the next request', async (_how, method) => {
    const receiver = await startReceiver((socket, number) =>
      number === 1 ? socket.write(okResponse) : socket[method](),
    )
    const { send } = createTestSender()
    await send(receiver.url)
    expect(await send(receiver.url)).toMatchObject(delivered)
    // The request arrived twice: delivery is at least once.
    expect(receiver.received).toHaveLength(3)
    expect(receiver.connected).toHaveLength(2)
  })

  test('is replaced by a new one, not by another idle one', async () => {
    const receiver = await startReceiver((socket, number) =>
      number === 1 ? socket.write(okResponse) : socket.end(),
    )
    const { send, connections } = createTestSender()
    await Promise.all([send(receiver.url), send(receiver.url)])
    expect(connections.idleCount()).toBe(2)
    expect(await send(receiver.url)).toMatchObject(delivered)
    expect(receiver.received).toHaveLength(4)
  })

  test('is not replaced once a byte of the response has arrived', async () => {
    const receiver = await startReceiver((socket, number) =>
      number === 1 ? socket.write(okResponse) : socket.end('H'),
    )
    const { send } = createTestSender()
    await send(receiver.url)
    expect(await send(receiver.url)).toMatchObject({ statusCode: null, error: 'reset' })
    expect(receiver.received).toHaveLength(2)
  })

  test('is not replaced a second time', async () => {
    let isBroken = false
    const receiver = await startReceiver((socket) => (isBroken ? socket.end() : socket.write(okResponse)))
    const { send } = createTestSender()
    await send(receiver.url)
    isBroken = true
    expect(await send(receiver.url)).toMatchObject({ statusCode: null, error: 'reset' })
    expect(receiver.received).toHaveLength(3)
  })
})

describe('a response that ends early', () => {
  test.each([
    ['in its head', 'HTTP/1.1 200 OK\r\ncontent-', { statusCode: null, error: 'reset', body: null }],
    ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', { ...delivered, body: 'half' }],
    [
      'in a chunk',
      'HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf',
      { error: 'bad_status', body: 'half' },
    ],
    [
      'in a malformed chunk',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nz\r\n',
      { ...delivered, body: '' },
    ],
    ['because it has no length', 'HTTP/1.1 200 OK\r\n\r\nall', { ...delivered, body: 'all' }],
  ])('%s', async (_where, response, expected) => {
    const receiver = await startReceiver((socket) => socket.end(response))
    const { send, connections } = createTestSender()
    expect(await send(receiver.url)).toMatchObject(expected)
    expect(receiver.received).toHaveLength(1)
    expect(connections.idleCount()).toBe(0)
  })

  test('with a flood of headers is a reset', async () => {
    const receiver = await startReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const flood = () => {
        while (!socket.destroyed && socket.write(`x: ${'y'.repeat(1_000)}\r\n`));
      }
      socket.on('drain', flood)
      flood()
    })
    const { send } = createTestSender()
    expect(await send(receiver.url)).toMatchObject({ statusCode: null, error: 'reset' })
    await waitUntil(() => receiver.sockets.size === 0)
  })
})

describe('idle connections', () => {
  test('are bounded in all: the oldest are closed', async () => {
    const receivers = await Promise.all(Array.from({ length: 100 }, () => startReceiver()))
    const { send, connections } = createTestSender({ idleMax: 20 })
    for (const { url } of receivers) await send(url)
    expect(connections.idleCount()).toBe(20)
    const openAt = () => receivers.flatMap(({ sockets }, index) => (sockets.size > 0 ? [index] : []))
    await waitUntil(() => openAt().length === 20)
    expect(openAt()[0]).toBe(80)
  })

  test('are closed after a while', async () => {
    const receiver = await startReceiver()
    const { send, connections } = createTestSender({ idleMs: 20 })
    await Promise.all([send(receiver.url), send(receiver.url)])
    expect(connections.idleCount()).toBe(2)
    await waitUntil(() => receiver.sockets.size === 0)
    expect(connections.idleCount()).toBe(0)
  })
})

describe('a connection is never used for another address', () => {
  test('after the DNS of the name changed', async () => {
    const receiver = await startReceiver(undefined, '0.0.0.0')
    let address = '127.0.0.1'
    const { send } = createTestSender({}, { resolve: async () => [{ address, family: 4 }] })
    const url = `http://hooks.internal:${receiver.port}/`
    await send(url)
    address = '127.0.0.2'
    expect(await send(url)).toMatchObject(delivered)
    expect(await send(url)).toMatchObject(delivered)
    address = '127.0.0.1'
    await send(url)
    expect(receiver.connected).toEqual(['127.0.0.1', '127.0.0.2'])
  })

  test('after the address was forbidden', async () => {
    const receiver = await startReceiver(undefined, '0.0.0.0')
    const addresses = ['127.0.0.1']
    const allowingOne = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
    const { send } = createTestSender(
      {},
      { guard: allowingOne, resolve: async () => addresses.map((address) => ({ address, family: 4 })) },
    )
    const url = `https://rebinding.example:${receiver.port}/`
    await send(url)
    addresses.push('127.0.0.2')
    expect(await send(url)).toMatchObject({ error: 'blocked_address' })
    expect(receiver.connected).toHaveLength(1)
  })

  test('or for another host name on the same address', async () => {
    const receiver = await startReceiver()
    const twoHosts = createTargetGuard({ hosts: ['a.internal', 'b.internal'], cidrs: [] })
    const { send } = createTestSender({}, { guard: twoHosts })
    for (const host of ['a', 'b', 'a', 'b']) await send(`http://${host}.internal:${receiver.port}/`)
    expect(receiver.connected).toHaveLength(2)
    expect(receiver.received.map((text) => /host: (\w)/.exec(text)?.[1])).toEqual(['a', 'b', 'a', 'b'])
  })
})

describe.skipIf(!hasOpenssl)('a TLS connection', () => {
  const name = 'hooks.example.test'

  async function startTlsReceiver(response = okResponse) {
    const certificate = makeCertificate(name)
    const handshakes: boolean[] = []
    const sockets = new Set<TLSSocket>()
    const server = createTlsServer(certificate, (socket) => {
      sockets.add(socket)
      handshakes.push(socket.isSessionReused())
      socket.on('error', () => undefined)
      socket.on('data', () => socket.write(response))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return { ca: certificate.cert, port: (server.address() as AddressInfo).port, handshakes }
  }

  test('is reused for its name, and another name of the same address is refused', async () => {
    const { ca, port, handshakes } = await startTlsReceiver()
    const { send } = createTestSender({ ca })
    for (let i = 0; i < 3; i++) expect(await send(`https://${name}:${port}/`)).toMatchObject(delivered)
    expect(handshakes).toEqual([false])
    for (const other of ['other.example.test', '127.0.0.1'])
      expect(await send(`https://${other}:${port}/`)).toMatchObject({ statusCode: null, error: 'tls' })
    expect(await send(`https://${name}:${port}/`)).toMatchObject(delivered)
  })

  test('resumes the session of the last one', async () => {
    const { ca, port, handshakes } = await startTlsReceiver(
      'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok',
    )
    const { send } = createTestSender({ ca })
    for (let i = 0; i < 3; i++) expect(await send(`https://${name}:${port}/`)).toMatchObject(delivered)
    expect(handshakes).toEqual([false, true, true])
    expect(await send(`https://other.example.test:${port}/`)).toMatchObject({ error: 'tls' })
  })
})
