import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { createEventIds } from '../../../src/domain/model/event-ids.ts'
import { createIds, isId } from '../../../src/domain/model/ids.ts'

const times = fc.nat({ max: 2 ** 48 - 1 })
const numbers = fc.integer({ min: 1, max: 2 ** 42 - 1 })
const ids = createEventIds(Buffer.alloc(32, 1), 0)
const at = Date.UTC(2027, 0, 1)

test('the id of a log entry is a TypeID that decodes to its time and sequence number', () => {
  fc.assert(
    fc.property(times, numbers, (time, seq) => {
      const id = ids.encode(time, seq)
      expect(isId('evt', id)).toBe(true)
      expect(ids.decode(id)).toEqual({ at: time, seq })
      expect(ids.encode(time, seq)).toBe(id)
    }),
    { numRuns: 2000 },
  )
})

test('it is a UUIDv7 with the time prefix of other ids', () => {
  const newId = createIds({ now: () => at }, (bytes) => bytes.fill(0))
  for (let seq = 1; seq < 500; seq++) {
    const id = ids.encode(at, seq)
    expect(id.slice(0, 14)).toBe(newId('evt').slice(0, 14))
    expect(id.slice(14)).toMatch(/^[ef][0-9a-z]{2}[89ab0-9c-z]/)
  }
})

test('the ids of one moment are distinct and do not follow the order of their numbers', () => {
  const encoded = Array.from({ length: 100_000 }, (_, n) => ids.encode(at, n + 1))
  expect(new Set(encoded).size).toBe(encoded.length)
  const ascents = encoded.filter((id, n) => id > (encoded[n - 1] ?? '')).length
  expect(Math.abs(ascents - encoded.length / 2)).toBeLessThan(1_000)
})

test('an id that was forged, changed or made with another key decodes to nothing', () => {
  const other = createEventIds(Buffer.alloc(32, 2), 0)
  for (let seq = 1; seq < 2_000; seq++) {
    const id = ids.encode(at, seq)
    expect(other.decode(id)).toBeUndefined()
    const position = 4 + (seq % 26)
    const changed = id.slice(0, position) + (id[position] === '1' ? '2' : '1') + id.slice(position + 1)
    expect(ids.decode(changed)).toBeUndefined()
  }
  expect(ids.decode('evt_01h455vb4pex5vsknk084sn02q')).toBeUndefined()
})

test('ids of entries up to the upgrade stay as they were, and no later number can be probed in that form', () => {
  const upgraded = createEventIds(Buffer.alloc(32, 1), 1000)
  const plain = 'evt_01jgfjjz00e008000000000007'
  expect(upgraded.encode(Date.UTC(2025, 0, 1), 7)).toBe(plain)
  expect(upgraded.decode(plain)).toEqual({ at: Date.UTC(2025, 0, 1), seq: 7 })
  expect(upgraded.decode(upgraded.encode(at, 1000))).toEqual({ at, seq: 1000 })
  expect(upgraded.decode(upgraded.encode(at, 1001))).toEqual({ at, seq: 1001 })
  expect(upgraded.encode(at, 1001)).not.toContain('e008000000')
  expect(ids.decode(plain)).toBeUndefined()
})
