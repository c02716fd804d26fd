import { expect, test } from 'bun:test'
import { createVersionedCache } from '../../../src/domain/model/versioned-cache.ts'

test('a cache forgets its values when the version grows, and takes none that was read before', () => {
  const cache = createVersionedCache<string>(10)
  expect(cache.get('a', 1)).toBeUndefined()
  cache.set('a', 1, 'old')
  expect(cache.get('a', 1)).toBe('old')
  expect(cache.get('a', 2)).toBeUndefined()
  // Read under version 1, while another caller got to version 2.
  cache.set('a', 1, 'old')
  expect(cache.get('a', 2)).toBeUndefined()
})
