import { expect, test } from 'bun:test'
import { readIdCursor, readSeqCursor } from '../../../src/domain/model/pagination.ts'

const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', reason: 'CURSOR_INVALID' })
const position = 'otp_01h455vb4pex5vsknk084sn02q'

test('reads the position of a list, and refuses that of another', () => {
  expect(readIdCursor({ limit: 1 }, 'otp')).toBeUndefined()
  expect(readIdCursor({ limit: 1, cursor: position }, 'otp')).toBe(position)
  expect(() => readIdCursor({ limit: 1, cursor: position }, 'app')).toThrow(refused)
  expect(readSeqCursor({ cursor: '17' })).toBe(17)
  for (const cursor of ['', '0', '-1', '1.5', '017', '1e3', '9'.repeat(16), position])
    expect(() => readSeqCursor({ cursor })).toThrow(refused)
})
