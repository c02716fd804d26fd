import { expect, test } from 'bun:test'
import { createBatchedLookup } from '../../../src/store/engine/batched-lookup.ts'

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve))

test('calls of one turn share a query, and later ones get a query of their own', async () => {
  const queries: string[][] = []
  const find = createBatchedLookup(async (keys) => {
    queries.push([...keys])
    return new Map(keys.filter((key) => key !== 'missing').map((key) => [key, [key.toUpperCase()]]))
  })
  const first = Promise.all(['a', 'b', 'a', 'missing'].map(find))
  await nextTurn()
  const second = find('a')
  expect(await first).toEqual([['A'], ['B'], ['A'], []])
  expect(await second).toEqual(['A'])
  expect(queries).toEqual([['a', 'b', 'missing'], ['a']])
})

test('a query that fails rejects its calls, and no later ones', async () => {
  let isDown = true
  const find = createBatchedLookup(async () => {
    if (isDown) throw new Error('down')
    return new Map([['a', ['A']]])
  })
  const results = await Promise.allSettled([find('a'), find('a')])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  isDown = false
  expect(await find('a')).toEqual(['A'])
})
