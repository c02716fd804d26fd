import { createHmac, hkdfSync } from 'node:crypto'
import { describe, expect, test } from 'bun:test'
import { assert, integer, property, string } from 'fast-check'
import { deriveKeys } from '../../helpers/keys.ts'
import { createSealing, isSealedWith, type UnreadableValue } from '../../../src/store/engine/sealing.ts'
import { seal } from '../../../src/domain/model/sealed.ts'

const random = (bytes: Uint8Array) => crypto.getRandomValues(bytes)
const id = 'otp_01m814vf27e008000000000000'
const otherId = 'otp_01m814vf27e008000000000001'
const phoneColumn = 'otp_requests.phone'
const ipColumn = 'otp_requests.client_ip'
const sealKey = Buffer.from(Array.from({ length: 32 }, (_, i) => i))

const derived = deriveKeys(new Uint8Array(32))
const keysOf = (version: number, byVersion: Record<number, Buffer>) => ({
  webhookHeader: derived.webhookHeader,
  seals: { version, find: (wanted: number) => byVersion[wanted] },
})

function createSubject(keys = keysOf(1, { 1: sealKey })) {
  const unreadable: UnreadableValue[] = []
  return { ...createSealing(keys, random, (value) => void unreadable.push(value)), unreadable }
}

describe('a sealed phone number', () => {
  // Values that any other implementation of the composition must give.
  test.each([
    ['+14155550100', 'p1.mMdGUSUZrt8Gkhu7R1BVXQ'],
    ['+9991234567890', 'p1.rlMHPJi2IlUupiMlhoactg'],
    ['+999999999999999', 'p1.ydlFhfD_2uRun5uqgRioNg'],
  ])('%s has its test vector', (phone, vector) => {
    const { sealPhone, openPhone } = createSubject()
    expect(sealPhone(phoneColumn, id, phone)).toBe(vector)
    expect(openPhone(phoneColumn, id, vector)).toBe(phone)
  })

  test('is what the definition says, computed with other functions', () => {
    const derive = (purpose: string) =>
      Buffer.from(hkdfSync('sha256', sealKey, '', `otpd seals ${purpose} v1`, 32))
    const half = (key: Buffer, end: Buffer) =>
      createHmac('sha256', key).update(`${phoneColumn} ${id}`).update(end).digest().subarray(0, 8)
    const { sealPhone } = createSubject()
    assert(
      property(integer({ min: 1, max: 999_999_999_999_999 }), (digits) => {
        const number = Buffer.alloc(8)
        number.writeBigUInt64BE(BigInt(digits))
        const tag = half(derive('phone tag'), number)
        const stream = half(derive('phone stream'), tag)
        const ciphertext = number.map((byte, i) => byte ^ (stream[i] ?? 0))
        const expected = `p1.${Buffer.concat([tag, ciphertext]).toString('base64url')}`
        expect<string>(sealPhone(phoneColumn, id, `+${digits}`)).toBe(expected)
      }),
    )
  })

  test('is the same in the same place, and different in any other', () => {
    const { sealPhone } = createSubject()
    const phone = '+14155550100'
    expect(sealPhone(phoneColumn, id, phone)).toBe(sealPhone(phoneColumn, id, phone))
    const values = [
      sealPhone(phoneColumn, id, phone),
      sealPhone(phoneColumn, otherId, phone),
      sealPhone('phones.phone', id, phone),
      sealPhone(phoneColumn, id, '+14155550101'),
    ]
    const halves = values.flatMap((value) => [value.slice(3, 13), value.slice(15)])
    expect(new Set(halves).size).toBe(8)
  })

  test('opens in its own place alone, and with no bit changed', () => {
    const { sealPhone, openPhone, unreadable } = createSubject()
    const stored = sealPhone(phoneColumn, id, '+14155550100')
    expect(openPhone(phoneColumn, otherId, stored)).toBe('unreadable')
    expect(openPhone('phones.phone', id, stored)).toBe('unreadable')
    for (const changed of changeEachBit(stored))
      expect(openPhone(phoneColumn, id, changed)).toBe('unreadable')
    expect(openPhone(phoneColumn, id, stored.slice(0, -1))).toBe('unreadable')
    expect(openPhone(phoneColumn, id, `${stored}A`)).toBe('unreadable')
    expect(openPhone(phoneColumn, id, stored.replace('p1', 'p2'))).toBe('unreadable')
    expect(unreadable[0]).toEqual({ column: phoneColumn, row: otherId })
    expect(openPhone(phoneColumn, id, stored)).toBe('+14155550100')
  })

  test.each(['anon_itcFwQuG8wnIP3', 'erased', 'unreadable', null])('leaves %s alone', (value) => {
    const { sealPhone, openPhone } = createSubject()
    expect(sealPhone(phoneColumn, id, value)).toBe(value)
    expect(openPhone(phoneColumn, id, value)).toBe(value)
  })

  test('may be a plain number until the database is sealed', () => {
    expect(createSubject().openPhone(phoneColumn, id, '+14155550100')).toBe('+14155550100')
  })

  test('must be in E.164, which its 64 bits hold', () => {
    expect(() => createSubject().sealPhone(phoneColumn, id, '+1234567890123456')).toThrow(TypeError)
  })
})

