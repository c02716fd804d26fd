import { expect, test } from 'bun:test'
import { findPlannedNumber } from '../../../src/domain/model/numbering-plans.ts'

// `test/fuzz/properties/phones.ts` compares it with the library, for all countries.

test.each([
  ['+14155552671', 'US', 'FIXED_LINE_OR_MOBILE'],
  ['+18762101234', 'JM', 'MOBILE'],
  ['+4915123456789', 'DE', 'MOBILE'],
  ['+442079460123', 'GB', 'FIXED_LINE'],
  ['+919876543210', 'IN', 'MOBILE'],
  ['+5511961234567', 'BR', 'MOBILE'],
  ['+77011234567', 'KZ', 'MOBILE'],
  ['+33899123456', 'FR', 'PREMIUM_RATE'],
  ['+34999999999', 'ES', undefined],
])('%s is decided without the library: %s, %s', (phone, country, type) => {
  expect<unknown>(findPlannedNumber(phone)).toEqual({ country, type })
})

test.each([
  ['a national prefix, which the library removes', '+4907123456789'],
  ['a length that is only possible in the main country of its code', '+29083117'],
  ['a range of no country', '+12005552671'],
  ['a code of no country', '+80012345678'],
  ['an unknown code', '+2101234567'],
])('leaves to the library: %s', (_, phone) => {
  expect(findPlannedNumber(phone)).toBeUndefined()
})
