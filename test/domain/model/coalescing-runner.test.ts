import { expect, test } from 'bun:test'
import { createCoalescingRunner } from '../../../src/domain/model/coalescing-runner.ts'

test('runs one round at a time, and one more for all the wakes during it', async () => {
  let roundCount = 0
  let underWay = 0
  const runner = createCoalescingRunner(async () => {
    roundCount += 1
    underWay += 1
    expect(underWay).toBe(1)
    if (roundCount === 1) for (let wakes = 0; wakes < 3; wakes++) runner.wake()
    await Promise.resolve()
    underWay -= 1
    return false
  })
  runner.wake()
  await runner.running()
  expect(roundCount).toBe(2)
  expect(runner.running()).toBeUndefined()
})

test('continues while a round requests another', async () => {
  let roundsLeft = 3
  const runner = createCoalescingRunner(async () => --roundsLeft > 0)
  runner.wake()
  await runner.running()
  expect(roundsLeft).toBe(0)
})

test('a wake during onIdle causes another round', async () => {
  let roundCount = 0
  let restCount = 0
  const runner = createCoalescingRunner(
    async () => {
      roundCount += 1
      return false
    },
    async () => {
      restCount += 1
      if (restCount === 1) runner.wake()
    },
  )
  runner.wake()
  await runner.running()
  expect({ roundCount, restCount }).toEqual({ roundCount: 2, restCount: 2 })
})
