import { afterAll, describe, expect, test } from 'bun:test'
import https from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import { createProviderHttp } from '../../../src/delivery/kit/http-client.ts'
import { startFaultyServer, type FaultyServer } from '../../helpers/provider-faults.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'
import { longTimeout, startProviderServer } from '../../helpers/provider-server.ts'
import { hasOpenssl, makeCertificate } from '../../helpers/webhook-receiver.ts'

const http = createProviderHttp({ version: '1.2.3' })
const cleanups: (() => void)[] = [() => http.close()]
afterAll(() => cleanups.forEach((cleanup) => cleanup()))

const startFaulty = async (onConnection: (socket: Socket) => void): Promise<FaultyServer> => {
  const server = await startFaultyServer(onConnection)
  cleanups.push(server.stop)
  return server
}
const post = (url: string, client = http, signal = longTimeout()) =>
  client.request({ method: 'POST', url, body: 'hello' }, signal)

test('a value is sent as JSON', async () => {
  const server = startProviderServer()
  cleanups.push(server.stop)
  server.setResponse(200)
  await http.request(
    { method: 'POST', url: server.url, json: { text: 'grüße', none: undefined } },
    longTimeout(),
  )
  expect(server.takeCall()).toMatchObject({
    body: '{"text":"grüße"}',
    headers: { 'content-type': 'application/json', 'content-length': '18' },
  })
})

describe('a response', () => {
  test('has its status, its headers and its text', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    server.setResponse(202, 'grüße', { 'X-Reference': 'r1', 'content-type': 'text/plain' })
    const reply = await http.request(
      { method: 'POST', url: `${server.url}/a?b=c`, headers: { 'x-key': 'k' }, body: 'héllo' },
      longTimeout(),
    )
    expect(reply).toMatchObject({
      kind: 'response',
      status: 202,
      text: 'grüße',
      headers: { 'x-reference': 'r1' },
    })
    expect(server.takeCall()).toMatchObject({
      method: 'POST',
      path: '/a?b=c',
      body: 'héllo',
      headers: {
        'x-key': 'k',
        'user-agent': 'otpd/1.2.3',
        'content-length': '6',
        'accept-encoding': 'identity',
      },
    })
  })

  test('is read up to 64 KiB', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    server.setResponse(200, 'x'.repeat(1_000_000))
    const reply = await post(server.url)
    expect(reply.kind === 'response' && reply.text.length).toBe(65_536)
  })

  test('that redirects is not followed', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    server.setResponse(307, '', { location: `${server.url}/elsewhere` })
    expect(await post(server.url)).toMatchObject({ kind: 'response', status: 307 })
    expect(server.calls).toHaveLength(1)
  })

  test('to a GET may have an empty body', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    server.setHandler(() => new Response(null, { status: 204 }))
    expect(await http.request({ method: 'GET', url: server.url }, longTimeout())).toMatchObject({
      status: 204,
      text: '',
    })
  })
})

describe('a connection', () => {
  test('is kept for the next request', async () => {
    let connections = 0
    const server = await startFaulty((socket) => {
      connections += 1
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
    })
    for (const _ of [1, 2, 3]) expect(await post(server.url)).toMatchObject({ kind: 'response', text: 'ok' })
    expect(connections).toBe(1)
  })

  test('that hangs delays no other', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    const gate = Promise.withResolvers<void>()
    server.setHandler(async ({ path }) => {
      if (path === '/slow') await gate.promise
      return new Response('ok')
    })
    const slowRequests = Array.from({ length: 50 }, () => post(`${server.url}/slow`))
    expect(await post(`${server.url}/fast`)).toMatchObject({ kind: 'response' })
    gate.resolve()
    expect(new Set((await Promise.all(slowRequests)).map(({ kind }) => kind))).toEqual(new Set(['response']))
  })

  test('that is reused and reset before a response leaves the outcome open', async () => {
    const server = await startFaulty((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        socket.once('data', () => socket.resetAndDestroy())
      }),
    )
    expect(await post(server.url)).toMatchObject({ kind: 'response' })
    expect(await post(server.url)).toEqual({ kind: 'no_response', code: 'ECONNRESET' })
  })
})

describe('a request is certainly unsent', () => {
  test('when the connection is refused', async () => {
    expect(await post(`http://127.0.0.1:${await findUnusedPort()}`)).toEqual({
      kind: 'not_sent',
      code: 'ECONNREFUSED',
    })
  })

  test('when the name does not exist', async () => {
    const reply = await post('https://no-such-host.invalid/')
    expect(reply).toMatchObject({ kind: 'not_sent' })
  })

  test('when the TLS handshake is interrupted', async () => {
    const server = await startFaulty((socket) => socket.once('data', () => socket.resetAndDestroy()))
    expect(await post(server.url.replace('http:', 'https:'))).toEqual({
      kind: 'not_sent',
      code: 'ECONNRESET',
    })
  })

  test('when it is aborted before the TLS handshake ends', async () => {
    const abort = new AbortController()
    const server = await startFaulty((socket) => socket.once('data', () => abort.abort()))
    const reply = await post(server.url.replace('http:', 'https:'), http, abort.signal)
    expect(reply).toEqual({ kind: 'not_sent', code: 'ABORTED' })
  })

  test('when it was aborted from the start', async () => {
    const server = startProviderServer()
    cleanups.push(server.stop)
    expect(await post(server.url, http, AbortSignal.abort())).toEqual({ kind: 'not_sent', code: 'ABORTED' })
    expect(server.calls).toEqual([])
  })

  test('when its URL is invalid', async () => {
    expect(await post('https://')).toMatchObject({ kind: 'not_sent' })
  })
})

