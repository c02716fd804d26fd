import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer, type AddressInfo } from 'node:net'
import { createResolver, type Resolve } from '../../src/webhooks/resolve.ts'
import { createWebhookSender, type SenderOptions } from '../../src/webhooks/sender.ts'
import { createTargetGuard } from '../../src/webhooks/targets.ts'
import {
  hasOpenssl,
  makeCertificate,
  startReceiver,
  type WebhookReceiver,
} from '../helpers/webhook-receiver.ts'

const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
const strictGuard = createTargetGuard({ hosts: [], cidrs: [] })

const send = (url: string, options: Partial<SenderOptions> = {}) =>
  createWebhookSender({
    guard: strictGuard,
    resolve: createResolver(),
    clock: { now: () => Date.now() },
    version: '0',
    ...options,
  })({ id: 'evt_1', url, secret, headers: {}, body: '{}' })

// ssrf.test.ts covers the notations and names of such addresses.
describe('an internal address', () => {
  // Counts connections on every address of this machine, in both families.
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  let port = 0
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '::', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(() => void server.close())
  beforeEach(() => {
    connections = 0
  })

  test('is connected to if the operator allows it (shows that the counter works)', async () => {
    const guard = createTargetGuard({ hosts: ['localhost'], cidrs: ['127.0.0.0/8', '::1/128'] })
    const urls = [
      'https://127.0.0.2',
      'http://127.0.0.1',
      'https://[::1]',
      'http://localhost',
      'https://2130706433',
    ]
    for (const url of urls) {
      connections = 0
      await send(`${url}:${port}/`, { guard })
      expect([url, connections]).toEqual([url, 1])
    }
  })

  test('is not connected to by http, although http was allowed at registration', async () => {
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ error: 'blocked_address' })
    expect(connections).toBe(0)
  })
})

describe('a host name', () => {
  const guard = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
  let receiver: WebhookReceiver
  beforeEach(async () => {
    receiver = await startReceiver(undefined, { hostname: '0.0.0.0' })
  })
  afterEach(() => receiver.stop())

  /** Resolves differently each time, like a hostile name server (DNS rebinding). */
  const resolveInTurn = (...turns: string[][]) => {
    let lookupCount = 0
    const resolve: Resolve = async () => {
      const addresses = turns[Math.min(lookupCount++, turns.length - 1)] ?? []
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    }
    return { resolve, lookupCount: () => lookupCount }
  }

  test('is connected to at the checked address, whatever it resolves to next', async () => {
    const connected: string[] = []
    const server = createServer((socket) => {
      connected.push(socket.localAddress ?? '')
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
    const { port } = server.address() as AddressInfo
    const { resolve, lookupCount } = resolveInTurn(['127.0.0.1'], ['127.0.0.2'])
    const url = `https://rebinding.example:${port}/`
    expect((await send(url, { guard, resolve })).error).toBe('tls')
    expect(lookupCount()).toBe(1)
    expect((await send(url, { guard, resolve })).error).toBe('blocked_address')
    expect(connected).toEqual(['127.0.0.1'])
    server.close()
  })

  test.each([[['127.0.0.1', '127.0.0.2']], [['127.0.0.1', '::1']], [['127.0.0.1', 'nonsense']]])(
    'is refused if one of its addresses is: %p',
    async (addresses) => {
      const { resolve } = resolveInTurn(addresses)
      const result = await send(`https://mixed.example:${receiver.port}/`, { guard, resolve })
      expect(result.error).toBe('blocked_address')
    },
  )

  test('that the operator allows may have any address, and use http', async () => {
    const hostGuard = createTargetGuard({ hosts: ['hooks.internal'], cidrs: [] })
    const { resolve } = resolveInTurn(['127.0.0.2'])
    const result = await send(`http://hooks.internal:${receiver.port}/`, { guard: hostGuard, resolve })
    expect(result).toMatchObject({ statusCode: 200, error: null })
    expect(receiver.received[0]?.headers['host']).toBe(`hooks.internal:${receiver.port}`)
  })

  test('is never sent to a proxy that the environment names', async () => {
    const proxy = await startReceiver()
    const names = [
      'HTTP_PROXY',
      'http_proxy',
      'HTTPS_PROXY',
      'https_proxy',
      'ALL_PROXY',
      'NODE_USE_ENV_PROXY',
    ]
    const before = names.map((name) => process.env[name])
    for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : proxy.url
    try {
      const hostGuard = createTargetGuard({ hosts: ['hooks.internal'], cidrs: [] })
      const { resolve } = resolveInTurn(['127.0.0.1'])
      await send(`http://hooks.internal:${receiver.port}/`, { guard: hostGuard, resolve })
      await send(`https://hooks.internal:${receiver.port}/`, { guard: hostGuard, resolve })
    } finally {
      for (const [index, name] of names.entries()) {
        const value = before[index]
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
    expect(receiver.received).toHaveLength(1)
    expect(proxy.received).toEqual([])
    await proxy.stop()
  })
})

describe.skipIf(!hasOpenssl)('a certificate', () => {
  const name = 'hooks.example.test'
  const guard = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
  const resolve: Resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  let receiver: WebhookReceiver
  let ca = ''
  beforeAll(async () => {
    const tls = makeCertificate(name)
    ca = tls.cert
    receiver = await startReceiver(undefined, { tls })
  })
  afterAll(() => receiver.stop())
  beforeEach(() => void receiver.received.splice(0))

  test('for the name, from a trusted authority, is accepted', async () => {
    const result = await send(`https://${name}:${receiver.port}/`, { guard, resolve, ca })
    expect(result).toMatchObject({ statusCode: 200, error: null })
    expect(receiver.received[0]?.headers['host']).toBe(`${name}:${receiver.port}`)
  })

  test('from an untrusted authority is refused, whatever the environment says', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      const result = await send(`https://${name}:${receiver.port}/`, { guard, resolve })
      expect(result).toMatchObject({ statusCode: null, error: 'tls' })
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
    }
    expect(receiver.received).toEqual([])
  })

  test.each(['other.example.test', '127.0.0.1'])('for another name than %s is refused', async (host) => {
    const result = await send(`https://${host}:${receiver.port}/`, { guard, resolve, ca })
    expect(result).toMatchObject({ statusCode: null, error: 'tls' })
    expect(receiver.received).toEqual([])
  })
})

test('a URL from before a port was refused fails with the error that says so, and connects to nothing', async () => {
  const resolve = () => Promise.reject(new Error('not to be resolved'))
  for (const url of ['https://example.com:22/', 'https://example.com:6379/', 'https://8.8.8.8:5432/']) {
    expect(await send(url, { guard: createTargetGuard({ hosts: [], cidrs: [] }), resolve })).toMatchObject({
      statusCode: null,
      error: 'blocked_port',
    })
  }
})
