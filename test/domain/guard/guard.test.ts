import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import type { GuardSettings } from '../../../src/domain/guard/rules.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff, stranger } from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let store: Store
beforeAll(async () => {
  opened = await openTestSqlite()
  store = createStore(opened.database, { keys: testKeys })
})
afterAll(() => opened.dispose())

const guardTables = () => {
  const { guardCountries, guardCounts, guardContexts, guardDecisions } = opened.database.tables
  return [guardCountries, guardCounts, guardContexts, guardDecisions]
}
beforeEach(async () => {
  await opened.database.write(async (tx) => {
    for (const table of guardTables()) await tx.delete(table)
  })
})

const createBench = (changes: Partial<GuardSettings> = {}) =>
  createGuardFixture(store, { ...guardOff, ...changes })
type Bench = ReturnType<typeof createBench>

const known = (context: string) => ({ isKnownPhone: false, contexts: [context] })
const countOf = (rules: readonly string[], rule: string) => rules.filter((one) => one === rule).length

/** Verifies codes of different people, so that the country converts. */
async function verifyCodes(
  { send, verify, clock }: Bench,
  count: number,
  overrides: Partial<GuardedMessage> = {},
) {
  for (let user = 0; user < count; user++) {
    await verify((await send(1, overrides)).request)
    clock.advance(minuteMs)
  }
}

/** Sends to different prefixes, one message in each `gapMs`. @returns the violated rules */
async function sendSlowly(
  { send, clock }: Bench,
  count: number,
  gapMs: number,
  overrides: Partial<GuardedMessage> = {},
) {
  const rules: string[] = []
  for (let n = 0; n < count; n++) {
    rules.push(...(await send(1, overrides)).rules)
    clock.advance(gapMs)
  }
  return rules
}

describe('a country in which this developer verified nothing', () => {
  test('takes a hundred unverified messages in any 24 hours, whatever the application', async () => {
    const bench = createBench()
    const rules = await sendSlowly(bench, 300, 3 * minuteMs)
    expect(countOf(rules, '')).toBeLessThanOrEqual(101)
    expect(countOf(rules, 'COUNTRY_UNVERIFIED')).toBeGreaterThanOrEqual(199)
    expect((await bench.send(1, { country: 'BE' })).rules).toEqual([''])
    expect((await bench.send(1, { developerId: 'dev_2' })).rules).toEqual([''])
    bench.clock.advance(30 * hourMs)
    expect((await bench.send(1)).rules).toEqual([''])
  })

  test('gets at most 110 of 300 consecutive numbers', async () => {
    const { evaluate, createRequest } = createBench()
    let left = 0
    for (let n = 0; n < 300; n++) {
      const request = createRequest({ country: 'SO', phone: `+25261${2_999_900 + n}` })
      if (!(await evaluate(request)).blocked) left++
    }
    expect(left).toBeLessThanOrEqual(110)
  })

  test('takes four more for each code that is verified', async () => {
    const bench = createBench()
    await verifyCodes(bench, 5)
    const rules = await sendSlowly(bench, 200, 3 * minuteMs)
    expect(countOf(rules, '')).toBeGreaterThanOrEqual(120)
    expect(countOf(rules, '')).toBeLessThanOrEqual(121)
  })

  test('is not closed by one client: a network counts for it ten times a day', async () => {
    const bench = createBench()
    const bad = await sendSlowly(bench, 300, 3 * minuteMs, { clientIp: '203.0.113.9' })
    expect(countOf(bad, '')).toBeLessThanOrEqual(35)
    const others = await sendSlowly(bench, 50, minuteMs, { clientIp: null })
    expect(others).toEqual(Array(50).fill(''))
  })

  test('lets people in whose network or device verified another phone', async () => {
    const bench = createBench()
    await bench.verify((await bench.send(1, {}, known('home'))).request, known('home'))
    await sendSlowly(bench, 110, 3 * minuteMs)
    expect((await bench.send(1)).rules).toEqual(['COUNTRY_UNVERIFIED'])
    expect((await bench.send(1, {}, known('home'))).rules).toEqual([''])
    expect((await bench.send(1, {}, known('elsewhere'))).rules).toEqual(['COUNTRY_UNVERIFIED'])
    bench.clock.advance(181 * dayMs)
    await sendSlowly(bench, 110, 3 * minuteMs)
    expect((await bench.send(1, {}, known('home'))).rules).toEqual(['COUNTRY_UNVERIFIED'])
  })
})

