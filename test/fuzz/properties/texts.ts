import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { decodeCursor, encodeCursor, toPage } from '../../../src/domain/model/pagination.ts'
import { parsePhone, tryParsePhone } from '../../../src/domain/model/phone.ts'
import { testKeys } from '../../helpers/retention.ts'
import { idempotencyScope } from '../../../src/http/idempotency.ts'
import { idempotencyKey } from '../../../src/http/schemas.ts'
import { defineProperty } from '../property.ts'

const anyText = fc.string({ unit: 'binary' })
const dialled = fc.string({ unit: fc.constantFrom(...'+0123456789 -.()'), maxLength: 24 })

/** Possible phone numbers of countries with different lengths. */
export const possiblePhone = fc.oneof(
  fc.integer({ min: 2_000_000_000, max: 9_899_999_999 }).map((digits) => `+1${digits}`),
  fc.integer({ min: 7_000_000_000, max: 7_999_999_999 }).map((digits) => `+44${digits}`),
  fc.integer({ min: 15_000_000_000, max: 17_999_999_999 }).map((digits) => `+49${digits}`),
  fc.integer({ min: 0, max: 9_999_999_999 }).map((digits) => `+999${String(digits).padStart(10, '0')}`),
)

const position = fc.string({
  unit: fc.constantFrom(...'0123456789abcdefghijklmnopqrstuvwxyz_'),
  minLength: 1,
  maxLength: 64,
})

const cursorInvalid = expect.objectContaining({ code: 'INVALID_ARGUMENT', reason: 'CURSOR_INVALID' })

/** Header values as received: Fetch trims surrounding spaces. */
const keyText = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...'aZ~!#"'), maxLength: 260 }),
  fc.string({ unit: fc.constantFrom(...'aZ~!#'), minLength: 1, maxLength: 257 }).map((text) => `"${text}"`),
)

export const textProperties = [
  defineProperty(
    'parsing a parsed phone number returns it unchanged, and no input makes the parser throw',
    5_000,
    () => ({
      property: fc.property(fc.oneof(anyText, dialled), (text) => {
        const parsed = tryParsePhone(text)
        if (!parsed) {
          expect(() => parsePhone(text)).toThrow(expect.objectContaining({ code: 'INVALID_PHONE_NUMBER' }))
          return
        }
        expect(parsed.phone).toMatch(/^\+[1-9][0-9]{6,14}$/)
        expect(tryParsePhone(parsed.phone)).toEqual(parsed)
      }),
    }),
  ),

  defineProperty('a phone number is the same however it is punctuated', 2_000, () => {
    const separators = fc.array(fc.constantFrom('', '', ' ', '-', '.', '(', ')', ' - '), {
      minLength: 16,
      maxLength: 16,
    })
    const property = fc.property(possiblePhone, separators, fc.boolean(), (phone, gaps, withZeroPrefix) => {
      const plain = tryParsePhone(phone)
      expect(plain).toBeDefined()
      const punctuated = [...phone].map((digit, index) => digit + (gaps[index] ?? '')).join('')
      expect(tryParsePhone(punctuated)).toEqual(plain)
      if (withZeroPrefix) expect(tryParsePhone(phone.replace('+', '00'))).toEqual(plain)
    })
    return { property }
  }),

  defineProperty('a cursor decodes to its own position', 2_000, () => ({
    property: fc.property(position, position, (at, other) => {
      expect(decodeCursor(encodeCursor(at))).toBe(at)
      if (at !== other) expect(encodeCursor(at)).not.toBe(encodeCursor(other))
    }),
  })),

  defineProperty('a cursor that this service did not issue is refused', 2_000, () => {
    const forged = fc.oneof(
      anyText,
      fc.base64String(),
      fc.tuple(position, fc.nat(90), fc.constantFrom(...'aZ_-=+ \n\0')).map(([at, index, char]) => {
        const cursor = encodeCursor(at)
        return cursor.slice(0, index % cursor.length) + char + cursor.slice((index % cursor.length) + 1)
      }),
    )
    const property = fc.property(forged, (cursor) => {
      try {
        expect(encodeCursor(decodeCursor(cursor))).toBe(cursor)
      } catch (error) {
        expect(error).toEqual(cursorInvalid)
      }
    })
    return { property }
  }),

  defineProperty(
    'pages cut from one row more than the limit make up the whole list, each row once',
    500,
    () => ({
      property: fc.property(
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (count, limit) => {
          const newestFirst = Array.from(
            { length: count },
            (_, i) => `id${String(count - i).padStart(3, '0')}`,
          )
          const seen: string[] = []
          for (let cursor: string | null | undefined; cursor !== null;) {
            const before = cursor === undefined ? undefined : decodeCursor(cursor)
            const rows = newestFirst.filter((id) => before === undefined || id < before).slice(0, limit + 1)
            const page = toPage(rows, limit, (id) => id)
            expect(page.limit).toBe(limit)
            expect(page.items.length).toBeLessThanOrEqual(limit)
            seen.push(...page.items)
            cursor = page.nextCursor
          }
          expect(seen).toEqual(newestFirst)
        },
      ),
    }),
  ),

  defineProperty('an Idempotency-Key is accepted exactly as documented, quoted or bare', 2_000, () => {
    const keyPattern = new RegExp(idempotencyKey.schema.pattern)
    const parseScope = (key: string | undefined, body: unknown = {}) =>
      idempotencyScope(testKeys, key === undefined ? {} : { 'idempotency-key': key }, 'app_1', 'send', body)
    const property = fc.property(keyText, fc.json(), fc.json(), (text, one, other) => {
      expect(parseScope(undefined)).toBeUndefined()
      if (!keyPattern.test(text)) {
        expect(() => parseScope(text)).toThrow(expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_INVALID' }))
        return
      }
      const scope = parseScope(text, one)
      expect(scope?.key.length).toBeLessThanOrEqual(255)
      expect(parseScope(`"${scope?.key}"`, one)).toEqual(scope)
      expect(parseScope(scope?.key, one)).toEqual(scope)
      expect(parseScope(text, other)?.bodyHash === scope?.bodyHash).toBe(
        JSON.stringify(one) === JSON.stringify(other),
      )
    })
    return { property }
  }),
]
