import { expect, test } from 'bun:test'
import { clientKey, isInRange, parseRange } from '../../../src/domain/guard/address.ts'

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
  expect(clientKey(text)).toBeUndefined()
  expect(isInRange(text, [parseRange('0.0.0.0/0'), parseRange('::/0')])).toBe(false)
})
