import { describe, expect, test } from 'bun:test'
import { listDifferences, maskLater } from './comparison.ts'
import { listFixtures, readFixture } from './fixture.ts'
import type { Json } from './json.ts'
import { packRecords, unpackRecords } from './records.ts'

const endedAt = Date.parse('2025-10-17T22:00:00.000Z')
const ok = (body: Json) => ({ status: 200, body })

describe('a recorded response', () => {
  test.each(listFixtures())('of %s differs once any of its fields is changed or missing', (version) => {
    const { answers } = readFixture(version)
    // Fields that `listDifferences` documents as not compared.
    const excepted = /(^|\.)(text|time|limit|traceId|message|nextCursor)$/
    for (const response of answers) {
      expect(listDifferences(response, response)).toEqual([])
      for (const path of listFields(response.body)) {
        const changed = listDifferences(response, ok(changeField(response.body, path, () => '<changed>')))
        const removed = listDifferences(response, ok(changeField(response.body, path, () => undefined)))
        if (excepted.test(path.join('.'))) continue
        expect([response.path, path, changed.length > 0, removed.length > 0]).toEqual([
          response.path,
          path,
          true,
          true,
        ])
      }
    }
  })

  test('may gain fields, but no elements and no other status', () => {
    expect(listDifferences(ok({ data: [{ id: 'a' }] }), ok({ data: [{ id: 'a', more: 1 }] }))).toEqual([])
    expect(listDifferences(ok({ data: [] }), ok({ data: [{ id: 'a' }] }))).toHaveLength(1)
    expect(listDifferences(ok({ data: [] }), { status: 500, body: { data: [] } })).toHaveLength(1)
  })
})

describe('by the real clock', () => {
  test('only times and ids that are newer than the fixture are masked', () => {
    const old = { at: '2025-10-17T21:59:59.999Z', date: '2025-10-17', id: 'otp_01k7t00000e008000000000000' }
    expect(maskLater(old, endedAt)).toEqual(old)
    const later = { at: '2025-10-17T22:00:00.001Z', date: '2025-10-18', id: 'otp_01m814vf27e008000000000000' }
    expect(maskLater(later, endedAt)).toEqual({ at: '<later>', date: '<later>', id: '<later>' })
  })

  test('the duration of a new attempt is masked, that of an old one is not', () => {
    const attempts = [
      { at: '2025-10-17T21:00:00.000Z', durationMs: 5 },
      { at: '2026-10-17T21:00:00.000Z', durationMs: 6 },
    ]
    const [old, recent] = [attempts[0] ?? null, { at: '<later>', durationMs: '<later>' }]
    expect(maskLater(attempts, endedAt)).toEqual([old, recent])
  })
})

test('records are unpacked as they were packed', () => {
  const row = { id: 'a'.repeat(40), nested: { list: ['b'.repeat(40), null, { c: 1 }] } }
  const value: Json = [{ data: [row, row] }, { data: row }]
  const packed = packRecords(value)
  expect(unpackRecords(packed)).toEqual(value)
  expect(JSON.stringify(packed).split('a'.repeat(40))).toHaveLength(2)
})

/** Lists the paths of all fields that hold no list and no object. Elements of a list are represented by the first ten. */
function listFields(value: Json, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const fields = Object.entries(value)
  const visited = Array.isArray(value) ? fields.slice(0, 10) : fields
  return visited.flatMap(([name, field]) => listFields(field, [...path, name]))
}

/** Returns a copy with another field. Without a new value the field is removed; an element of a list becomes null. */
function changeField(value: Json, path: readonly string[], change: () => Json | undefined): Json {
  const [name, ...rest] = path
  if (name === undefined || typeof value !== 'object' || value === null) return change() ?? null
  if (Array.isArray(value)) {
    return value.map((element, n) => (n === Number(name) ? changeField(element, rest, change) : element))
  }
  const field = rest.length === 0 ? change() : changeField(value[name] ?? null, rest, change)
  const others = Object.entries(value).filter(([other]) => other !== name)
  return Object.fromEntries(field === undefined ? others : [...others, [name, field]]) as Json
}
