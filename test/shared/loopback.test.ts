import { describe, expect, test } from 'bun:test'
import { isLoopback, isLoopbackAddress, loopbackHostPattern } from '../../src/shared/loopback.ts'

const loopback = [
  'localhost',
  'LOCALHOST',
  'Localhost',
  '127.0.0.1',
  '127.0.0.0',
  '127.0.0.53',
  '127.1.2.3',
  '127.255.255.255',
]

const foreign = [
  '',
  // Names that only look like it. A resolver may send them anywhere.
  'localhost.',
  'app.localhost',
  'localhost.localdomain',
  'localhost.example',
  'mylocalhost',
  '127.0.0.1.example',
  '127.0.0.1.',
  'a127.0.0.1',
  'ⓛocalhost',
  'localhoſt',
  // Addresses in other forms, which URL parsers and resolvers read differently.
  '127',
  '127.1',
  '127.0.1',
  '127.0.0.1.1',
  '127.0.0.256',
  '127.0.0.999',
  '127.0.0.01',
  '127.0.0.',
  '127.0.0.-1',
  '0127.0.0.1',
  '0x7f.0.0.1',
  '0x7f000001',
  '2130706433',
  '\uff11\uff12\uff17.0.0.1',
  '127。0。0。1',
  '[127.0.0.1]',
  // Other machines, and wildcard addresses.
  '0',
  '0.0.0.0',
  '::',
  '[::]',
  '126.255.255.255',
  '128.0.0.1',
  '1.127.0.0',
  '10.0.0.1',
  '169.254.169.254',
  '[::2]',
  '[::1:1]',
  '[1::1]',
  '[fe80::1]',
  // IPv4-mapped, IPv4-compatible, NAT64 and scoped IPv6 addresses.
  '::ffff:127.0.0.1',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[::1%25lo]',
  // More than a host.
  'localhost:80',
  '127.0.0.1:80',
  '[::1]:80',
  '[::1',
  '::1]',
  'localhost/',
  'localhost@example.com',
  'user@localhost',
  'http://localhost',
  ' localhost',
  'localhost ',
  'localhost\n',
  'localhost\n.example',
  'localhost\0',
  'localhost#.example',
  'localhost\\.example',
  'localhost%00.example',
]

test.each([...loopback, '::1', '[::1]'])('takes %j for this machine', (host) => {
  expect(isLoopback(host)).toBe(true)
})

test.each(foreign)('does not take %j for this machine', (host) => {
  expect(isLoopback(host)).toBe(false)
})

describe('the pattern for URLs', () => {
  const pattern = new RegExp(`^${loopbackHostPattern}$`)

  test.each(['localhost', '127.0.0.1', '127.255.255.255', '[::1]'])('matches %s', (host) => {
    expect(host).toMatch(pattern)
  })

  test.each([...foreign, '::1', 'LOCALHOST'])('does not match %j', (host) => {
    expect(host).not.toMatch(pattern)
  })
})

test.each([
  ['http://127.1/', true],
  ['http://2130706433/', true],
  ['http://0x7f.1/', true],
  ['http://0177.0.0.1/', true],
  ['http://LOCALHOST:80/', true],
  ['http://[0:0:0:0:0:0:0:1]/', true],
  ['http://127。0。0。1/', true],
  ['http://localhost\\@example.com/', true],
  ['http://localhost@example.com/', false],
  ['http://localhost:80@example.com/', false],
  ['http://example.com#@localhost/', false],
  ['http://example.com/@localhost', false],
  ['http://0/', false],
  ['http://localhost./', false],
  ['http://127.0.0.1./', true],
  ['http://[::ffff:127.0.0.1]/', false],
])('judges the host that %s leads to, whatever its spelling: %p', (url, expected) => {
  expect(isLoopback(new URL(url).hostname)).toBe(expected)
})

test.each([
  ['localhost', true],
  ['localhost:2775', true],
  ['127.0.0.1:2775', true],
  ['[::1]', true],
  ['[::1]:2775', true],
  ['http://localhost', true],
  ['HTTPS://LOCALHOST/path', true],
  ['http://127.0.0.1:8080/{{to}}?text={{text}}', true],
  ['http://[::1]/', true],
  ['', false],
  ['::1', false],
  ['[::1]example', false],
  ['http://example.com/?next=http://localhost/', false],
  ['http://localhost.example/', false],
  ['http://127.0.0.1.example/', false],
  ['http://localhost?text={{text}}', true],
  ['http://localhost@example.com/', false],
  ['http://localhost:80@example.com/', false],
  ['localhost:password@example.com', false],
  ['http://localhost\\@example.com/', false],
  ['ftp://localhost/', false],
  ['this is localhost', false],
  ['localhost is here', false],
])('takes the text %j for an address of this machine: %p', (setting, expected) => {
  expect(isLoopbackAddress(setting)).toBe(expected)
})
