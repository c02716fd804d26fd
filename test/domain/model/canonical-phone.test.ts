import { expect, test } from 'bun:test'
import { canonicalPhone, phoneSpellings } from '../../../src/domain/model/canonical-phone.ts'

test.each([
  ['Argentina, mobile', '+5491123456789', '+541123456789'],
  ['Argentina, mobile in the provinces', '+5492901123456', '+542901123456'],
  ['Mexico, mobile before 2019', '+5215512345678', '+525512345678'],
  ['Brazil, ninth digit', '+5511987654321', '+551187654321'],
])('%s: %s and %s are one subscriber', (_, long, short) => {
  expect([canonicalPhone(long), canonicalPhone(short)]).toEqual([short, short])
  expect(phoneSpellings(long)).toEqual([short, long])
})

test.each([
  ['a Brazilian fixed line, whose number with a 9 is a mobile of another subscriber', '+5511934567890'],
  ['a Brazilian trunked radio with eight digits, and the mobile with a 9 before the same', '+5511977654321'],
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
