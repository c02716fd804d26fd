import { describe, expect, test } from 'bun:test'
import { assert, constantFrom, property, string } from 'fast-check'
import { measureSms } from '../../../src/delivery/text/sms-segments.ts'

/** The basic alphabet as in the table of 3GPP TS 23.038 §6.2.1, row by row; 0x1B is the escape. */
const basicRows = [
  '@Δ 0¡P¿p',
  '£_!1AQaq',
  '$Φ"2BRbr',
  '¥Γ#3CScs',
  'èΛ¤4DTdt',
  'éΩ%5EUeu',
  'ùΠ&6FVfv',
  "ìΨ'7GWgw",
  'òΣ(8HXhx',
  'ÇΘ)9IYiy',
  '\nΞ*:JZjz',
  'Ø+;KÄkä',
  'øÆ,<LÖlö',
  '\ræ-=MÑmñ',
  'Åß.>NÜnü',
  'åÉ/?O§oà',
]

const describeSize = (text: string): (string | number)[] => {
  const { encoding, units, parts, unitsMax } = measureSms(text)
  return [encoding, units, parts, unitsMax]
}

describe('the GSM alphabet', () => {
  test('has the 127 characters of the standard', () => {
    const characters = [...basicRows.join('')]
    expect(new Set(characters).size).toBe(127)
    for (const one of characters) expect([one, ...describeSize(one)]).toEqual([one, 'GSM-7', 1, 1, 160])
  })

  test.each([...'^{}\\[~]|€\f'])('has %j after an escape, as two septets', (one) => {
    expect(describeSize(one)).toEqual(['GSM-7', 2, 1, 160])
  })

  test.each([...'`çáíóúâêőğşıŁ—’“”…\t\u00a0\u200bКαعא中😀'])('lacks %j', (one) => {
    expect(measureSms(`code ${one}`)).toMatchObject({ encoding: 'UCS-2', foreign: [one] })
  })

  test('reports every missing character once', () => {
    expect(measureSms('ó día ó 😀').foreign).toEqual(['ó', 'í', '😀'])
  })
})

describe('parts', () => {
  test.each([
    ['nothing', '', ['GSM-7', 0, 1, 160]],
    ['160 septets', 'a'.repeat(160), ['GSM-7', 160, 1, 160]],
    ['161 septets', 'a'.repeat(161), ['GSM-7', 161, 2, 306]],
    ['306 septets', 'a'.repeat(306), ['GSM-7', 306, 2, 306]],
    ['307 septets', 'a'.repeat(307), ['GSM-7', 307, 3, 459]],
    ['70 units', 'я'.repeat(70), ['UCS-2', 70, 1, 70]],
    ['71 units', 'я'.repeat(71), ['UCS-2', 71, 2, 134]],
    ['134 units', 'я'.repeat(134), ['UCS-2', 134, 2, 134]],
    ['135 units', 'я'.repeat(135), ['UCS-2', 135, 3, 201]],
    ['160 septets with one letter of another alphabet', `${'a'.repeat(159)}я`, ['UCS-2', 160, 3, 201]],
    ['80 euros', '€'.repeat(80), ['GSM-7', 160, 1, 160]],
    ['35 emoji, two units each', '😀'.repeat(35), ['UCS-2', 70, 1, 70]],
  ])('of %s', (_, text, size) => {
    expect(describeSize(text)).toEqual(size)
  })

  test('never cut an escaped character in two', () => {
    // The escape would be the last septet of the first part, and of the second.
    expect(measureSms(`${'a'.repeat(152)}€${'a'.repeat(151)}€`)).toMatchObject({ units: 307, parts: 3 })
    expect(measureSms('€'.repeat(153))).toMatchObject({ units: 306, parts: 3 })
  })

  test('never cut a surrogate pair in two', () => {
    expect(measureSms('😀'.repeat(67))).toMatchObject({ units: 134, parts: 3 })
  })

  test('are as many as the units need, or one more because of characters that must not be split', () => {
    const text = string({ unit: constantFrom('a', '€', 'я', '😀', '\n'), maxLength: 500 })
    assert(
      property(text, (value) => {
        const { encoding, units, parts } = measureSms(value)
        const [single, joined] = encoding === 'GSM-7' ? [160, 153] : [70, 67]
        if (units <= single) return expect(parts).toBe(1)
        expect(parts).toBeGreaterThanOrEqual(Math.ceil(units / joined))
        return expect(parts).toBeLessThanOrEqual(Math.ceil(units / (joined - 1)))
      }),
    )
  })
})
