import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { encodeEventId, decodeEventId } from '../../../src/domain/model/event-ids.ts'
import { createIds, isId } from '../../../src/domain/model/ids.ts'

const times = fc.nat({ max: 2 ** 48 - 1 })
const numbers = fc.nat({ max: Number.MAX_SAFE_INTEGER })

test('the id of a log entry is a TypeID that decodes to its time and sequence number', () => {
  fc.assert(
    fc.property(times, numbers, (at, seq) => {
      const id = encodeEventId(at, seq)
      expect(isId('evt', id)).toBe(true)
      expect(decodeEventId(id)).toEqual({ at, seq })
    }),
  )
})

test('event ids sort by time, then by sequence number', () => {
  const entry = fc.tuple(times, numbers)
  fc.assert(
    fc.property(entry, entry, (a, b) => {
      const order = a[0] - b[0] || a[1] - b[1]
      expect(encodeEventId(...a) < encodeEventId(...b)).toBe(order < 0)
    }),
  )
})

test('event ids share the time prefix of other ids', () => {
  const at = Date.UTC(2027, 0, 1)
  const newId = createIds({ now: () => at }, (bytes) => bytes.fill(0))
  expect(encodeEventId(at, 1).slice(0, 14)).toBe(newId('evt').slice(0, 14))
})

test.each(['evt_01h455vb4pex5vsknk084sn02q', 'evt_01h455vb4pe008zzzzzzzzzzzz'])(
  'an id with other bits is not one of them: %s',
  (id) => {
    expect(isId('evt', id)).toBe(true)
    expect(decodeEventId(id)).toBeUndefined()
  },
)
