import { expect, test } from 'bun:test'
import { interleave } from './otpd.ts'

test('lists of different lengths take turns', () => {
  expect(interleave([['a1', 'a2', 'a3'], [], ['c1']])).toEqual(['a1', 'c1', 'a2', 'a3'])
  expect(interleave([])).toEqual([])
})
