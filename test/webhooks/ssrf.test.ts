import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer, type AddressInfo } from 'node:net'
import { createResolver, type Resolve } from '../../src/webhooks/resolve.ts'
import { createWebhookSender, type SenderOptions } from '../../src/webhooks/sender.ts'
import { createTargetGuard } from '../../src/webhooks/targets.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'

// A server on every address of this machine, in both families, counts connections. P is its port.
let connections = 0
let port = 0
const trapServer = createServer((socket) => {
  connections++
  socket.destroy()
})
beforeAll(async () => {
  await new Promise<void>((resolve) => trapServer.listen(0, '::', resolve))
  port = (trapServer.address() as AddressInfo).port
})
afterAll(() => void trapServer.close())
beforeEach(() => {
  connections = 0
})

const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
const guard = createTargetGuard({ hosts: [], cidrs: [] })

const send = (url: string, options: Partial<SenderOptions> = {}) =>
  createWebhookSender({
    guard,
    resolve: createResolver(),
    clock: { now: () => Date.now() },
    version: '0',
    exchangeTimeoutMs: 1_000,
    ...options,
  })({ id: 'evt_1', url: url.replaceAll(':P', `:${port}`), secret, headers: {}, body: '{}' })

const hosts = [
  // Notations of 127.0.0.1, for people and for URL parsers
  ['127.0.0.1', '127.0.0.2', '127.255.255.254', '127.1', '127.0.1', '127.0.0.1.', '2130706433'],
  ['017700000001', '0177.0.0.1', '0177.1', '00000177.0.0.1', '127.00.00.01', '0x7f000001', '0x7f000001.'],
  ['0x7f.1', '0x7F.0x0.0x0.0x1', '0x7f.0.0.1', '①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1'],
  ['127%2e0%2e0%2e1', '%31%32%37.0.0.1', '0', '0.0.0.0', '0x0', '00'],
  // Metadata services of cloud providers
  ['169.254.169.254', '2852039166', '0xA9FEA9FE', '0251.0376.0251.0376', '025177524776', '169.254.43518'],
  ['[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[fd00:ec2::254]', '100.100.100.200', '192.0.0.192'],
  // Private, shared, reserved
  ['10.0.0.1', '0x0a000001', '167772161', '172.16.0.1', '192.168.0.1', '3232235521', '100.64.0.1'],
  ['198.18.0.1', '192.0.0.1', '192.88.99.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
  // IPv6, and IPv4 inside it: compatible, mapped, translated, NAT64, 6to4, Teredo
  ['[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000:0000:0000:0000:0000:0000:0001]', '[::127.0.0.1]'],
  ['[::7f00:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::FFFF:0x7f.0.0.1]', '[::ffff:0:127.0.0.1]'],
  ['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::a9fe:a9fe]', '[64:ff9b:1::7f00:1]'],
  ['[2002:7f00:1::]', '[2002:a9fe:a9fe::]', '[2001:0:7f00:1::]', '[2001::7f00:1]'],
  ['[fe80::1]', '[fe80::1%25lo]', '[fe80::1%lo]', '[::1%25lo]', '[::1%lo]', '[fd00::1]', '[fec0::1]'],
  ['[ff02::1]', '[100::1]', '[2001:db8::1]', '[3fff::1]', '[5f00::1]', '[4000::1]'],
  // Names of this machine
  ['localhost', 'LOCALHOST', 'localhost.', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'ip6-localhost'],
  // URLs with an ambiguous host
  ['user@127.0.0.1', 'example.com@127.0.0.1', 'example.com:80@127.0.0.1', '127.0.0.1\\@example.com'],
  ['127.0.0.1\\.example.com', '127.0.0.1\t', '127.0.\n0.1', ' 127.0.0.1', '127.0.0.1#@example.com'],
].flat()

const urls = [
  'http://127.0.0.1:P/',
  'HTTP://localhost:P/',
  'HTTPS://127.0.0.1:P/',
  'https:127.0.0.1:P/',
  'https:/127.0.0.1:P/',
  'https:///127.0.0.1:P/',
  'https:\\\\127.0.0.1:P/',
  '//127.0.0.1:P/',
  '127.0.0.1:P',
  'ws://127.0.0.1:P/',
  'ftp://127.0.0.1:P/',
  'gopher://127.0.0.1:P/_x',
  'unix:/var/run/docker.sock',
  'file:///etc/passwd',
  'data:text/plain,x',
  'blob:https://127.0.0.1:P/x',
  'javascript:fetch("https://127.0.0.1:P/")',
]

/** Answers of a hostile name server. */
const answers = [
  ['127.0.0.1'],
  ['127.8.8.8'],
  ['0.0.0.0'],
  ['10.0.0.1'],
  ['169.254.169.254'],
  ['192.168.1.1'],
  ['100.64.0.1'],
  ['::'],
  ['::1'],
  ['::1%lo'],
  ['fe80::1%eth0'],
  ['::ffff:127.0.0.1'],
  ['::ffff:7f00:1'],
  ['::127.0.0.1'],
  ['64:ff9b::7f00:1'],
  ['2002:7f00:1::'],
  ['2001:0:7f00:1::'],
  ['fd00:ec2::254'],
  ['127.1'],
  ['2130706433'],
  ['localhost'],
  [''],
  ['192.0.2.1', '127.0.0.1'],
  ['8.8.8.8', '127.0.0.1'],
  ['127.0.0.1', '8.8.8.8'],
  ['2606:4700::1111', '::1'],
]

test('the corpus has 139 forms, without duplicates', () => {
  const lists = [hosts, urls, answers.map(String)]
  for (const list of lists) expect(new Set(list).size).toBe(list.length)
  expect(lists.flat()).toHaveLength(139)
})

describe('no connection is made', () => {
  test.each(hosts)('to the host %p', async (host) => {
    const url = `https://${host}:P/`
    const { statusCode, error } = await send(url)
    // A name that the resolver of this machine does not know resolves to nothing.
    expect([statusCode, error === 'dns' ? 'blocked_address' : error]).toEqual([null, 'blocked_address'])
    expect(connections).toBe(0)
  })

  test.each(urls)('to the URL %p, which cannot be registered either', async (url) => {
    expect(guard.findFault(url.replaceAll(':P', `:${port}`))).toBeDefined()
    expect(await send(url)).toMatchObject({ statusCode: null, error: 'blocked_address' })
    expect(connections).toBe(0)
  })

  test.each(answers.map((addresses) => [addresses] as const))(
    'to a name that resolves to %p',
    async (addresses) => {
      const resolve: Resolve = async () =>
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      const result = await send('https://hooks.example:P/', { resolve })
      expect(result).toMatchObject({ statusCode: null, error: 'blocked_address' })
      expect(connections).toBe(0)
    },
  )

  test.each([301, 302, 303, 307, 308])('after a redirect by %i', async (status) => {
    const targets = ['https://127.0.0.1:P/', 'http://127.0.0.1:P/', '//127.0.0.1:P/', 'https://[::1]:P/']
    for (const target of targets) {
      const location = target.replaceAll(':P', `:${port}`)
      const headers = { location, refresh: `0; url=${location}` }
      const receiver = await startReceiver(() => new Response('', { status, headers }), {
        hostname: '127.0.0.1',
      })
      const allowing = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
      const result = await send(receiver.url, { guard: allowing })
      expect(result).toMatchObject({ statusCode: status, error: 'redirect' })
      expect(receiver.received).toHaveLength(1)
      await receiver.stop()
    }
    expect(connections).toBe(0)
  })
})

test('a connection is counted (control)', async () => {
  const allowing = createTargetGuard({ hosts: ['localhost'], cidrs: ['127.0.0.0/8', '::1/128'] })
  const forms = ['https://127.0.0.2:P/', 'http://127.0.0.1:P/', 'https://[::1]:P/', 'http://localhost:P/']
  for (const url of forms) {
    connections = 0
    await send(url, { guard: allowing })
    expect([url, connections]).toEqual([url, 1])
  }
})
