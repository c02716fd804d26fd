import { expect, test } from 'bun:test'
import { hourMs } from '../../../src/shared/durations.ts'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { createGuardBench, stranger, type GuardBench } from '../../helpers/guard.ts'

test('a country keeps its evidence while others spend the pool that it needs', async () => {
  const bench = createGuardBench()
  await bench.verify((await bench.send(1)).request)
  for (let day = 0; day < 30; day++) {
    for (let n = 0; n < 3; n++) await bench.send(100, { country: `C${n}` })
    const { rules } = await bench.send(30)
    expect(rules.filter((rule) => rule === '').length).toBe(20)
    bench.clock.advance(26 * hourMs)
  }
})

/** Counts a message that a second provider took. */
const countAgain = ({ guard, memory, clock }: GuardBench, request: GuardedMessage, sender = stranger) =>
  memory.decide<void>({
    preload: { first: () => ({}) },
    decide({ guard: rows }) {
      const keys = guard.keysToRevert(request, sender)
      const changes = guard.countAgain(rows, keys, request, clock.now())
      return { result: undefined, changes: [{ kind: 'guard', changes }] }
    },
  })

test('messages of one country that fail over take no more of the pool than others of it', async () => {
  const bench = createGuardBench()
  const { createRequest, evaluate, send } = bench
  const sent = Array.from({ length: 100 }, () => createRequest({ country: 'SO' }))
  for (const request of sent) expect((await evaluate(request)).blocked).toBe(false)
  for (let provider = 0; provider < 3; provider++)
    for (const request of sent) await countAgain(bench, request)
  const left = async (country: string) => {
    const { rules } = await send(101, { country })
    return rules.filter((rule) => rule === '').length
  }
  expect([await left('SO'), await left('C1'), await left('C2'), await left('C3')]).toEqual([0, 100, 100, 0])
})

test('a message that fails over counts twice for the messages of the day, also one to a known phone', async () => {
  const bench = createGuardBench({ totalPerDay: 5 })
  const { send } = bench
  const known = { ...stranger, isKnownPhone: true }
  await countAgain(bench, (await send(1)).request)
  await countAgain(bench, (await send(1, {}, known)).request, known)
  expect((await send(2)).rules).toEqual(['', 'TOTAL_DAILY'])
})
