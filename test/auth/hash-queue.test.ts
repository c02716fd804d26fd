import { describe, expect, test } from 'bun:test'
import { createHashQueue } from '../../src/auth/hash-queue.ts'
import { testClock } from '../helpers/clock.ts'

const limits = { runningMax: 2, waitingMax: 8, waitingPerNetworkMax: 4, budget: 60 }

/** A queue whose tasks run until the test ends them, and the order in which they started. */
function createQueue(changes: Partial<typeof limits> = {}) {
  const clock = testClock()
  const run = createHashQueue({ ...limits, ...changes }, clock)
  const started: string[] = []
  const running: (() => void)[] = []
  /** @param network a known one if it ends with `!` */
  const add = (network: string) =>
    run({ network, isKnown: network.endsWith('!') }, () => {
      started.push(network)
      return new Promise<string>((resolve) => running.push(() => resolve(network)))
    })
  const addMany = (...networks: string[]) => networks.map((network) => add(network).catch(({ code }) => code))
  async function finish(count: number) {
    for (let index = 0; index < count; index += 1) {
      running.shift()?.()
      await Bun.sleep(0)
    }
  }
  return { clock, add, addMany, started, finish }
}

describe('the queue of hashes', () => {
  test('runs two at a time', async () => {
    const { addMany, started, finish } = createQueue()
    const all = addMany('a', 'b', 'c')
    expect(started).toEqual(['a', 'b'])
    await finish(3)
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c'])
  })

  test.each([
    { runningMax: 1, flood: 5 },
    { runningMax: 2, flood: 6 },
  ])(
    'lets a newcomer wait for one running task of a flood, $runningMax at a time',
    async ({ runningMax, flood }) => {
      const { addMany, started, finish } = createQueue({ runningMax })
      addMany(...Array.from({ length: flood }, () => 'flood'), 'victim')
      await finish(1)
      expect(started.slice(runningMax)).toEqual(['victim'])
      await finish(flood)
      expect(started).toHaveLength(flood + 1)
    },
  )

  test('serves known networks first, in turn', async () => {
    const { addMany, started, finish } = createQueue()
    addMany('x', 'x', 'a', 'b', 'c', 'home!', 'home!', 'office!')
    await finish(8)
    expect(started.slice(2)).toEqual(['home!', 'office!', 'home!', 'a', 'b', 'c'])
  })

  test('lets four tasks of a network wait; the fifth is UNAVAILABLE', async () => {
    const { add, addMany, finish } = createQueue()
    const all = addMany('a', 'a', 'a', 'a', 'a', 'a')
    await expect(add('a')).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 2 })
    const other = add('b')
    await finish(7)
    expect(await other).toBe('b')
    expect(await Promise.all(all)).not.toContain('UNAVAILABLE')
  })

  test('when full, makes room for a network with fewer tasks, at the cost of the one with most', async () => {
    const { addMany, finish } = createQueue()
    const flood = addMany('x', 'x', 'a', 'a', 'a', 'a', 'b', 'b', 'b', 'c')
    const [victim] = addMany('victim')
    await finish(10)
    expect(await victim).toBe('victim')
    expect((await Promise.all(flood)).filter((outcome) => outcome === 'UNAVAILABLE')).toHaveLength(1)
  })

  test('when full of networks with one task each, refuses a newcomer, but not a known network', async () => {
    const { addMany, finish } = createQueue()
    addMany('x', 'x', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
    const [newcomer, owner] = addMany('i', 'home!')
    expect(await newcomer).toBe('UNAVAILABLE')
    await finish(10)
    expect(await owner).toBe('home!')
  })

  test('gives a network 60 tasks at once and one more every second', async () => {
    const { clock, add, finish } = createQueue()
    const one = async (network: string) => {
      const result = add(network)
      await finish(1)
      return result
    }
    for (let index = 0; index < 60; index += 1) await one('a')
    await expect(add('a')).rejects.toMatchObject({ reason: 'LOGIN_ATTEMPTS', retryAfterSeconds: 1 })
    expect(await one('b')).toBe('b')
    clock.advance(2000)
    await one('a')
    await one('a')
    await expect(add('a')).rejects.toMatchObject({ code: 'RATE_LIMITED' })
  })

  test('a task that fails frees its slot', async () => {
    const run = createHashQueue({ ...limits, runningMax: 1 }, testClock())
    const failure = run({ network: 'a', isKnown: false }, () => Promise.reject(new Error('no memory')))
    const next = run({ network: 'b', isKnown: false }, async () => 'ran')
    await expect(failure).rejects.toThrow('no memory')
    expect(await next).toBe('ran')
  })
})
