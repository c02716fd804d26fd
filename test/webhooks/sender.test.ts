import { afterEach, describe, expect, test } from 'bun:test'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import type { WebhookMessage } from '../../src/domain/model/webhook-delivery.ts'
import { createResolver } from '../../src/webhooks/resolve.ts'
import { createWebhookSender, type SenderOptions } from '../../src/webhooks/sender.ts'
import { createTargetGuard } from '../../src/webhooks/targets.ts'
import { createGate, startReceiver } from '../helpers/webhook-receiver.ts'

const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
const local = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
const clock = { now: () => Date.now() }

const senderWith = (options: Partial<SenderOptions> = {}) =>
  createWebhookSender({ guard: local, resolve: createResolver(), clock, version: '9.9.9', ...options })

const messageTo = (url: string, body = '{"a":1}'): WebhookMessage => ({
  id: 'evt_1',
  url,
  secret,
  headers: {},
  body,
})

const cleanups: Array<() => unknown> = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function startTestReceiver(...receiverOptions: Parameters<typeof startReceiver>) {
  const receiver = await startReceiver(...receiverOptions)
  cleanups.push(receiver.stop)
  return receiver
}

/** A bare TCP server, for behavior that an HTTP server cannot show. */
async function listen(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address() as AddressInfo
  return `127.0.0.1:${address.port}`
}

describe('an attempt', () => {
  test('with a stored header that could begin another one sends nothing', async () => {
    const receiver = await startTestReceiver()
    const headers = { 'x-key': 'a\r\nx-other: b' }
    expect(await senderWith()({ ...messageTo(receiver.url), headers })).toMatchObject({
      request: null,
      error: 'unreadable',
    })
    expect(receiver.received).toHaveLength(0)
  })

  test.each([{ secret: null }, { headers: null }, { body: null }])(
    'without %p sends nothing',
    async (lost) => {
      const receiver = await startTestReceiver()
      const result = await senderWith()({ ...messageTo(receiver.url), ...lost })
      expect(result).toMatchObject({ request: null, statusCode: null, error: 'unreadable' })
      expect(receiver.received).toHaveLength(0)
    },
  )

  test('posts the body unchanged, with a signature that the stock library verifies', async () => {
    const receiver = await startTestReceiver()
    const body = '{"text": "Grüße ✓" }'
    const result = await senderWith()(messageTo(`${receiver.url}/hook?a=1`, body))
    expect(result).toMatchObject({ statusCode: 200, error: null, body: 'ok' })
    const [received] = receiver.received
    expect(received?.path).toBe('/hook?a=1')
    expect(received?.body).toBe(body)
    expect(received?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'otpd/9.9.9',
      'webhook-id': 'evt_1',
    })
    expect(new Webhook(secret).verify(body, received?.headers ?? {})).toEqual({ text: 'Grüße ✓' })
  })

  test.each([
    [200, null],
    [204, null],
    [299, null],
    [304, 'redirect'],
    [400, 'bad_status'],
    [410, 'bad_status'],
    [500, 'bad_status'],
  ])('with the response %i has the error %p', async (status, error) => {
    const receiver = await startTestReceiver(() => new Response(null, { status }))
    expect(await senderWith()(messageTo(receiver.url))).toMatchObject({ statusCode: status, error })
  })

  test('does not follow a redirect', async () => {
    const other = await startTestReceiver()
    const receiver = await startTestReceiver(() => Response.redirect(other.url, 307))
    const result = await senderWith()(messageTo(receiver.url))
    expect(result).toMatchObject({ statusCode: 307, error: 'redirect' })
    expect(other.received).toEqual([])
  })

  test('does not decompress the response', async () => {
    const gzipBomb = Bun.gzipSync(new Uint8Array(10_000_000))
    const receiver = await startTestReceiver(
      () => new Response(gzipBomb, { headers: { 'content-encoding': 'gzip' } }),
    )
    const { statusCode, body } = await senderWith()(messageTo(receiver.url))
    expect(statusCode).toBe(200)
    expect(body?.length ?? 0).toBeLessThanOrEqual(4096)
    expect(body?.slice(0, 1)).toBe('\x1f')
  })

  test('keeps 4 KiB of an endless response and stops reading it', async () => {
    const aborted = createGate()
    const chunk = new TextEncoder().encode('x'.repeat(1024))
    const receiver = await startTestReceiver(() => {
      const endless = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await new Promise(setImmediate)
          controller.enqueue(chunk)
        },
        cancel: aborted.open,
      })
      return new Response(endless)
    })
    const result = await senderWith()(messageTo(receiver.url))
    expect(result).toMatchObject({ statusCode: 200, error: null, body: 'x'.repeat(4096) })
    await aborted.opened
  })

  test('waits for the final response after an interim one', async () => {
    const address = await listen((socket) =>
      socket.once('data', () =>
        socket.end(
          'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n',
        ),
      ),
    )
    expect(await senderWith()(messageTo(`http://${address}/`))).toMatchObject({
      statusCode: 204,
      error: null,
    })
  })

  test('is aborted if interim responses do not end', async () => {
    const aborted = createGate()
    const address = await listen((socket) => {
      socket.once('close', aborted.open)
      const goOn = () => {
        if (socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))) setImmediate(goOn)
        else socket.once('drain', goOn)
      }
      socket.once('data', goOn)
    })
    const result = await senderWith()(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'reset', body: null })
    await aborted.opened
  })

  test('drops characters that PostgreSQL cannot store', async () => {
    const receiver = await startTestReceiver(() => new Response('a\0b'))
    expect((await senderWith()(messageTo(receiver.url))).body).toBe('ab')
  })
})

