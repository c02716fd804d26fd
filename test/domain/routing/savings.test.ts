import { expect, test } from 'bun:test'
import type { Strategy } from '../../../src/domain/model/route-choice.ts'
import { createSavingsEstimator, sumSavings, type CellCosts } from '../../../src/domain/routing/savings.ts'

const cell = (
  provider: string,
  verified: number,
  cost: number,
  rest: Partial<CellCosts> = {},
): CellCosts => ({
  provider,
  channel: 'sms',
  country: 'DE',
  verified,
  cost,
  unpriced: 0,
  relayedCost: 0,
  ...rest,
})

function estimate(cells: CellCosts[], strategy: Strategy = 'cost') {
  const candidates = ['first', 'second', 'third'].map((provider) => ({
    provider,
    price: null,
    isOpen: false,
    wasTried: false,
  }))
  const route = { strategy, candidates }
  return cells.map(createSavingsEstimator(cells, (_, country) => (country === 'DE' ? route : undefined)))
}

test('are the verified codes at the cost per verified code of the first provider, less what they cost', () => {
  const cells = [cell('first', 40, 4_000_000), cell('second', 100, 6_000_000), cell('third', 0, 50_000)]
  expect(estimate(cells)).toEqual([0, 4_000_000, -50_000])
  expect(sumSavings(estimate(cells))).toBe(3_950_000)
})

test('are unknown with fewer than 20 verified codes of the first provider', () => {
  expect(estimate([cell('first', 19, 1_900_000), cell('second', 100, 6_000_000)])).toEqual([null, null])
  expect(estimate([cell('first', 20, 2_000_000), cell('second', 100, 6_000_000)])).toEqual([0, 4_000_000])
  expect(estimate([cell('second', 100, 6_000_000)])).toEqual([null])
  expect(sumSavings([null, null])).toBeNull()
})

test('are unknown where the price of a message is, of the first provider for all', () => {
  const first = cell('first', 40, 4_000_000)
  expect(estimate([first, cell('second', 9, 1, { unpriced: 1 })])).toEqual([0, null])
  expect(estimate([{ ...first, unpriced: 1 }, cell('second', 9, 1)])).toEqual([null, null])
})

test('compare with the first provider of the same channel and country', () => {
  const cells = [
    cell('first', 40, 4_000_000),
    cell('second', 10, 1, { channel: 'voice' }),
    cell('second', 10, 1, { country: 'FR' }),
    cell('second', 10, 1, { country: null }),
  ]
  expect(estimate(cells)).toEqual([0, null, null, null])
})

test('are none of a route without a strategy, or of a provider that is not on it', () => {
  const cells = [cell('first', 40, 4_000_000), cell('second', 100, 6_000_000)]
  expect(estimate(cells, 'order')).toEqual([null, null])
  expect(estimate([...cells, cell('removed', 100, 1)])).toEqual([0, 4_000_000, null])
})
