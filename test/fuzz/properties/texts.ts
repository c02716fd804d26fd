import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { toPage } from '../../../src/domain/model/pagination.ts'
import { createPaginate } from '../../../src/http/pagination.ts'
import { parsePhone, tryParsePhone } from '../../../src/domain/model/phone.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createIdempotencyReader } from '../../../src/http/idempotency.ts'
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
  maxLength: 32,
})

const cursorInvalid = expect.objectContaining({ code: 'INVALID_ARGUMENT', reason: 'CURSOR_INVALID' })
const paginate = createPaginate({ keys: testKeys })

/** Returns the cursor of a page that ends at the position. */
async function issueCursor(at: string, path: string): Promise<string> {
  const call = { developer: { id: 'dev_a' }, path, query: {} }
  const page = await paginate(call, () => Promise.resolve({ items: [], limit: 1, nextCursor: at }), String)
  return page.pagination.nextCursor ?? ''
}

/** Returns the position that a cursor leads to. */
async function followCursor(cursor: string, path: string, id = 'dev_a'): Promise<string | undefined> {
  let position: string | undefined
  await paginate(
    { developer: { id }, path, query: { cursor } },
    (page) => {
      position = page.cursor
      return Promise.resolve({ items: [], limit: 1, nextCursor: null })
    },
    String,
  )
  return position
}

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

  defineProperty('a cursor leads to its own position, for its own list and developer alone', 2_000, () => ({
    property: fc.asyncProperty(position, anyText, async (at, path) => {
      const cursor = await issueCursor(at, path)
      expect(await followCursor(cursor, path)).toBe(at)
      await expect(followCursor(cursor, `${path}x`)).rejects.toEqual(cursorInvalid)
      await expect(followCursor(cursor, path, 'dev_b')).rejects.toEqual(cursorInvalid)
      expect(cursor).toBe(await issueCursor(at, path))
      expect(cursor).toHaveLength(123)
    }),
  })),

  defineProperty('a cursor that this service did not issue is refused', 2_000, () => {
    const forged = fc.oneof(
      anyText,
      fc.base64String(),
      position.map((at) => Buffer.from(`1:${at}`).toString('base64url')),
    )
    const changes = fc.tuple(position, fc.nat(90), fc.constantFrom(...'aZ_-=+ \n\0'))
    const property = fc.asyncProperty(forged, changes, async (text, [at, index, char]) => {
      await expect(followCursor(text, '/v1/projects')).rejects.toEqual(cursorInvalid)
      const cursor = await issueCursor(at, '/v1/projects')
      const place = index % cursor.length
      const changed = cursor.slice(0, place) + char + cursor.slice(place + 1)
      if (changed === cursor) return
      await expect(followCursor(changed, '/v1/projects')).rejects.toEqual(cursorInvalid)
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
            const before: string | undefined = cursor
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
    const readIdempotency = createIdempotencyReader(testKeys)
    const parseScope = (key: string | undefined, body: unknown = {}) =>
      readIdempotency(key === undefined ? {} : { 'idempotency-key': key }, 'app_1', 'send', body)
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
