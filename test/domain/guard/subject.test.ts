import { expect, test } from 'bun:test'
import { dayMs } from '../../../src/shared/durations.ts'
import {
  createGuardFixture,
  createMemoryGuardStore,
  guardOff,
  stranger,
  usageOf,
} from '../../helpers/guard.ts'

test('an unverified message of a network is remembered for two weeks, and a verified one is not', async () => {
  const memory = createMemoryGuardStore()
  const bench = createGuardFixture(memory, guardOff)
  const open = (key: string) => usageOf(memory.rows.get(key), bench.clock.now())
  const clientIp = '198.51.100.7'
  const { request } = await bench.send(1, { clientIp })
  const key = bench.guard.keysToJudge(request, stranger, bench.clock.now())?.subjects?.network ?? ''
  expect(open(key)).toMatchObject({ unverified: 1, earlier: 1 })
  await bench.verify((await bench.send(1, { clientIp })).request)
  bench.clock.advance(3 * dayMs)
  expect(open(key)).toMatchObject({ unverified: 0, earlier: 1, evidence: 1 })
  bench.clock.advance(12 * dayMs)
  expect(open(key).earlier).toBe(0)
})
