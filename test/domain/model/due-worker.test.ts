import { afterEach, expect, test } from 'bun:test'
import { createDueWorker, type RowChanges } from '../../../src/domain/model/due-worker.ts'
import { createScheduler } from '../../sim/scheduler.ts'

const pollMs = 1_000
let stop = () => {}
afterEach(() => stop())

/** A worker on simulated time. `due` is the time at which a row is due. */
function startWorker({ hasChanges = true, pauseMs = 0 } = {}) {
  const scheduler = createScheduler(0)
  const listeners = new Set<(isForeign: boolean) => unknown>()
  const changes: RowChanges = {
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const worker = {
    due: Infinity,
    woken: [] as number[],
    reads: 0,
    errors: 0,
    mustFail: false,
    mustFailRounds: false,
    onRead() {},
  }
  const { start, stop: stopWorker } = createDueWorker({
    async runRound() {
      worker.woken.push(scheduler.now())
      if (worker.mustFailRounds) throw new Error('no database')
      if (worker.due <= scheduler.now()) worker.due = Infinity
      return false
    },
    async untilDueMs() {
      worker.reads++
      if (worker.mustFail) throw new Error('no database')
      const dueInMs = worker.due - scheduler.now()
      worker.onRead()
      return dueInMs
    },
    after: scheduler.after,
    changes: hasChanges ? changes : undefined,
    pollMs,
    pauseMs,
    onError: () => worker.errors++,
  })
  start()
  stop = stopWorker
  return {
    worker,
    stop,
    listeners,
    commit(isForeign = false) {
      for (const listener of listeners) listener(isForeign)
    },
    run: (until: number) => scheduler.runUntil(until),
  }
}

test('sleeps until a row is due, and reads nothing meanwhile', async () => {
  const { worker, run } = startWorker()
  worker.due = 600_000
  await run(599_999)
  expect(worker).toMatchObject({ woken: [1_000], reads: 1 })
  await run(600_000)
  expect(worker.woken).toEqual([1_000, 600_000])
})

test('wakes once within a second of a commit, however many there are', async () => {
  const { worker, run, commit } = startWorker()
  await run(10_000)
  for (let count = 0; count < 100; count++) commit()
  await run(20_000)
  expect(worker.woken).toEqual([1_000, 11_000])
})

test('finds a row that a commit makes due earlier', async () => {
  const { worker, run, commit } = startWorker()
  worker.due = 3_000_000
  await run(10_000)
  worker.due = 15_000
  commit()
  await run(20_000)
  expect(worker.woken).toEqual([1_000, 11_000, 15_000])
})

test('looks again after a commit during the round, which its read may have missed', async () => {
  const { worker, run, commit } = startWorker()
  worker.onRead = () => {
    commit()
    worker.onRead = () => {}
  }
  await run(5_000)
  expect(worker.woken).toEqual([1_000, 2_000])
})

test('wakes at once for a commit of another process', async () => {
  const { worker, run, commit } = startWorker()
  await run(10_000)
  commit()
  commit(true)
  await run(10_000)
  expect(worker.woken).toEqual([1_000, 10_000])
})

test('looks every second if it hears of no commits', async () => {
  const { worker, run } = startWorker({ hasChanges: false })
  await run(5_000)
  expect(worker.woken).toEqual([1_000, 2_000, 3_000, 4_000, 5_000])
})

test('pauses between two rounds, although rows are due all the time', async () => {
  const { worker, run } = startWorker({ pauseMs: pollMs })
  worker.due = 1_001
  await run(1_000)
  worker.due = 1_002
  await run(5_000)
  expect(worker.woken).toEqual([1_000, 2_000])
})

test('looks again after a second if the database cannot be read', async () => {
  const { worker, run } = startWorker()
  worker.mustFail = true
  await run(3_000)
  expect(worker).toMatchObject({ woken: [1_000, 2_000, 3_000], errors: 3 })
})

test('repeats a round that failed after a second, although nothing is due', async () => {
  const { worker, run } = startWorker()
  worker.mustFailRounds = true
  await run(3_000)
  expect(worker).toMatchObject({ woken: [1_000, 2_000, 3_000], errors: 3, reads: 0 })
  worker.mustFailRounds = false
  await run(3_600_000)
  expect(worker.woken).toEqual([1_000, 2_000, 3_000, 4_000])
})

test('looks once an hour when nothing is due and nothing changes', async () => {
  const { worker, run } = startWorker()
  await run(3 * 3_600_000)
  expect(worker.woken).toEqual([1_000, 3_601_000, 7_201_000])
})

test('a stopped worker wakes no more, and hears of no commits', async () => {
  const { worker, run, commit, listeners, ...started } = startWorker()
  worker.due = 5_000
  await run(2_000)
  started.stop()
  commit()
  await run(3_600_000)
  expect([worker.woken, listeners.size]).toEqual([[1_000], 0])
})

/** A worker that hears of nothing but its wakes. */
const createWaker = (runRound: () => Promise<boolean>, after = () => () => {}) =>
  createDueWorker({
    runRound,
    after,
    changes: undefined,
    pollMs,
    onError: (error) => expect(error).toBeUndefined(),
  })

test('runs one round at a time, and one more for all the wakes during it', async () => {
  let roundCount = 0
  let underWay = 0
  const worker = createWaker(async () => {
    roundCount += 1
    underWay += 1
    expect(underWay).toBe(1)
    if (roundCount === 1) for (let wakes = 0; wakes < 3; wakes++) worker.wake()
    await Promise.resolve()
    underWay -= 1
    return false
  })
  worker.wake()
  await worker.running()
  expect(roundCount).toBe(2)
  expect(worker.running()).toBeUndefined()
})

test('continues while a round requests another', async () => {
  let roundsLeft = 3
  const worker = createWaker(async () => --roundsLeft > 0)
  worker.wake()
  await worker.running()
  expect(roundsLeft).toBe(0)
})

test('a wake while it sets its timer causes another round', async () => {
  let roundCount = 0
  let timersSet = 0
  const worker = createWaker(
    async () => {
      roundCount += 1
      return false
    },
    () => {
      if (++timersSet === 2) worker.wake()
      return () => {}
    },
  )
  worker.start()
  worker.wake()
  await worker.running()
  worker.stop()
  expect({ roundCount, timersSet }).toEqual({ roundCount: 2, timersSet: 3 })
})