describe('a country that converts', () => {
  test('is not closed to strangers, from 20 codes and a fifth of the messages on', async () => {
    const bench = createBench()
    await verifyCodes(bench, 20)
    bench.clock.advance(hourMs)
    expect(await sendSlowly(bench, 200, minuteMs)).toEqual(Array(200).fill(''))
  })

  test('passes twenty unverified messages into one prefix', async () => {
    const bench = createBench()
    await verifyCodes(bench, 20)
    expect(await sendSlowly(bench, 20, 1000, { phone: '+31611110001' })).toEqual(Array(20).fill(''))
  })

  test('passes a lecture hall that signs up at once behind one address', async () => {
    const bench = createBench()
    await verifyCodes(bench, 20)
    const requests: GuardedMessage[] = []
    for (let person = 0; person < 300; person++) {
      const request = bench.createRequest({ clientIp: '198.51.100.7' })
      expect((await bench.evaluate(request)).violatedRules).toEqual([])
      requests.push(request)
      bench.clock.advance(400)
      const verified = requests[person - 60]
      if (verified) await bench.verify(verified)
    }
  })

  test('raises one alert when its conversion falls below half, within ten minutes', async () => {
    const bench = createBench()
    await verifyCodes(bench, 60)
    bench.clock.advance(2 * hourMs)
    await sendSlowly(bench, 300, 2_000)
    expect(bench.alerts).toEqual([
      { country: 'NL', messages: expect.any(Number), conversion: 0, usualConversion: 100 },
    ])
    expect(await store.read.guard.alerts(bench.clock.now())).toHaveLength(1)
  })

  test('then lets a network that verified nothing send for ten minutes a day, and others as before', async () => {
    const bench = createBench()
    const home = { clientIp: '192.0.2.1' }
    await verifyCodes(bench, 60)
    await verifyCodes(bench, 1, home)
    bench.clock.advance(2 * hourMs)
    await sendSlowly(bench, 300, 2_000)
    const visitor = { clientIp: '203.0.113.9' }
    expect((await bench.send(3, visitor)).rules).toEqual(['', '', ''])
    bench.clock.advance(11 * minuteMs)
    expect((await bench.send(1, visitor)).rules).toEqual(['NETWORK_UNVERIFIED'])
    expect((await bench.send(1, { clientIp: '203.0.114.9' })).rules).toEqual([''])
    await bench.send(1, home)
    bench.clock.advance(11 * minuteMs)
    expect((await bench.send(1, home)).rules).toEqual([''])
    bench.clock.advance(dayMs)
    expect((await bench.send(1, visitor)).rules).toEqual([''])
  })
})

describe('a prefix and a network', () => {
  test('take 30 unverified messages a day, and four more for each verified code', async () => {
    const bench = createBench()
    const prefix = { phone: '+31611110001' }
    expect(countOf((await bench.send(40, prefix)).rules, '')).toBe(30)
    expect((await bench.send(1, { phone: '+31611120001' })).rules).toEqual([''])
    bench.clock.advance(2 * dayMs)
    await verifyCodes(bench, 2, prefix)
    expect(countOf((await bench.send(50, prefix)).rules, '')).toBe(38)
    bench.clock.advance(2 * dayMs)
    const rules = await sendSlowly(bench, 60, 3 * minuteMs, { clientIp: '203.0.113.9' })
    expect(countOf(rules, '')).toBeLessThanOrEqual(35)
  })

  test('a network is an IPv4 /24 or an IPv6 /56', async () => {
    const bench = createBench()
    await sendSlowly(bench, 40, 3 * minuteMs, { clientIp: '203.0.113.9' })
    expect((await bench.send(1, { clientIp: '203.0.113.200' })).rules).toEqual(['NETWORK_UNVERIFIED'])
    expect((await bench.send(1, { clientIp: '203.0.114.9' })).rules).toEqual([''])
    await sendSlowly(bench, 40, 3 * minuteMs, { country: 'BE', clientIp: '2001:db8:1:ff00::1' })
    expect((await bench.send(1, { country: 'BE', clientIp: '2001:db8:1:ff77::2' })).rules).toEqual([
      'NETWORK_UNVERIFIED',
    ])
    expect((await bench.send(1, { country: 'BE', clientIp: '2001:db8:2::1' })).rules).toEqual([''])
  })

  test('are not charged for messages that no provider accepted, nor for blocked ones', async () => {
    const bench = createBench()
    for (let outage = 0; outage < 50; outage++) {
      const { request, rules } = await bench.send(1, { phone: '+31611110001' })
      expect(rules).toEqual([''])
      await bench.revert(request)
    }
    expect(countOf((await bench.send(60, { phone: '+31611110001' })).rules, '')).toBe(30)
  })
})

