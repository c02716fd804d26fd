import { expect, test } from 'bun:test'
import { createClientAddressReader, createClientReader } from '../../src/http/client.ts'

const clientAddress = createClientAddressReader(['10.0.0.0/8', '127.0.0.1', '2001:db8:ffff::/48'])
const from = (peer: string | undefined, forwarded?: string) =>
  clientAddress(
    new Request(
      'http://otpd.test/',
      forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } },
    ),
    peer,
  )

test.each<[string, string | undefined, string | undefined, string]>([
  [
    'an untrusted peer is the client, and its X-Forwarded-For is ignored',
    '192.0.2.1',
    '198.51.100.1',
    '192.0.2.1',
  ],
  [
    'behind a trusted proxy the client is the address that the proxy added',
    '10.1.2.3',
    '198.51.100.1',
    '198.51.100.1',
  ],
  [
    'addresses further left may be forged and are ignored',
    '10.1.2.3',
    '203.0.113.1, 198.51.100.1',
    '198.51.100.1',
  ],
  ['several trusted proxies are skipped', '127.0.0.1', '198.51.100.1, 10.9.9.9', '198.51.100.1'],
  ['a proxy that forwards nothing is the client', '10.1.2.3', undefined, '10.1.2.3'],
  ['an invalid address ends the search', '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
  ['a port that the proxy added is left out', '10.1.2.3', '203.0.113.1, 198.51.100.1:49152', '198.51.100.1'],
  ['an IPv6 address in brackets', '10.1.2.3', '[2001:db8:9::1]', '2001:db8:9::1'],
  [
    'an IPv6 address in brackets with a port',
    '10.1.2.3',
    '[2001:db8:9::1]:49152, 10.9.9.9:80',
    '2001:db8:9::1',
  ],
  ['an IPv6 address without brackets has no port', '10.1.2.3', '2001:db8:9::1:443', '2001:db8:9::1:443'],
  ['a port without an address', '10.1.2.3', '198.51.100.1, :443', '10.1.2.3'],
  ['an IPv4-mapped peer is IPv4', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['an IPv6 rule never trusts an IPv4 address', '192.0.2.1', '198.51.100.1', '192.0.2.1'],
  ['behind a trusted IPv6 proxy', '2001:db8:ffff::1', '2001:db8:9::1', '2001:db8:9::1'],
  ['without a socket there is no address', undefined, '198.51.100.1', ''],
])('%s', (_name, peer, forwarded, expected) => {
  expect(from(peer, forwarded)).toBe(expected)
})

test.each([
  ['2001:db8:1:2:3:4:5:6', '2001:DB8:0001:2::6'],
  ['2001:db8::6', '2001:db8:0:0:1::'],
  ['fe80::1%eth0', 'fe80::2'],
  ['192.0.2.1', '::ffff:192.0.2.1'],
])('%s and %s are in one network', (one, other) => {
  const networkFor = (peer: string) =>
    createClientReader(() => peer)({
      request: new Request('http://otpd.test/'),
      server: null,
      set: { headers: {} },
    }).network
  expect(networkFor(one)).toBe(networkFor(other))
  expect(networkFor(one)).not.toBe(networkFor('203.0.113.9'))
})
