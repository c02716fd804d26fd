import { expect, test } from 'bun:test'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import {
  createGuardBench,
  createGuardFixture,
  createMemoryGuardStore,
  guardOff,
  sendSlowly,
  stranger,
  usageOf,
} from '../../helpers/guard.ts'

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

/** Creates a guard that codes of other systems are sent through, as many a day as a test says. */
function createDays() {
  const bench = createGuardBench()
  /** Sends the codes of a day. @returns how many passed */
  const day = async (count: number, overrides: Partial<GuardedMessage> = {}) => {
    const rules = await sendSlowly(bench, count, dayMs / count, { isRelayed, ...overrides })
    return rules.filter((rule) => rule === '').length
  }
  return { ...bench, day }
}

test('codes of other systems take 300 a day and country, or three times the most of a day', async () => {
  const { day, send, usage } = createDays()
  for (const count of [100, 250, 300, 750]) expect(await day(count)).toBe(count)
  // Days of the last week count up to 300 where there was no earlier week.
  expect(await day(2_000)).toBeLessThanOrEqual(900)
  expect(await day(100, { country: 'BE' })).toBe(100)
  expect((await send(1, {}, stranger)).rules).toEqual([''])
  expect(usage('dev_1 NL').unverified).toBe(1)
})

test('those of a shop that doubles every week all pass', async () => {
  const { day } = createDays()
  for (let n = 0; n < 35; n++) {
    const count = Math.round(100 * 2 ** (n / 7))
    expect(await day(count)).toBe(count)
  }
})

test('an attacker who never exceeds the allowance widens it threefold a week', async () => {
  const { day } = createDays()
  const most: number[] = []
  // Nearly as many as may leave: the allowance is not spent.
  for (const count of [270, 770, 2_200]) {
    let greatest = 0
    for (let n = 0; n < 8; n++) greatest = Math.max(greatest, await day(count))
    most.push(greatest)
  }
  expect(most).toEqual([270, 770, 2_200])
  expect(await day(20_000)).toBeLessThanOrEqual(6_600)
})

test('an attacker who spends the allowance does not widen it, until two weeks after', async () => {
  const { day, clock } = createDays()
  await day(150)
  await day(150)
  for (let n = 0; n < 21; n++) expect(await day(2_000)).toBeLessThanOrEqual(450)
  clock.advance(7 * dayMs)
  expect(await day(2_000)).toBeLessThanOrEqual(450)
  clock.advance(16 * dayMs)
  expect(await day(200)).toBe(200)
  expect(await day(200)).toBe(200)
  expect(await day(550)).toBe(550)
})

test('a launch that a rule of the developer allows has become usual when the rule ends', async () => {
  const { day, evaluate, createRequest, clock, alerts } = createDays()
  const listing = { isDenied: false, allowedBy: 'destination' } as const
  for (let hour = 0; hour < 14 * 24; hour++) {
    for (let n = 0; n < 30; n++)
      await evaluate(createRequest({ isRelayed, listing }), { ...stranger, isKnownPhone: true })
    clock.advance(hourMs)
  }
  expect(await day(720)).toBe(720)
  expect(alerts).toEqual([])
})

test('a reported code no longer counts, and its phone is evidence for its country', async () => {
  const { send, verify, usage } = createBench()
  const { request } = await send(1, { isRelayed })
  expect(usage('dev_1 NL relay').unverified).toBe(1)
  await verify(request)
  await verify(request)
  expect([usage('dev_1 NL relay').unverified, usage('dev_1 NL').evidence]).toEqual([0, 1])
  expect(usage('dev_1 relays').unverified).toBe(0)
})

test('beyond what is usual, codes of other systems take a tenth of the allowance, and leave the rest to sends', async () => {
  const { clock, createRequest, evaluate, verify, pass, usage } = createBench()
  for (let phone = 0; phone < 5; phone++) {
    const request = createRequest({ isRelayed })
    await evaluate(request)
    await verify(request)
  }
  expect(await pass(500, { isRelayed })).toBe(300 + 5 * 2)
  expect(usage('dev_1 NL').unverified).toBe(5 * 2)
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
  for (let n = 0; n < 302; n++) {
    const request = createRequest({ isRelayed })
    expect((await evaluate(request)).violatedRules).toEqual([])
    sent.push(request)
  }
  expect(await pass(1, { isRelayed })).toBe(0)
  for (const request of sent.slice(0, 1)) await revert(request)
  expect(usage('dev_1 NL').unverified).toBe(1)
  expect(await pass(10, { isRelayed })).toBe(1)
})