describe('the lists', () => {
  test('refuse other countries, and costly types of numbers', async () => {
    const { send } = createBench({
      countries: ['NL', 'BE'],
      deniedCountries: ['CU'],
      allowedNumberTypes: ['satellite'],
    })
    expect((await send(1, { country: 'NL' })).rules).toEqual([''])
    expect((await send(1, { country: 'CU' })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
    expect((await send(1, { country: null })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
    expect((await send(1, { costlyType: 'premium' })).rules).toEqual(['NUMBER_TYPE'])
    expect((await send(1, { costlyType: 'satellite' })).rules).toEqual([''])
  })

  test.each<[string, Partial<GuardSettings['trusted']>, Partial<GuardedMessage>]>([
    ['a country', { prefixes: ['+31'] }, {}],
    ['an address', { addresses: ['203.0.113.0/24'] }, { clientIp: '203.0.113.77' }],
    ['an IPv6 network', { addresses: ['2001:db8::/32'] }, { clientIp: '2001:db8:5::1' }],
  ])('let trusted numbers and networks (%s) pass without counting them', async (_, trusted, overrides) => {
    const { send } = createBench({ countries: ['BE'], trusted: { ...guardOff.trusted, ...trusted } })
    expect((await send(4, overrides)).rules).toEqual(Array(4).fill(''))
    for (const table of guardTables()) expect(await opened.database.read.select().from(table)).toEqual([])
  })

  test('do not apply to test applications and virtual numbers', async () => {
    const { send } = createBench({ countries: ['BE'] })
    expect((await send(1, { environment: 'test' })).rules).toEqual([''])
    expect((await send(1, { phone: '+9991234567890', country: null })).rules).toEqual([''])
  })
})

test('a known phone passes every rule but the lists and the daily cap, and is not counted', async () => {
  const bench = createBench({ totalPerDay: 150 })
  await sendSlowly(bench, 120, 3 * minuteMs)
  const sender = { ...stranger, isKnownPhone: true }
  const { request, rules } = await bench.send(40, { phone: '+31611110001' }, sender)
  expect(countOf(rules, '')).toBeGreaterThan(30)
  expect(countOf(rules, 'TOTAL_DAILY')).toBe(40 - countOf(rules, ''))
  await bench.verify(request, sender)
})

test('monitor mode allows and counts everything, and names the violated rules', async () => {
  const { send } = createBench({ mode: 'monitor', deniedCountries: ['NL'], totalPerDay: 2 })
  const { rules } = await send(40, { phone: '+31611110001' })
  expect(rules[0]).toBe('COUNTRY_NOT_ALLOWED')
  expect(rules[39]).toBe('COUNTRY_NOT_ALLOWED PREFIX_UNVERIFIED TOTAL_DAILY')
  expect(
    (await store.read.guard.decisions(0)).find(({ rule }) => rule === 'PREFIX_UNVERIFIED'),
  ).toMatchObject({
    country: 'NL',
    flagged: 10,
    blocked: 0,
  })
})

test('new settings apply from the next message on, and counts are kept', async () => {
  const { send, guard } = createBench()
  const prefix = { phone: '+31611110001' }
  await send(30, prefix)
  guard.configure({ ...guardOff, mode: 'off' })
  expect((await send(1, prefix)).rules).toEqual([''])
  guard.configure(guardOff)
  expect((await send(1, prefix)).rules).toEqual(['PREFIX_UNVERIFIED'])
})

test('the tables hold neither a phone number nor an address', async () => {
  const { send, verify } = createBench({ mode: 'monitor', deniedCountries: ['NL'] })
  const { request } = await send(1, { phone: '+31612345678', clientIp: '203.0.113.9' })
  await verify(request, known('hash'))
  const rows = []
  for (const table of guardTables()) {
    const found = await opened.database.read.select().from(table)
    expect(found.length).toBeGreaterThan(0)
    rows.push(...found)
  }
  expect(JSON.stringify(rows)).not.toMatch(/31612|203\.0|cb00/)
})
