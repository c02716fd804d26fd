import { describe, expect, test } from 'bun:test'
import { median, percentile } from './stats.ts'

describe('the median', () => {
  test('is the middle value of any order', () => expect(median([9, 1, 5])).toBe(5))
  test('is the mean of two middle values', () => expect(median([4, 1, 2, 100])).toBe(3))
  test('of an empty list is NaN', () => expect(median([])).toBeNaN())
  test('does not change the list', () => {
    const values = [3, 1, 2]
    median(values)
    expect(values).toEqual([3, 1, 2])
  })
})

describe('a percentile', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)

  test.each([
    [0.5, 50],
    [0.99, 99],
    [0.991, 100],
    [1, 100],
    [0, 1],
  ])('%p of 1 to 100 is %p', (share, value) => expect(percentile(hundred, share)).toBe(value))
  test('of one value is that value', () => expect(percentile([7], 0.99)).toBe(7))
  test('of an empty list is NaN', () => expect(percentile([], 0.5)).toBeNaN())
})
