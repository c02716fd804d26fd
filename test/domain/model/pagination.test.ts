import { expect, test } from 'bun:test'
import { decodeCursor, encodeCursor } from '../../../src/domain/model/pagination.ts'

test('refuses every cursor that the service did not issue', () => {
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
})
