import { expect, test } from 'bun:test'
import { createFairPermits, type FairPermits } from '../../../src/domain/model/fair-permits.ts'

const live = (developerId: string) => ({ developerId, isTest: false })

/** Takes permits in turn until no developer gets another. @returns how many each got */
function takeAll(permits: FairPermits, developers: readonly string[]): number[] {
  const held = developers.map(() => 0)
  for (let hasTaken = true; hasTaken;) {
    hasTaken = false
    for (const [index, developerId] of developers.entries()) {
      if (!permits.take(live(developerId))) continue
      held[index] = (held[index] ?? 0) + 1
      hasTaken = true
    }
  }
  return held
}

test.each([
  { developers: 1, each: 50 },
  { developers: 2, each: 40 },
  { developers: 5, each: 25 },
  { developers: 17, each: 10 },
])('$developers developers get equal parts, and the next one a permit', ({ developers, each }) => {
  const permits = createFairPermits(200, 1 / 3)
  const names = Array.from({ length: developers }, (_, index) => `dev_${index}`)
  expect(takeAll(permits, names)).toEqual(names.map(() => each))
  expect(permits.canTake(live('dev_next'))).toBe(true)
})

test('is equal also for developers that come late', () => {
  const permits = createFairPermits(200, 1 / 3)
  const leaves = Array.from({ length: 300 }, () => permits.take(live('early'))).flatMap(
    (release) => release ?? [],
  )
  expect(leaves).toHaveLength(50)
  const late = takeAll(permits, ['late'])
  for (const release of leaves) {
    release()
    late.push(...takeAll(permits, ['early', 'late']))
  }
  expect(permits.free()).toBe(200 - 40 - 40)
})

test('leaves what belongs to test applications half of that, within the part of the developer', () => {
  const permits = createFairPermits(200, 1 / 3)
  const tests = Array.from({ length: 300 }, () => permits.take({ developerId: 'dev_1', isTest: true }))
  expect(tests.filter((release) => release !== undefined)).toHaveLength(29)
  expect(takeAll(permits, ['dev_1'])).toEqual([50 - 29])
  expect(permits.excluded()).toEqual([
    { developerId: 'dev_1', isTest: true },
    { developerId: 'dev_1', isTest: false },
  ])
})

test('plans with a copy', () => {
  const permits = createFairPermits(4, 1 / 3)
  expect(takeAll(permits.fork(), ['dev_1', 'dev_2'])).toEqual([1, 1])
  expect(permits.free()).toBe(4)
})