describe('a request may have been carried out', () => {
  test('when the connection is reset before the request is read', async () => {
    const server = await startFaulty((socket) => socket.resetAndDestroy())
    expect(await post(server.url)).toEqual({ kind: 'no_response', code: 'ECONNRESET' })
  })

  test('when the connection is closed after the request is read', async () => {
    const server = await startFaulty((socket) => socket.once('data', () => socket.end()))
    expect(await post(server.url)).toEqual({ kind: 'no_response', code: 'ECONNRESET' })
  })

  test('when there is no response until it is aborted', async () => {
    const abort = new AbortController()
    const server = await startFaulty((socket) => socket.once('data', () => abort.abort()))
    expect(await post(server.url, http, abort.signal)).toEqual({ kind: 'no_response', code: 'ABORTED' })
  })

  test.each([['content-length: 100\r\n\r\nabc'], ['transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n']])(
    'when the response ends within its body: %j',
    async (rest) => {
      const server = await startFaulty((socket) =>
        socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${rest}`)),
      )
      expect(await post(server.url)).toEqual({ kind: 'no_response', code: 'ECONNRESET' })
    },
  )

  test('when the response stalls within its body until it is aborted', async () => {
    const abort = new AbortController()
    const server = await startFaulty((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc', () =>
          setImmediate(() => abort.abort()),
        )
      }),
    )
    expect(await post(server.url, http, abort.signal)).toEqual({ kind: 'no_response', code: 'ABORTED' })
  })

  test('when the server does not speak HTTP', async () => {
    const server = await startFaulty((socket) => socket.once('data', () => socket.end('SSH-2.0-OpenSSH\r\n')))
    expect(await post(server.url)).toMatchObject({ kind: 'no_response' })
  })
})

describe.skipIf(!hasOpenssl)('over TLS', () => {
  const startSecure = async (name: string) => {
    const { key, cert } = makeCertificate(name)
    let requests = 0
    const server = https.createServer({ key, cert }, (_, response) => {
      requests += 1
      response.end('ok')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    return { url: `https://localhost:${port}`, cert, requests: () => requests }
  }

  test('a trusted certificate with the right name is accepted', async () => {
    const server = await startSecure('localhost')
    const trustingClient = createProviderHttp({ ca: server.cert })
    expect(await post(server.url, trustingClient)).toMatchObject({ kind: 'response', text: 'ok' })
    trustingClient.close()
  })

  test('a certificate with another name leaves the request unsent', async () => {
    const server = await startSecure('other.example.com')
    const trustingClient = createProviderHttp({ ca: server.cert })
    expect(await post(server.url, trustingClient)).toEqual({
      kind: 'not_sent',
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    expect(server.requests()).toBe(0)
    trustingClient.close()
  })

  test('an untrusted certificate leaves the request unsent, whatever the environment says', async () => {
    const server = await startSecure('localhost')
    expect(await post(server.url)).toEqual({ kind: 'not_sent', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    // Bun reads the variable only at startup.
    const program = `
      const { createProviderHttp } = await import(${JSON.stringify(join(import.meta.dir, '../../../src/delivery/kit/http-client.ts'))})
      const request = { method: 'POST', url: ${JSON.stringify(server.url)}, body: 'hello' }
      console.log(JSON.stringify(await createProviderHttp().request(request, AbortSignal.timeout(10_000))))
    `
    const child = Bun.spawn([process.execPath, '-e', program], {
      env: { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0', HTTPS_PROXY: 'http://127.0.0.1:1' },
      stderr: 'ignore',
    })
    expect(JSON.parse(await child.stdout.text())).toEqual({
      kind: 'not_sent',
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    })
    expect(server.requests()).toBe(0)
  })

  test('no byte of a request reaches a server with a wrong name', async () => {
    const { key, cert } = makeCertificate('other.example.com')
    let bytes = 0
    const server = tls.createServer({ key, cert }, (socket) => {
      socket.on('error', () => {})
      socket.on('data', (chunk) => (bytes += chunk.length))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const trustingClient = createProviderHttp({ ca: cert })
    expect(await post(`https://localhost:${port}`, trustingClient)).toMatchObject({ kind: 'not_sent' })
    // Any written bytes would arrive before the response to a later connection.
    await post(`https://localhost:${port}`, trustingClient)
    expect(bytes).toBe(0)
    trustingClient.close()
  })

  test('a response that is interrupted after the handshake leaves the outcome open', async () => {
    const { key, cert } = makeCertificate('localhost')
    const server = tls.createServer({ key, cert }, (socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const trustingClient = createProviderHttp({ ca: cert })
    expect(await post(`https://localhost:${port}`, trustingClient)).toEqual({
      kind: 'no_response',
      code: 'ECONNRESET',
    })
    trustingClient.close()
  })
})
