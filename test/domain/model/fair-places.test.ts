import { expect, test } from 'bun:test'
import { createFairPlaces, type FairPlaces } from '../../../src/domain/model/fair-places.ts'

const live = (developerId: string) => ({ developerId, isTest: false })

/** Takes places in turn until no developer gets another. @returns how many each got */
function takeAll(places: FairPlaces, developers: readonly string[]): number[] {
  const held = developers.map(() => 0)
  for (let hasTaken = true; hasTaken;) {
    hasTaken = false
    for (const [index, developerId] of developers.entries()) {
      if (!places.take(live(developerId))) continue
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
])('$developers developers get equal parts, and the next one a place', ({ developers, each }) => {
  const places = createFairPlaces(200, 1 / 3)
  const names = Array.from({ length: developers }, (_, index) => `dev_${index}`)
  expect(takeAll(places, names)).toEqual(names.map(() => each))
  expect(places.canTake(live('dev_next'))).toBe(true)
})

test('is equal also for developers that come late', () => {
  const places = createFairPlaces(200, 1 / 3)
  const leaves = Array.from({ length: 300 }, () => places.take(live('early'))).flatMap((leave) => leave ?? [])
  expect(leaves).toHaveLength(50)
  const late = takeAll(places, ['late'])
  for (const leave of leaves) {
    leave()
    late.push(...takeAll(places, ['early', 'late']))
  }
  expect(places.free()).toBe(200 - 40 - 40)
})

test('leaves what belongs to test applications half of that, within the part of the developer', () => {
  const places = createFairPlaces(200, 1 / 3)
  const tests = Array.from({ length: 300 }, () => places.take({ developerId: 'dev_1', isTest: true }))
  expect(tests.filter((leave) => leave !== undefined)).toHaveLength(29)
  expect(takeAll(places, ['dev_1'])).toEqual([50 - 29])
  expect(places.excluded()).toEqual([
    { developerId: 'dev_1', isTest: true },
    { developerId: 'dev_1', isTest: false },
  ])
})

test('plans with a copy', () => {
  const places = createFairPlaces(4, 1 / 3)
  expect(takeAll(places.fork(), ['dev_1', 'dev_2'])).toEqual([1, 1])
  expect(places.free()).toBe(4)
})
