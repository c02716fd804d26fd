import { describe, expect, test } from 'bun:test'
import { makeVirtualPhone, parsePhone, tryParsePhone } from '../../../src/domain/model/phone.ts'
import { canonicalPhone, phoneSpellings } from '../../../src/shared/spellings.ts'

describe('a phone number', () => {
  test.each([
    ['+14155552671', '+14155552671', 'US'],
    ['+1 (415) 555-2671', '+14155552671', 'US'],
    ['+1.415.555.2671', '+14155552671', 'US'],
    ['0014155552671', '+14155552671', 'US'],
    ['00 49 151 23456789', '+4915123456789', 'DE'],
    ['(+49) 151-2345.6789', '+4915123456789', 'DE'],
    ['+49 (0) 151 23456789', '+4915123456789', 'DE'],
    ['+447400123456', '+447400123456', 'GB'],
    ['+97150123 4567', '+971501234567', 'AE'],
    // Reserved for examples.
    ['+447700900123', '+447700900123', 'GB'],
    ['+441632960123', '+441632960123', 'GB'],
    ['+33639981234', '+33639981234', 'FR'],
    ['+12005550123', '+12005550123', 'US'],
    // Mexico, as mobile numbers were written before 2019.
    ['+52 1 55 1234 5678', '+525512345678', 'MX'],
    // Not assigned, but of a possible length.
    ['+4712345678', '+4712345678', 'NO'],
    ['+12005552671', '+12005552671', null],
    ['+800 1234 5678', '+80012345678', null],
  ])('%s is %s', (text, phone, country) => {
    expect(tryParsePhone(text)).toMatchObject({ phone, country, isVirtual: false })
  })

  test.each([
    ['nothing', ''],
    ['no country code', '4155552671'],
    ['a plus alone', '+'],
    ['two pluses', '++14155552671'],
    ['a zero as country code', '+04155552671'],
    ['letters', '+1415555CALL'],
    ['too few digits', '+141555'],
    ['a length that the country does not have', '+1415555'],
    ['more than 15 digits', '+4915123456789012'],
    ['an extension', '+14155552671;ext=5'],
    ['a slash', '+1/4155552671'],
    ['a tab', '+1\t4155552671'],
    ['a line break at its end', '+14155552671\n'],
    ['a zero byte', '+14155552671\0'],
    ['digits of another script', '+１４１５５５５２６７１'],
    ['an unknown country code', '+2101234567'],
    ['the former 1 of Mexico before no area code', '+5211234567890'],
    ['too few digits after 999', '+999123456789'],
    ['too many digits after 999', '+99912345678901'],
  ])('with %s is none', (_, text) => {
    expect(tryParsePhone(text)).toBeUndefined()
    expect(() => parsePhone(text)).toThrow(expect.objectContaining({ code: 'INVALID_PHONE_NUMBER' }))
  })

  test('never appears in the refusal', () => {
    const text = '+1415555CALL'
    try {
      parsePhone(text)
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify(error) + String(error)).not.toContain('CALL')
    }
  })
})

describe('a number that costs more than a mobile phone', () => {
  test.each([
    ['+19005550123', 'premium'],
    ['+19000000000', 'premium'],
    ['+33899123456', 'premium'],
    ['+979123456789', 'premium'],
    ['+491801234567', 'sharedCost'],
    ['+80812345678', 'sharedCost'],
    ['+447012345678', 'personal'],
    ['+878101234567890', 'personal'],
    ['+870301234567', 'satellite'],
    ['+881612345678', 'satellite'],
    ['+882161234567', 'international'],
    ['+883510012345', 'international'],
  ])('%s is %s', (phone, numberType) => {
    expect(tryParsePhone(phone)).toMatchObject({ phone, numberType })
  })

  test.each([
    ['+493012345678', 'fixedLine'],
    ['+442079460123', 'fixedLine'],
    ['+80012345678', 'tollFree'],
    ['+18005550123', 'tollFree'],
    ['+12125550123', null],
  ])('%s cannot read an SMS: %p', (phone, numberType) => {
    expect(tryParsePhone(phone)).toMatchObject({ phone, numberType })
  })

  test.each(['+8801712345678', '+886912345678', '+447400123456', '+447624123456', '+14155552671'])(
    'is not %s',
    (phone) => expect(tryParsePhone(phone)?.numberType).toBeNull(),
  )
})

describe('a virtual number', () => {
  test('is +999 and ten digits, without a country', () => {
    expect(tryParsePhone('+999 0123456789')).toEqual({
      phone: '+9990123456789',
      country: null,
      isVirtual: true,
      numberType: null,
    })
  })

  test('is generated with ten digits, zeros kept', () => {
    expect(makeVirtualPhone((bytes) => bytes.fill(0).set([42], 7))).toBe('+9990000000042')
    expect(tryParsePhone(makeVirtualPhone((bytes) => bytes.fill(255)))?.isVirtual).toBe(true)
    expect(tryParsePhone(makeVirtualPhone((bytes) => bytes.fill(0)))?.isVirtual).toBe(true)
  })
})

describe('the spellings of a subscriber', () => {
  test.each([
    ['Argentina, mobile', '+5491123456789', '+541123456789'],
    ['Argentina, mobile in the provinces', '+5492901123456', '+542901123456'],
    ['Mexico, mobile before 2019', '+5215512345678', '+525512345678'],
    ['Brazil, ninth digit', '+5511987654321', '+551187654321'],
  ])('%s: %s and %s are one subscriber', (_, long, short) => {
    expect([canonicalPhone(long), canonicalPhone(short)]).toEqual([short, short])
    expect(phoneSpellings(long)).toEqual([short, long])
    expect(tryParsePhone(short)?.numberType).toBeNull()
  })

  test.each([
    ['a Brazilian fixed line, whose number with a 9 is a mobile of another subscriber', '+5511934567890'],
    [
      'a Brazilian trunked radio with eight digits, and the mobile with a 9 before the same',
      '+5511977654321',
    ],
    ['a Mexican number whose area code is not one', '+5211234567890'],
    ['an Argentine number that is too short', '+549112345678'],
    ['an area code of Brazil that does not exist', '+5510987654321'],
    ['a number of the United States', '+14155552671'],
    ['a virtual number', '+9990000000001'],
    ['a pseudonym', 'anon_abcdefghijklmn'],
    ['an erased number', 'erased'],
  ])('%s stays as it is', (_, phone) => {
    expect(canonicalPhone(phone)).toBe(phone)
    expect(phoneSpellings(phone)).toEqual([phone])
  })
})
