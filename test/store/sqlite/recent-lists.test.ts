import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createRecentLists } from '../../../src/store/sqlite/recent-lists.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'

test('thousands of keys, added and removed in any order, are read as from one sorted array', () => {
  const random = seededRandom(1)
  const lists = createRecentLists()
  let expected: number[] = []
  // A third of the keys come out of order, so that blocks grow in their middle and are divided.
  for (let step = 0; step < 6_000; step++) {
    const key = random() < 0.7 ? step * 10 : Math.floor(random() * step * 10)
    expect(lists.add('owner', 1, key)).toBe(!expected.includes(key))
    if (!expected.includes(key)) expected.push(key)
  }
  expected.sort((a, b) => a - b)
  const checkPages = () => {
    for (let round = 0; round < 40; round++) {
      const bound = Math.floor(random() * 60_000)
      const limit = round % 4 === 0 ? 3_000 : 1 + Math.floor(random() * 50)
      const after = expected.filter((key) => key > bound).slice(0, limit)
      const before = expected.filter((key) => key < bound).toReversed()
      expect(lists.page('owner', 1, { after: bound }, limit)).toEqual(after)
      expect(lists.page('owner', 1, { before: bound }, limit)).toEqual(before.slice(0, limit))
      expect(lists.has('owner', 1, bound)).toBe(expected.includes(bound))
    }
    expect(lists.page('owner', 1, {}, Infinity)).toEqual(expected.toReversed())
    expect(lists.size()).toBe(expected.length)
  }
  checkPages()
  // The first ones, as when they are moved to the table, and others anywhere.
  const gone = new Set([...expected.slice(0, 1_500), ...expected.filter(() => random() < 0.5)])
  for (const key of gone) expect(lists.remove('owner', 1, key)).toBe(true)
  expected = expected.filter((key) => !gone.has(key))
  checkPages()
  for (const key of gone) expect(lists.remove('owner', 1, key)).toBe(false)
  for (const key of expected) lists.remove('owner', 1, key)
  expect(lists.all()).toEqual([])
})

test('owners without entries take no memory, such as deleted endpoints', () => {
  const countMaps = () => {
    Bun.gc(true)
    return heapStats().objectTypeCounts['Map'] ?? 0
  }
  const lists = createRecentLists()
  const before = countMaps()
  for (let owner = 0; owner < 1_000; owner++) {
    lists.add(owner, 1, 1)
    lists.remove(owner, 1, 1)
  }
  expect(countMaps() - before).toBeLessThan(100)
  expect(lists.add(7, 1, 1)).toBe(true)
  expect(lists.all()).toEqual([[7, 1]])
})