describe('a receiver that is not there', () => {
  test('because it refuses connections is a connect error', async () => {
    const receiver = await startTestReceiver()
    await receiver.stop()
    const result = await senderWith()(messageTo(receiver.url))
    expect(result).toMatchObject({ statusCode: null, error: 'connect', body: null })
  })

  test('because it has no address is a dns error', async () => {
    const result = await senderWith()(messageTo('https://receiver.invalid/'))
    expect(result).toMatchObject({ statusCode: null, error: 'dns', body: null })
  })

  test('because its name never resolves is a dns error, with one lookup at a time', async () => {
    let lookupCount = 0
    const resolve = createResolver(20, () => {
      lookupCount++
      return new Promise(() => undefined)
    })
    const send = senderWith({ resolve })
    const results = await Promise.all([1, 2, 3].map(() => send(messageTo('https://slow.example/'))))
    expect(results.map(({ error }) => error)).toEqual(['dns', 'dns', 'dns'])
    expect(lookupCount).toBe(1)
  })
})

describe('a receiver that misbehaves', () => {
  test('by never responding is cut off', async () => {
    const gate = createGate()
    const receiver = await startTestReceiver(async () => {
      await gate.opened
      return new Response('late')
    })
    const result = await senderWith({ exchangeTimeoutMs: 60 })(messageTo(receiver.url))
    gate.open()
    expect(result).toMatchObject({ statusCode: null, error: 'timeout' })
    expect(result.durationMs).toBeGreaterThanOrEqual(50)
  })

  test('by dripping its headers is cut off', async () => {
    const address = await listen((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const dripTimer = setInterval(() => socket.write('x-a: b\r\n'), 5)
      socket.on('close', () => clearInterval(dripTimer))
    })
    const result = await senderWith({ exchangeTimeoutMs: 60 })(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'timeout' })
  })

  test('by dripping its body has accepted the event, and is cut off', async () => {
    const address = await listen((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n')
      const dripTimer = setInterval(() => socket.write('x'), 5)
      socket.on('close', () => clearInterval(dripTimer))
    })
    // The headers must arrive in that time too, even on a busy machine.
    const result = await senderWith({ exchangeTimeoutMs: 2_000 })(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: 200, error: null })
  })

  test('by never finishing the TLS handshake is cut off after the connect timeout', async () => {
    const address = await listen(() => undefined)
    const result = await senderWith({ connectTimeoutMs: 60 })(messageTo(`https://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'timeout' })
    expect(result.durationMs).toBeLessThan(5_000)
  })

  test('by resetting the connection is a reset', async () => {
    const address = await listen((socket) => socket.once('data', () => socket.resetAndDestroy()))
    const result = await senderWith()(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'reset' })
  })

  test('by closing the connection without a response is a reset', async () => {
    const address = await listen((socket) => socket.once('data', () => socket.end()))
    const result = await senderWith()(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'reset' })
  })

  test('by not speaking HTTP is a reset', async () => {
    const address = await listen((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    const result = await senderWith()(messageTo(`http://${address}/`))
    expect(result).toMatchObject({ statusCode: null, error: 'reset' })
  })

  test('by not speaking TLS is a tls error', async () => {
    const receiver = await startTestReceiver()
    const result = await senderWith()(messageTo(receiver.url.replace('http:', 'https:')))
    expect(result).toMatchObject({ statusCode: null, error: 'tls' })
  })

  test('by switching protocols is a reset', async () => {
    const address = await listen((socket) =>
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      ),
    )
    const result = await senderWith({ exchangeTimeoutMs: 1_000 })(messageTo(`http://${address}/`))
    expect(result.error).not.toBeNull()
  })
})

test('aborting ends the attempt at once', async () => {
  const gate = createGate()
  const receiver = await startTestReceiver(async () => {
    await gate.opened
    return new Response('late')
  })
  const abort = new AbortController()
  const attempt = senderWith()(messageTo(receiver.url), abort.signal)
  await receiver.waitForCount(1)
  abort.abort()
  const { durationMs } = await attempt
  gate.open()
  expect(durationMs).toBeLessThan(5_000)
})
