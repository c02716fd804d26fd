import { expect, test } from 'bun:test'
import { lasting } from '../../cli/text.ts'

test.each([
  [1, '1 ms'],
  [499.6, '500 ms'],
  [1000, '1 s'],
  [281_000, '4 min 41 s'],
])('%d ms last %s, and never "now"', (durationMs, words) => expect(lasting(durationMs)).toBe(words))
