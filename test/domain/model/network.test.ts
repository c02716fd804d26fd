import { expect, test } from 'bun:test'
import { networkOf, isInRange, parseRange, wideNetworkOf } from '../../../src/domain/model/network.ts'

test.each([
  '',
  '1.2.3',
  '1.2.3.256',
  '1.2.3.4.5',
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

test('a wide network is an IPv4 /24 or an IPv6 /56', () => {
  expect(wideNetworkOf('192.0.2.1')).toBe(wideNetworkOf('192.0.2.254'))
  expect(wideNetworkOf('192.0.2.1')).not.toBe(wideNetworkOf('192.0.3.1'))
  expect(wideNetworkOf('2001:db8:1:200::1')).toBe(wideNetworkOf('2001:db8:1:2ff::1'))
  expect(wideNetworkOf('2001:db8:1:200::1')).not.toBe(wideNetworkOf('2001:db8:1:300::1'))
  expect(wideNetworkOf('192.0.2.1')).toBe(wideNetworkOf('::ffff:192.0.2.1'))
})
