import { expect, test } from 'bun:test'
import { hmac } from '../../../src/domain/model/keys.ts'

test('a keyed hash is the HMAC-SHA256 of RFC 4231, in parts as well as in one piece', () => {
  const key = new Uint8Array(20).fill(0x0b)
  const expected = 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'
  expect(hmac(key).update('Hi There').digest('hex')).toBe(expected)
  expect(hmac(key).update('Hi').update(Buffer.from(' There')).digest('hex')).toBe(expected)
})
