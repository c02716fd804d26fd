import { describe, expect, test } from 'bun:test'
import {
  encodeBase32,
  findTotpStep,
  totpCode,
  totpSecretBytes,
  totpStep,
  totpUri,
} from '../../../src/domain/model/totp.ts'
import { decodeBase32 } from '../../helpers/base32.ts'

/** The secret of the test vectors in RFC 4226 (appendix D) and RFC 6238 (appendix B). */
const secret = Buffer.from('12345678901234567890')

describe('codes', () => {
  test.each([
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ])('of RFC 6238, at %i seconds', (seconds, code) => {
    expect(totpCode(secret, totpStep(seconds * 1000), 8)).toBe(code)
    expect(totpCode(secret, totpStep(seconds * 1000))).toBe(code.slice(2))
  })

  test('of RFC 4226', () => {
    const codes = Array.from({ length: 10 }, (_, counter) => totpCode(secret, counter))
    expect(codes).toEqual([
      '755224',
      '287082',
      '359152',
      '969429',
      '338314',
      '254676',
      '287922',
      '162583',
      '399871',
      '520489',
    ])
  })

  test('are found one step before and after their own, and no further', () => {
    const now = 1_790_000_015_000
    const step = totpStep(now)
    for (const off of [-1, 0, 1])
      expect(findTotpStep(secret, totpCode(secret, step + off), now)).toBe(step + off)
    for (const off of [-2, 2]) expect(findTotpStep(secret, totpCode(secret, step + off), now)).toBeUndefined()
  })

  test.each(['', '12345', '1234567', '12345a', '１２３４５６'])('%p is none', (text) => {
    expect(findTotpStep(secret, text, Date.now())).toBeUndefined()
  })
})

describe('base32', () => {
  test.each([
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ])('of RFC 4648: %s', (text, encoded) => {
    expect(encodeBase32(Buffer.from(text))).toBe(encoded)
  })

  test('is what authenticator apps decode', () => {
    const bytes = crypto.getRandomValues(new Uint8Array(totpSecretBytes))
    expect(decodeBase32(encodeBase32(bytes))).toEqual(bytes)
  })
})

test('the URI names the issuer and the account, escaped', () => {
  expect(totpUri(secret, 'ada+x@example.com')).toBe(
    'otpauth://totp/otpd:ada%2Bx%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=otpd',
  )
})
