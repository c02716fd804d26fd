import { expect, test } from 'bun:test'
import { minuteMs } from '../../../src/shared/durations.ts'
import { createGuardFixture, createMemoryGuardStore, guardOff, usageOf } from '../../helpers/guard.ts'

const isRelayed = true

function createBench() {
  const memory = createMemoryGuardStore()
  const fixture = createGuardFixture(memory, guardOff)
  /** Sends messages one after the other. @returns how many passed */
  const pass = async (count: number, overrides: { isRelayed?: boolean }) =>
    (await fixture.send(count, overrides)).rules.filter((rules) => rules === '').length
  const usage = (key: string) => usageOf(memory.rows.get(key), fixture.clock.now())
  return { ...fixture, pass, usage }
}

test('a reported code no longer counts, and its phone is evidence for its country', async () => {
  const { send, verify, usage } = createBench()
  const { request } = await send(1, { isRelayed })
  expect(usage('dev_1 NL relay').unverified).toBe(1)
  await verify(request)
  await verify(request)
  expect([usage('dev_1 NL relay').unverified, usage('dev_1 NL').evidence]).toEqual([0, 1])
})

test('beyond what is usual, codes of other systems take half of the allowance, and leave the rest to sends', async () => {
  const { clock, createRequest, evaluate, verify, pass, usage } = createBench()
  for (let phone = 0; phone < 5; phone++) {
    const request = createRequest({ isRelayed })
    await evaluate(request)
    await verify(request)
  }
  expect(await pass(500, { isRelayed })).toBe(300 + (5 * 20) / 2)
  expect(usage('dev_1 NL').unverified).toBe((5 * 20) / 2)
  // And 100 from the pool.
  let sends = 0
  for (let n = 0; n < 120; n++) {
    clock.advance(4 * minuteMs)
    sends += await pass(1, {})
  }
  expect(sends).toBe(120)
})

test('what the country paid for is given back', async () => {
  const { createRequest, evaluate, verify, revert, pass, usage } = createBench()
  const known = createRequest({ isRelayed })
  await evaluate(known)
  await verify(known)
  const sent = []
  for (let n = 0; n < 310; n++) {
    const request = createRequest({ isRelayed })
    expect((await evaluate(request)).violatedRules).toEqual([])
    sent.push(request)
  }
  expect(await pass(1, { isRelayed })).toBe(0)
  for (const request of sent.slice(0, 8)) await revert(request)
  expect(usage('dev_1 NL').unverified).toBe(2)
  expect(await pass(10, { isRelayed })).toBe(8)
})