describe('a sealed text', () => {
  test('opens in its own place alone, and with no bit changed', () => {
    const { sealText, openText, unreadable } = createSubject()
    const stored = sealText(ipColumn, id, '203.0.113.7')
    expect(stored).toMatch(/^s1\.[\w-]+$/)
    expect(openText(ipColumn, id, stored)).toBe('203.0.113.7')
    expect(openText(ipColumn, otherId, stored)).toBeNull()
    expect(openText('otp_requests.metadata', id, stored)).toBeNull()
    for (const changed of changeEachBit(stored)) expect(openText(ipColumn, id, changed)).toBeNull()
    expect(openText(ipColumn, id, 's1.')).toBeNull()
    expect(unreadable.length).toBeGreaterThan(3)
  })

  test('keeps any text, and never looks the same twice', () => {
    const { sealText, openText } = createSubject()
    assert(
      property(string({ unit: 'grapheme' }), (text) => {
        const stored = sealText(ipColumn, id, text)
        expect(openText(ipColumn, id, stored)).toBe(text)
        expect(sealText(ipColumn, id, text)).not.toBe(stored)
      }),
    )
  })

  test.each(['203.0.113.7', '2001:db8::1', '{"a":"s1."}', 'whsec_0123', null])(
    '%s of 0.1.0 is returned as it is',
    (value) => expect(createSubject().openText(ipColumn, id, value)).toBe(value),
  )

  test('of 0.1.0, a header value, opens with the key of its day', () => {
    const { openHeaderValue, unreadable } = createSubject()
    const stored = seal(derived.webhookHeader, 'whk_1 x-key', 'secret', random)
    expect(openHeaderValue('whk_1', 'x-key', stored)).toBe('secret')
    expect(openHeaderValue('whk_1', 'x-other', stored)).toBeNull()
    expect(unreadable).toEqual([{ column: 'webhook_endpoints.headers', row: 'whk_1' }])
  })
})

test('values of older versions open, and new ones get the newest version', () => {
  const secondKey = Buffer.alloc(32, 2)
  const before = createSubject()
  const phone = before.sealPhone(phoneColumn, id, '+14155550100')
  const text = before.sealText(ipColumn, id, '203.0.113.7')
  const after = createSubject(keysOf(12, { 1: sealKey, 12: secondKey }))
  expect(after.openPhone(phoneColumn, id, phone)).toBe('+14155550100')
  expect(after.openText(ipColumn, id, text)).toBe('203.0.113.7')
  const newPhone = after.sealPhone(phoneColumn, id, '+14155550100')
  expect([isSealedWith(12, newPhone), isSealedWith(1, newPhone), isSealedWith(1, phone)]).toEqual([
    true,
    false,
    true,
  ])
  expect(isSealedWith(1, 'p12.abc')).toBe(false)
  expect(before.openPhone(phoneColumn, id, newPhone)).toBe('unreadable')
  // A key that the server has, under the wrong version.
  expect(after.openPhone(phoneColumn, id, phone.replace('p1', 'p12'))).toBe('unreadable')
})

/** Lists the value with each bit of each character behind the prefix changed, as far as the result is base64url. */
function changeEachBit(stored: string): string[] {
  const changed: string[] = []
  for (let i = stored.indexOf('.') + 1; i < stored.length; i++) {
    for (let bit = 0; bit < 7; bit++) {
      const letter = String.fromCharCode(stored.charCodeAt(i) ^ (1 << bit))
      if (/[\w-]/.test(letter)) changed.push(stored.slice(0, i) + letter + stored.slice(i + 1))
    }
  }
  return changed
}
