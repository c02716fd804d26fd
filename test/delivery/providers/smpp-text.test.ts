import { describe, expect, test } from 'bun:test'
import { splitForSmpp } from '../../../src/delivery/providers/smpp-text.ts'
import { measureSms } from '../../../src/delivery/text/sms-segments.ts'

const hex = (text: string) => splitForSmpp(text, 0).map(({ bytes }) => bytes.toString('hex'))

describe('a text for SMPP', () => {
  test.each([
    ['@£$_', '00010211'],
    ['Aa0 ', '41613020'],
    ['ÄÖÑÜ§äöñüà', '5b5c5d5e5f7b7c7d7e7f'],
    ['€[]{}\\~^|\f', '1b651b3c1b3e1b281b291b2f1b3d1b141b401b0a'],
    ['ΔΦΓΛΩΠΨΣΘΞ', '1012131415161718191a'],
  ])('%j is %s in the GSM alphabet', (text, expected) => {
    expect(hex(text)).toEqual([expected])
    expect(splitForSmpp(text, 0)[0]?.isUnicode).toBe(false)
  })

  test.each([
    ['Код', '041a043e0434'],
    ['ç', '00e7'],
    ['😀', 'd83dde00'],
    ['\x1b', '001b'],
  ])('%j is %s in UCS-2', (text, expected) => {
    expect(hex(text)).toEqual([expected])
    expect(splitForSmpp(text, 0)[0]?.isUnicode).toBe(true)
  })

  test.each([
    ['a'.repeat(160), [160]],
    ['a'.repeat(161), [159, 14]],
    ['a'.repeat(306), [159, 159]],
    ['a'.repeat(307), [159, 159, 7]],
    // The escape and the escaped character stay together.
    [`${'a'.repeat(152)}€${'b'.repeat(10)}`, [158, 18]],
    ['я'.repeat(70), [140]],
    ['я'.repeat(71), [140, 14]],
    [`${'я'.repeat(66)}😀${'я'.repeat(10)}`, [138, 30]],
  ])('number %# has parts of these lengths', (text, lengths) => {
    const parts = splitForSmpp(text, 0x17f)
    expect(parts.map(({ bytes }) => bytes.byteLength)).toEqual(lengths)
    expect(parts).toHaveLength(measureSms(text).parts)
    if (parts.length === 1) expect(parts[0]?.hasHeader).toBe(false)
    else {
      const headers = parts.map(({ bytes }) => bytes.subarray(0, 6).toString('hex'))
      expect(headers).toEqual(parts.map((_, index) => `0500037f0${parts.length}0${index + 1}`))
    }
  })

  test('agrees with the linter on the alphabet, for every character of the basic plane', () => {
    for (let code = 0; code < 0xd800; code++) {
      const text = String.fromCharCode(code)
      const isUnicode = measureSms(text).encoding === 'UCS-2'
      if (splitForSmpp(text, 0)[0]?.isUnicode !== isUnicode) throw new Error(`U+${code.toString(16)}`)
    }
  })
})
