import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { parsePhoneNumberFromString } from 'libphonenumber-js/max/es6'
import metadata from 'libphonenumber-js/max/metadata'
import { tryParsePhone } from '../../../src/domain/model/phone.ts'
import { canonicalPhone, phoneSpellings } from '../../../src/shared/spellings.ts'
import { hashOwnedPhone } from '../../../src/domain/model/phone-record.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import { findPlannedNumber } from '../../../src/domain/model/numbering-plans.ts'
import { defineProperty } from '../property.ts'
import { possiblePhone } from './texts.ts'

const keys = deriveKeys(new Uint8Array(32).fill(1))
const digits = (length: number, first = '0123456789') =>
  fc
    .tuple(fc.constantFrom(...first), fc.stringMatching(new RegExp(`^[0-9]{${length - 1}}$`)))
    .map(([head, rest]) => head + rest)

/** Two spellings of a phone whose numbering plan has an optional digit. */
const twoSpellings = fc.oneof(
  digits(10, '123').map((number) => [`+549${number}`, `+54${number}`] as const),
  digits(10, '23456789').map((number) => [`+521${number}`, `+52${number}`] as const),
  fc
    .tuple(
      digits(2, '123456789').filter((area) => !area.endsWith('0')),
      digits(8, '689'),
    )
    .map(([area, number]) => [`+55${area}9${number}`, `+55${area}${number}`] as const),
)

/** Numbers around the plans: any length, any digits after the country code. */
const nearPlan = fc
  .tuple(
    fc.constantFrom('+54', '+549', '+52', '+521', '+55', '+5511', '+55119'),
    fc.stringMatching(/^[0-9]{6,12}$/),
  )
  .map(([code, rest]) => code + rest)

/** Numbers of all types of all countries, made from the patterns of the metadata. */
const validPhone = fc
  .constantFrom(...Object.values(metadata.countries))
  .chain(([code, , , , , , , , , , , types]) =>
    fc
      .constantFrom(...[types].flat().filter((type) => type && type[0] !== ''))
      .chain(([pattern]) => fc.stringMatching(new RegExp(`^(?:${pattern})$`)))
      .map((number) => `+${code}${number}`),
  )

/** Any digits after any code, also after codes that do not exist. */
const anyE164 = fc
  .tuple(
    fc.oneof(fc.constantFrom(...Object.keys(metadata.country_calling_codes)), digits(1, '123456789')),
    fc.stringMatching(/^[0-9]{4,14}$/),
  )
  .map(([code, rest]) => `+${code}${rest}`.slice(0, 16))

/** Finds what the library alone says of a number. */
function findByLibrary(phone: string) {
  const number = parsePhoneNumberFromString(phone, { extract: false })
  return number?.isPossible()
    ? { phone: number.number, country: number.country, type: number.getType() }
    : undefined
}

export const phoneProperties = [
  defineProperty('a valid number has the country and the type that the library finds', 5_000, () => ({
    property: fc.property(validPhone, (phone) => {
      const planned = findPlannedNumber(phone)
      if (planned) expect<unknown>(findByLibrary(phone)).toEqual({ phone, ...planned })
    }),
  })),

  defineProperty('any digits have the country and the type that the library finds', 5_000, () => ({
    property: fc.property(anyE164, (phone) => {
      const planned = findPlannedNumber(phone)
      if (planned) expect<unknown>(findByLibrary(phone)).toEqual({ phone, ...planned })
    }),
  })),

  defineProperty('both spellings of a subscriber have one canonical phone and one hash', 2_000, () => ({
    property: fc.property(twoSpellings, ([long, short]) => {
      expect(canonicalPhone(long)).toBe(short)
      expect(canonicalPhone(short)).toBe(short)
      expect(phoneSpellings(long)).toEqual([short, long])
      expect(phoneSpellings(short)).toEqual([short, long])
      const hash = (phone: string) => hashOwnedPhone(keys, { developerId: 'dev', environment: 'live', phone })
      expect(hash(long)).toBe(hash(short))
    }),
  })),

  defineProperty('only spellings of one subscriber are folded', 5_000, () => ({
    property: fc.property(fc.oneof(nearPlan, possiblePhone), (phone) => {
      const canonical = canonicalPhone(phone)
      expect(canonicalPhone(canonical)).toBe(canonical)
      expect(phoneSpellings(phone)).toContain(phone)
      if (canonical === phone) return
      // One digit is dropped, right after the country code or a Brazilian area code.
      expect(canonical).toHaveLength(phone.length - 1)
      expect(canonical.slice(0, 3)).toBe(phone.slice(0, 3))
      expect(canonical.slice(-8)).toBe(phone.slice(-8))
    }),
  })),

  defineProperty('numbers of countries without such a plan stay as they are', 2_000, () => ({
    property: fc.property(possiblePhone, (text) => {
      const phone = tryParsePhone(text)?.phone
      fc.pre(phone !== undefined && !/^\+5[245]/.test(phone))
      expect(canonicalPhone(phone ?? '')).toBe(phone ?? '')
    }),
  })),
]
