import { describe, expect, test } from 'bun:test'
import { assert, constantFrom, integer, oneof, property, string } from 'fast-check'
import { cleanApplicationName } from '../../../src/delivery/text/application-name.ts'
import { localeTexts } from '../../../src/delivery/text/locales.ts'
import { renderMessage } from '../../../src/delivery/text/message.ts'
import { measureSms } from '../../../src/delivery/text/sms-segments.ts'
import { findCodes, firstStrongDirection, createMessageInput, stripDirectionMarks } from '../message-input.ts'

describe('a name', () => {
  test.each([
    ['Acme', 'Acme'],
    ['  Acme \t Shop ', 'Acme Shop'],
    ["Trader Joe's", "Trader Joe's"],
    ['Trader Joe’s', "Trader Joe's"],
    ['AT&T', 'AT&T'],
    ['Yahoo!', 'Yahoo!'],
    ['Area 51', 'Area 51'],
    ['Route 128', 'Route 128'],
    ['Smith & Sons (Leeds)', 'Smith & Sons (Leeds)'],
    ['Acme Inc.', 'Acme Inc'],
    ['St. Mary & Co. KG', 'St. Mary & Co. KG'],
    ['Ünïcödé Æther', 'Ünïcödé Æther'],
    ['中文商店', '中文商店'],
    ['می‌خواهم', 'می‌خواهم'],
    ['हिन्दी दुकान', 'हिन्दी दुकान'],
    ['Cafe\u0301', 'Café'],
  ])('%j is shown as %j', (name, shown) => {
    expect(cleanApplicationName(name)).toBe(shown)
  })

  test.each([
    ['a link', 'https://evil.example/login', 'https evil example login'],
    ['a host', 'evil.example', 'evil example'],
    ['a host in full-width dots', 'evil．example。com', 'evil example com'],
    ['an address', 'help@evil.example', 'help evil example'],
    ['a second line', 'Acme\n@evil.example #999999', 'Acme evil example'],
    ['other ends of lines', 'Acme\r\u2028\u2029\u0085Shop', 'Acme Shop'],
    ['another code', 'Acme: 999999', 'Acme'],
    ['a number that is as long as a code may be', 'Studio 2024', 'Studio'],
    ['another code in pieces', 'Acme 99-99 99', 'Acme'],
    ['another code in other digits', 'Acme ٩٩٩٩٩٩ 𝟗𝟗𝟗𝟗', 'Acme'],
    ['a phone number', 'Call +1 (415) 555-0100 now', 'Call now'],
    ['marks of direction', '\u202eAcme\u2066 Shop\u2069', 'Acme Shop'],
    ['characters of no width', 'Ac\u200bme\u200d \u200c!', 'Ac me !'],
    ['placeholders', '{code} {minutes} $& $1', 'code minutes & 1'],
    ['emoji', '🚀 Rocket 👩‍🚀', 'Rocket'],
    ['the sign of a hash', '<#> FA+9qCX9VSu', 'FA+9qCX9VSu'],
    ['nothing to read', '1234 !!! 🚀 --', ''],
  ])('cannot bring %s along', (_, name, shown) => {
    expect(cleanApplicationName(name)).toBe(shown)
  })

  test('is cut between words', () => {
    expect(cleanApplicationName('Northwind Trading Company International')).toBe('Northwind Trading Company')
    expect(cleanApplicationName('A'.repeat(80))).toBe('A'.repeat(30))
  })

  test('is not cut inside a grapheme', () => {
    const name = cleanApplicationName(`${'a'.repeat(28)}षि${'b'.repeat(20)}षि`)
    expect(name).toBe(`${'a'.repeat(28)}षि`)
    expect(cleanApplicationName(`${'a'.repeat(29)}षि`)).toBe('a'.repeat(29))
  })
})

const locales = Object.keys(localeTexts)
/** Like the unit `binary` of fast-check, which maps all 1.1 million characters back to numbers before it begins. */
const anyCharacter = integer({ min: 0, max: 0x10ffff - 0x800 }).map((index) =>
  // There are no characters in the range of the surrogates.
  String.fromCodePoint(index < 0xd800 ? index : index + 0x800),
)
const hostile = oneof(
  string({ unit: anyCharacter, maxLength: 80 }),
  string({
    unit: constantFrom(...'ab 19.:/@#{}$&\n\r\t-٩א中é€\u202e\u2066\u2069\u200d🚀'),
    maxLength: 80,
  }),
  constantFrom('999999', '\n@evil.example #999999', '{code}', '$1$&', 'https://a.b', '\u2069\u202e'),
)

test('with any name, a message is one line with one code, no link, and as many parts as without a name', () => {
  assert(
    property(hostile, constantFrom(...locales), (applicationName, locale) => {
      const { text } = renderMessage(createMessageInput({ applicationName, locale }))
      expect(findCodes(text)).toEqual(['012345'])
      expect(stripDirectionMarks(text)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e@#/]/u)
      expect(text).not.toMatch(/[\p{L}\p{Nd}]\.[\p{L}\p{Nd}]/u)
      expect((text.match(/[\u2066-\u2068]/g) ?? []).length).toBe((text.match(/\u2069/g) ?? []).length)
      expect(measureSms(text).parts).toBe(1)
    }),
    { numRuns: 2000 },
  )
})

describe('in a text from right to left', () => {
  test('the code and a foreign name are isolated if there is room', () => {
    const { text } = renderMessage(createMessageInput({ locale: 'ar', applicationName: 'Yahoo!' }))
    expect(text).toStartWith('\u2066012345\u2069 ')
    expect(text).toContain('\u2068Yahoo!\u2069')
  })

  test('a name in the same script needs no direction marks', () => {
    const { text } = renderMessage(createMessageInput({ locale: 'he', applicationName: 'חנות' }))
    expect(text).toContain('ל-חנות')
    expect(text).not.toContain('\u2068')
  })

  test('direction marks are dropped first', () => {
    const message = renderMessage(
      createMessageInput({ locale: 'fa', applicationName: 'Northwind Trading Co', minutesLeft: 10 }),
    )
    expect(message.leftOut).toEqual([])
    expect(message.text).toBe(stripDirectionMarks(message.text))
    expect(measureSms(message.text).parts).toBe(1)
  })

  test('the WebOTP line runs from left to right, without direction marks', () => {
    const { text } = renderMessage(
      createMessageInput({ locale: 'he', applicationName: 'חנות', webOtpDomain: 'a.example' }),
    )
    const [first = '', last = ''] = text.split('\n')
    expect([firstStrongDirection(first), firstStrongDirection(last)]).toEqual([
      'right to left',
      'left to right',
    ])
    expect(last).toBe('@a.example #012345')
  })
})

test('a right-to-left name does not change the direction of a left-to-right text', () => {
  for (const locale of ['tr', 'pt', 'ja', 'en']) {
    const { text } = renderMessage(createMessageInput({ locale, applicationName: 'חנות' }))
    expect(text).toContain('\u2068חנות\u2069')
    expect(firstStrongDirection(text)).toBe('left to right')
  }
})
