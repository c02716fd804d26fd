import { describe, expect, test } from 'bun:test'
import { assert, integer, property } from 'fast-check'
import {
  createPriceFinder,
  formatPrice,
  parsePrice,
  parsePriceKey,
  readAmount,
  type PriceList,
} from '../../../src/domain/model/price.ts'

test.each([
  ['0.0079', 7900],
  ['0', 0],
  ['12', 12_000_000],
  ['0.000001', 1],
  ['9999999.999999', 9_999_999_999_999],
])('%s is %i millionths', (text, price) => {
  expect(parsePrice(text)).toBe(price)
  expect(formatPrice(price)).toBe(text)
})

test.each(['', '-0.01', '+1', '0.0000001', '.5', '5.', '1e3', '0,05', '$1', 'NaN', '10000000', ' 1', '١'])(
  '%j is not a price',
  (text) => expect(parsePrice(text)).toBeUndefined(),
)

test.each([
  ['0.0079', 7_900],
  [0.0123, 12_300],
  ['0.03330000', 33_300],
  // 124.49999999999999 and 40.49999999999999 millionths as products of numbers.
  [0.0001245, 125],
  [0.0000135 * 3, 41],
  ['0.0001245', 125],
  ['0.00000049', 0],
  [1e-7, 0],
  [0, 0],
  ['9999999.999999', 9_999_999_999_999],
])('a charge of %j is %i millionths', (value, amount) => expect(readAmount(value)).toBe(amount))

test.each(['', '-0.01', -0.01, '1e-3', 'abc', ' 1', '1 EUR', NaN, Infinity, 1e9, '12345678', null, true])(
  '%j is no charge',
  (value) => expect(readAmount(value)).toBeUndefined(),
)

test('every price is read as it was written', () => {
  assert(
    property(integer({ min: 0, max: 9_999_999_999_999 }), (price) => {
      expect(parsePrice(formatPrice(price))).toBe(price)
    }),
  )
  expect(formatPrice(-1_500_000)).toBe('-1.5')
})

test('a price is of all destinations, of a country or of a prefix', () => {
  expect(parsePriceKey('default')).toEqual({ kind: 'default' })
  expect(parsePriceKey('US')).toEqual({ kind: 'country', key: 'US' })
  expect(parsePriceKey('+4930')).toEqual({ kind: 'prefix', key: '+4930' })
  // Satellites.
  expect(parsePriceKey('+870')).toEqual({ kind: 'prefix', key: '+870' })
  expect(parsePriceKey('us')).toMatchObject({ remedy: 'Write US.' })
  expect(parsePriceKey('4930')).toMatchObject({
    fault: '"4930" has no +.',
    remedy: 'Write "+4930", in quotes.',
  })
  // +999 are developers' virtual numbers.
  for (const text of ['+999', '+0', '+', '+210', 'XX', 'USA', '', '__proto__'])
    expect(parsePriceKey(text)).toHaveProperty('fault')
})

describe('the most specific price applies', () => {
  const list: PriceList = {
    default: 1,
    countries: { DE: 2, CA: 3 },
    prefixes: { '+4930': 4, '+49301': 5, '+1': 6, '+870': 7 },
  }
  test.each<[string, string | null, number]>([
    ['+33612345678', 'FR', 1],
    ['+4915123456789', 'DE', 2],
    ['+493023456789', 'DE', 4],
    ['+493013456789', 'DE', 5],
    ['+14155552671', 'US', 6],
    ['+16135550123', 'CA', 3],
    ['+12005552671', null, 6],
    ['+870773111632', null, 7],
    ['+88213300', null, 1],
  ])('to %s (%s): %i', (phone, country, price) => {
    expect(createPriceFinder(list)(phone, country)).toBe(price)
  })

  test('and there may be none', () => {
    const find = createPriceFinder({ default: null, countries: { DE: 2 }, prefixes: {} })
    expect(find('+33612345678', 'FR')).toBeNull()
    expect(find('+12005552671', null)).toBeNull()
  })
})
