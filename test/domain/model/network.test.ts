import { expect, test } from 'bun:test'
import { networkOf, isInRange, parseRange, wideNetworkOf } from '../../../src/domain/model/network.ts'

test.each([
  '',
  '1.2.3',
  '1.2.3.256',
  '1.2.3.4.5',
  '010.0.0.1',
  '10.0.0.00',
  '::ffff:010.0.0.1',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  'fe80::1%eth0',
  '::1.2.3',
  'nobody',
])('%p is not an address', (text) => {
  expect(networkOf(text)).toBeUndefined()
  expect(isInRange(text, [parseRange('0.0.0.0/0'), parseRange('::/0')])).toBe(false)
})

test('a long text that is not an address is read in linear time: its square would be minutes', () => {
  expect(networkOf(`:${'.'.repeat(200_000)}x`)).toBeUndefined()
})

test.each([
  ['mapped', '::ffff:192.0.2.7', '::ffff:192.0.3.7'],
  ['6to4', '2002:c000:207:1234::1', '2002:c000:307:1234::1'],
  ['6to4, another of its networks', '2002:c000:207:ff00::1', '2002:c000:307:ff00::1'],
  ['NAT64', '64:ff9b::192.0.2.7', '64:ff9b::c000:307'],
])('an IPv6 address with an IPv4 client in it has the network of that client: %s', (_, text, other) => {
  expect(networkOf(text)).toBe(networkOf('192.0.2.7'))
  expect(wideNetworkOf(text)).toBe(wideNetworkOf('192.0.2.1'))
  expect(networkOf(other)).toBe(networkOf('192.0.3.7'))
})

test('addresses of 6to4 and NAT64 are in the ranges of the IPv4 address in them, and in those of IPv6', () => {
  const matches = (range: string, text: string) => isInRange(text, [parseRange(range)])
  for (const text of ['2002:c000:207::1', '64:ff9b::c000:207']) {
    expect(matches('192.0.2.0/24', text)).toBe(true)
    expect(matches('192.0.3.0/24', text)).toBe(false)
    expect(matches('2001:db8::/32', text)).toBe(false)
  }
  expect(matches('2002::/16', '2002:c000:207::1')).toBe(true)
  expect(matches('64:ff9b::/96', '64:ff9b::c000:207')).toBe(true)
})

test('a wide network is an IPv4 /24 or an IPv6 /56', () => {
  expect(wideNetworkOf('192.0.2.1')).toBe(wideNetworkOf('192.0.2.254'))
  expect(wideNetworkOf('192.0.2.1')).not.toBe(wideNetworkOf('192.0.3.1'))
  expect(wideNetworkOf('2001:db8:1:200::1')).toBe(wideNetworkOf('2001:db8:1:2ff::1'))
  expect(wideNetworkOf('2001:db8:1:200::1')).not.toBe(wideNetworkOf('2001:db8:1:300::1'))
  expect(wideNetworkOf('192.0.2.1')).toBe(wideNetworkOf('::ffff:192.0.2.1'))
})
