import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { decodeCursor, encodeCursor, pageOf } from '../../src/domain/pages.ts'

const position = fc.string({
  unit: fc.constantFrom(...'0123456789abcdefghijklmnopqrstuvwxyz_'),
  minLength: 1,
  maxLength: 64,
})

test('a cursor leads back to its position and to no other', () => {
  fc.assert(
    fc.property(position, (at) => {
      expect(decodeCursor(encodeCursor(at))).toBe(at)
    }),
    { numRuns: 2_000 },
  )
})

test('whatever this service did not give out is refused', () => {
  const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', reason: 'CURSOR_INVALID' })
  for (const cursor of [
    '',
    'x',
    'MTo',
    'Mjph',
    ' MTph',
    'MTph\n',
    'MTph=',
    'MTpB',
    encodeCursor('a b'),
    encodeCursor('a'.repeat(65)),
  ]) {
    expect(() => decodeCursor(cursor)).toThrow(refused)
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (cursor) => {
      try {
        expect(encodeCursor(decodeCursor(cursor))).toBe(cursor)
      } catch (error) {
        expect(error).toEqual(refused)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('pages cut from one more row than asked for are the whole list, each row once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 20 }), (count, limit) => {
      const newestFirst = Array.from({ length: count }, (_, i) => `id${String(count - i).padStart(3, '0')}`)
      const seen: string[] = []
      for (let cursor: string | null | undefined; cursor !== null;) {
        const before = cursor === undefined ? undefined : decodeCursor(cursor)
        const rows = newestFirst.filter((id) => before === undefined || id < before).slice(0, limit + 1)
        const page = pageOf(rows, limit, (id) => id)
        expect(page.limit).toBe(limit)
        expect(page.items.length).toBeLessThanOrEqual(limit)
        seen.push(...page.items)
        cursor = page.nextCursor
      }
      expect(seen).toEqual(newestFirst)
    }),
    { numRuns: 500 },
  )
})
