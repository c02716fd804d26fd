import { expect, test } from 'bun:test'
import { createEpochCache } from '../../../src/domain/model/epoch-cache.ts'

test('a cache forgets its values when the epoch moves, and takes none that was read before', () => {
  const cache = createEpochCache<string>(10)
  expect(cache.get('a', 1)).toBeUndefined()
  cache.set('a', 1, 'old')
  expect(cache.get('a', 1)).toBe('old')
  expect(cache.get('a', 2)).toBeUndefined()
  // Read under epoch 1, while another caller got to epoch 2.
  cache.set('a', 1, 'old')
  expect(cache.get('a', 2)).toBeUndefined()
})
