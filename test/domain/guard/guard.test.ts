import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { prefixKey, type GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { Subject } from '../../../src/domain/guard/subject.ts'
import type { GuardSettings } from '../../../src/domain/guard/settings.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import {
  createGuardBench,
  createGuardFixture,
  type GuardBench,
  guardOff,
  sendSlowly,
  stranger,
} from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let store: Store
beforeAll(async () => {
  opened = await openTestSqlite()
  store = createStore(opened.database, { keys: testKeys })
})
afterAll(() => opened.dispose())

const guardTables = () => {
  const { guardUsage, guardDecisions } = opened.database.tables
  return [guardUsage, guardDecisions]
}
beforeEach(async () => {
  await opened.database.write(async (tx) => {
    for (const table of guardTables()) await tx.delete(table)
  })
})

/** A guard on a database. */
const createStored = (changes: Partial<GuardSettings> = {}) =>
  createGuardFixture(store, { ...guardOff, ...changes })

/** A sender who tells a device and no network. */
const device = (context: string) => ({ ...stranger, contexts: ['network', context] })
const countOf = (rules: readonly string[], rule: string) => rules.filter((one) => one === rule).length

describe('evidence', () => {
  let bench: GuardBench
  const evidenceOf = (subject: string) => bench.usage(subject).evidence
  beforeEach(() => void (bench = createGuardBench()))

  test('is a phone once, however many codes it verifies, for 14 days', async () => {
    const { clock, createRequest, evaluate, verify } = bench
    const request = createRequest({ phone: '+31611110001', clientIp: '203.0.113.9' })
    const keys = bench.guard.keysToJudge(request, device('d'), clock.now())?.subjects
    if (!keys?.network || !keys.device) throw new Error('not counted')
    const subjects = [keys.country, keys.prefix, keys.network, keys.device]
    for (let code = 0; code < 20; code++) {
      await evaluate(request, device('d'))
      await verify(request, device('d'))
      if (code % 5 === 4) clock.advance(3 * dayMs)
    }
    for (const subject of subjects) expect([subject, evidenceOf(subject)]).toEqual([subject, 1])
    clock.advance(10 * dayMs)
    for (const subject of subjects) expect(evidenceOf(subject)).toBe(1)
    clock.advance(4 * dayMs)
    for (const subject of subjects) expect(evidenceOf(subject)).toBe(0)
  })

  test('of a known phone stays, although its messages are not counted', async () => {
    const { createRequest, verify, clock } = bench
    const request = createRequest({ phone: '+31611110001' })
    await verify(request)
    for (let day = 0; day < 40; day += 8) {
      clock.advance(8 * dayMs)
      await verify(request, { ...stranger, isKnownPhone: true })
    }
    expect(evidenceOf('dev_1 NL')).toBe(1)
  })

  test('is counted for each developer, country, prefix and network', async () => {
    const { createRequest, verify } = bench
    await verify(createRequest({ phone: '+31611110001' }))
    await verify(createRequest({ phone: '+31611110002' }))
    await verify(createRequest({ phone: '+31611120001' }))
    await verify(createRequest({ phone: '+32611120001', country: 'BE' }))
    await verify(createRequest({ phone: '+31611130001', developerId: 'dev_2' }))
    expect(evidenceOf('dev_1 NL')).toBe(3)
    expect(evidenceOf('dev_1 BE')).toBe(1)
    expect(evidenceOf('dev_2 NL')).toBe(1)
    expect(evidenceOf(prefixKey(bench.keys, 'dev_1', '+31611119999'))).toBe(2)
  })
})

test('a sender is known where fewer messages are unverified than phones are verified in an average day', async () => {
  const { createRequest, evaluate, verify } = createGuardBench()
  const isKnown = async (clientIp: string, deviceId: string) =>
    (await evaluate(createRequest({ clientIp }), device(deviceId))).isKnownOrigin
  expect(await isKnown('203.0.113.1', 'a')).toBe(false)
  for (const clientIp of ['203.0.113.2', '203.0.113.3']) {
    const request = createRequest({ clientIp })
    await evaluate(request, device('b'))
    await verify(request, device('b'))
  }
  // The first message is unverified.
  expect(await isKnown('203.0.113.4', 'c')).toBe(false)
  expect(await isKnown('198.51.100.1', 'b')).toBe(true)
  expect(await isKnown('198.51.100.1', 'b')).toBe(false)
  for (let number = 0; number < 27; number++) {
    const request = createRequest({ clientIp: '203.0.113.5' })
    await evaluate(request)
    await verify(request)
  }
  // 29 phones in 14 days against two messages, then against one more.
  expect(await isKnown('203.0.113.6', 'd')).toBe(true)
  expect(await isKnown('203.0.113.6', 'd')).toBe(false)
})

describe('what leaves unverified', () => {
  test('to cold countries is 100 to each and 300 to all, in any 24 hours', async () => {
    const bench = createGuardBench()
    const left: number[] = []
    const day = async () => {
      const counts: number[] = []
      for (let country = 0; country < 5; country++) {
        const rules = await sendSlowly(bench, 150, 90_000, { country: `C${country}` })
        counts.push(countOf(rules, ''))
      }
      return counts
    }
    left.push(...(await day()))
    expect(left).toEqual([100, 100, 100, 0, 0])
    bench.clock.advance(6 * hourMs)
    expect((await day()).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(300)
  })

  test('in a burst of messages in flight stays within the pool', async () => {
    const bench = createGuardBench()
    let left = 0
    for (let country = 0; country < 10; country++)
      left += countOf((await bench.send(400, { country: `C${country}` })).rules, '')
    expect(left).toBe(300)
  })

  test('grows by 20 for each phone that is verified, and the pool gets back what it paid for them', async () => {
    const bench = createGuardBench()
    const { request } = await bench.send(60)
    bench.clock.advance(5 * minuteMs)
    await bench.verify(request)
    expect(bench.usage('dev_1 NL')).toMatchObject({ unverified: 59, evidence: 1 })
    expect(new Subject('', bench.memory.rows.get('dev_1 NL'), bench.clock.now()).total('drawn')).toBe(59)
    expect(bench.usage('dev_1 pool').unverified).toBe(59)
    const rules = await sendSlowly(bench, 100, 3 * minuteMs)
    expect([countOf(rules, ''), countOf(rules, 'COUNTRY_UNVERIFIED')]).toEqual([61, 39])
  })

  test('is not widened by a device or network that is known: country and prefix bind it', async () => {
    const bench = createGuardBench()
    const home = { clientIp: '203.0.113.9' }
    await bench.verify(bench.createRequest({ phone: '+14155550100', country: 'US', ...home }), device('x'))
    let left = 0
    for (let n = 0; n < 700; n++) {
      const { rules } = await bench.send(1, { country: `C${n % 10}`, ...home }, device('x'))
      left += countOf(rules, '')
      bench.clock.advance(minuteMs)
    }
    // A device takes 5, and 5 for its phone.
    expect(left).toBe(10)
  })

  test('keeps the evidence of a country whose allowance is spent day after day', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 10; n++) await bench.verify((await bench.send(1)).request)
    for (let day = 0; day < 30; day++) {
      const rules = await sendSlowly(bench, 480, 3 * minuteMs)
      expect(countOf(rules, '')).toBeGreaterThan(260)
    }
    expect(bench.usage('dev_1 NL').evidence).toBe(10)
    bench.clock.advance(15 * dayMs)
    expect(bench.usage('dev_1 NL').evidence).toBe(0)
  })

  test('keeps a phone that was verified after the allowance of the day was spent', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 10; n++) await bench.verify((await bench.send(1)).request)
    bench.clock.advance(13 * dayMs)
    await bench.send(400)
    await bench.verify(bench.createRequest({ phone: '+31600000001' }))
    expect(countOf((await bench.send(40)).rules, 'COUNTRY_UNVERIFIED')).toBeGreaterThan(0)
    bench.clock.advance(dayMs)
    expect(bench.usage('dev_1 NL').evidence).toBe(11)
  })

  test('never closes what honest users had: a flood lowers no allowance', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 50; n++) await bench.verify((await bench.send(1)).request)
    for (let day = 0; day < 10; day++) {
      await sendSlowly(bench, 900, 90_000)
      const { rules } = await bench.send(1)
      expect(rules).toEqual([''])
    }
  })

  test('near the end of an allowance makes a network known by eight refused messages, and by seven does not', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 5; n++) await bench.verify((await bench.send(1)).request)
    let network = 0
    const fill = async (count: number) => {
      for (let n = 0; n < count; n++, network++)
        await bench.send(1, { clientIp: `203.${network >> 8}.${network & 255}.9` })
      bench.clock.advance(3 * minuteMs)
    }
    const [customer, attacker] = [{ clientIp: '198.51.100.7' }, { clientIp: '198.51.101.7' }]
    await fill(197)
    expect((await bench.send(7, customer)).rules).toEqual(Array(7).fill('FAIR_SHARE'))
    expect((await bench.send(8, attacker)).rules).toEqual(Array(8).fill('FAIR_SHARE'))
    bench.clock.advance(26 * hourMs)
    await fill(120)
    expect((await bench.send(1, customer)).rules).toEqual([''])
    expect((await bench.send(1, attacker)).rules).toEqual(['FAIR_SHARE'])
  })

  test('to a country that guard.countries names has its own base, more on its first seven days', async () => {
    const bench = createGuardBench({ countries: ['NL'] })
    const first = await sendSlowly(bench, 1_100, minuteMs)
    expect(countOf(first, '')).toBe(1_000)
    bench.clock.advance(9 * dayMs)
    expect(countOf(await sendSlowly(bench, 200, 3 * minuteMs), '')).toBe(100)
  })
})

/** Deletes the rows that the server purges. */
function purge({ memory, clock }: GuardBench): void {
  for (const [key, { until }] of memory.rows)
    if (until <= Math.floor(clock.now() / dayMs)) memory.rows.delete(key)
}

test('a country has one launch, also if it gets no messages for months', async () => {
  const bench = createGuardBench({ countries: ['NL'] })
  await bench.send(1)
  bench.clock.advance(100 * dayMs)
  purge(bench)
  expect(countOf((await bench.send(150)).rules, '')).toBe(100)
})

test('a clock that was ahead and is set back lets no more messages leave, and silences no alert', async () => {
  const bench = createGuardBench()
  const { clock, send, alerts } = bench
  const start = clock.now()
  clock.advance(3 * dayMs)
  await send(40)
  clock.set(start)
  expect(countOf((await send(300)).rules, '')).toBe(60)
  expect(alerts).toHaveLength(2)
})

describe('a prefix, a network and a device', () => {
  test('are a number without its last four digits, an IPv4 /24 or an IPv6 /56', async () => {
    const bench = createGuardBench({ countries: ['NL'] })
    const count = async (overrides: Partial<GuardedMessage>) =>
      countOf(await sendSlowly(bench, 40, 3 * minuteMs, overrides), '')
    expect(await count({ phone: '+31611110001' })).toBe(30)
    expect(await count({ phone: '+31611119999' })).toBe(0)
    expect(await count({ clientIp: '203.0.113.9' })).toBe(30)
    expect(await count({ clientIp: '203.0.113.200' })).toBe(0)
    expect(await count({ clientIp: '203.0.114.9' })).toBe(30)
    expect(await count({ clientIp: '2001:db8:1:ff00::1' })).toBe(30)
    expect(await count({ clientIp: '2001:db8:1:ff77::2' })).toBe(0)
  })

  test('are known by the first verification of a phone on a day: one phone does not make many networks known', async () => {
    const bench = createGuardBench()
    const networks: string[] = []
    for (let n = 0; n < 3; n++) {
      const request = bench.createRequest({ phone: '+31611110001', clientIp: `198.51.${n}.7` })
      networks.push(bench.guard.keysToJudge(request, stranger, bench.clock.now())?.subjects?.network ?? '')
      await bench.evaluate(request)
      await bench.verify(request)
    }
    expect(networks.map((network) => bench.usage(network).evidence)).toEqual([1, 0, 0])
    bench.clock.advance(dayMs)
    await bench.verify(bench.createRequest({ phone: '+31611110001', clientIp: '198.51.1.7' }))
    expect(networks.map((network) => bench.usage(network).evidence)).toEqual([1, 1, 0])
  })

  test('a lecture hall signs up at once behind one address', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 20; n++) await bench.verify((await bench.send(1)).request)
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

  test('are not charged for messages that no provider accepted, nor for blocked ones', async () => {
    const bench = createGuardBench()
    for (let outage = 0; outage < 50; outage++) {
      const { request, rules } = await bench.send(1, { phone: '+31611110001' })
      expect(rules).toEqual([''])
      await bench.revert(request)
    }
    const rules = await sendSlowly(bench, 60, 3 * minuteMs, { phone: '+31611110001' })
    expect(countOf(rules, '')).toBe(30)
  })
})

describe('the lists', () => {
  test('refuse other countries, and costly types of numbers', async () => {
    const { send, guard, createRequest } = createGuardBench({
      countries: ['NL', 'BE'],
      deniedCountries: ['CU'],
      allowedNumberTypes: ['satellite'],
    })
    expect((await send(1, { country: 'NL' })).rules).toEqual([''])
    expect((await send(1, { country: 'CU' })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
    expect((await send(1, { country: null })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
    expect((await send(1, { numberType: 'premium' })).rules).toEqual(['NUMBER_TYPE'])
    expect((await send(1, { numberType: 'satellite' })).rules).toEqual([''])
    expect((await send(1, { numberType: 'fixedLine', channels: ['sms'] })).rules).toEqual(['NUMBER_TYPE'])
    expect((await send(1, { numberType: 'fixedLine', channels: ['voice'] })).rules).toEqual([''])
    const line = createRequest({ numberType: 'fixedLine' })
    expect(guard.refusedChannels(line)).toEqual(['sms'])
    expect(guard.refusedChannels({ ...line, environment: 'test' })).toEqual([])
  })

  test.each<[string, Partial<GuardSettings['trusted']>, Partial<GuardedMessage>]>([
    ['a country', { prefixes: ['+31'] }, {}],
    ['an address', { addresses: ['203.0.113.0/24'] }, { clientIp: '203.0.113.77' }],
    ['an IPv6 network', { addresses: ['2001:db8::/32'] }, { clientIp: '2001:db8:5::1' }],
  ])('let trusted numbers and networks (%s) pass without counting them', async (_, trusted, overrides) => {
    const { send } = createStored({ countries: ['BE'], trusted: { ...guardOff.trusted, ...trusted } })
    expect((await send(4, overrides)).rules).toEqual(Array(4).fill(''))
    for (const table of guardTables()) expect(await opened.database.read.select().from(table)).toEqual([])
  })

  test('do not apply to test applications and virtual numbers', async () => {
    const { send } = createGuardBench({ countries: ['BE'] })
    expect((await send(1, { environment: 'test' })).rules).toEqual([''])
    expect((await send(1, { phone: '+9991234567890', country: null })).rules).toEqual([''])
  })
})

test('a known phone passes every rule but the lists and the daily cap, and is not counted', async () => {
  const bench = createGuardBench({ totalPerDay: 150 })
  await sendSlowly(bench, 120, 3 * minuteMs)
  const sender = { ...stranger, isKnownPhone: true }
  const { request, rules } = await bench.send(40, { phone: '+31611110001' }, sender)
  expect(countOf(rules, '')).toBeGreaterThan(30)
  expect(countOf(rules, 'TOTAL_DAILY')).toBe(40 - countOf(rules, ''))
  await bench.verify(request, sender)
})

test('a message that the daily cap refuses does not count against the allowances', async () => {
  const bench = createGuardBench({ totalPerDay: 2 })
  const { rules } = await bench.send(10)
  expect(rules).toEqual(['', '', ...Array<string>(8).fill('TOTAL_DAILY')])
  expect(bench.usage('dev_1 NL').unverified).toBe(2)
})

test('monitor mode allows and counts everything, and names the violated rules', async () => {
  const { send } = createStored({ mode: 'monitor', deniedCountries: ['NL'], totalPerDay: 2 })
  const { rules } = await send(64, { phone: '+31611110001' })
  expect(rules[0]).toBe('COUNTRY_NOT_ALLOWED')
  expect(rules[63]).toBe('COUNTRY_NOT_ALLOWED TOTAL_DAILY PREFIX_UNVERIFIED')
  expect(
    (await store.read.guard.decisions(0)).find(({ rule }) => rule === 'PREFIX_UNVERIFIED'),
  ).toMatchObject({
    country: 'NL',
    flagged: 10,
    blocked: 0,
  })
})

test('new settings apply from the next message on, and counts are kept', async () => {
  const { send, guard } = createGuardBench()
  const prefix = { phone: '+31611110001' }
  await send(54, prefix)
  guard.configure({ ...guardOff, mode: 'off' })
  expect((await send(1, prefix)).rules).toEqual([''])
  guard.configure(guardOff)
  expect((await send(1, prefix)).rules).toEqual(['PREFIX_UNVERIFIED'])
})

test('the tables hold neither a phone number nor an address', async () => {
  const { send, verify } = createStored({ mode: 'monitor', deniedCountries: ['NL'] })
  const { request } = await send(1, { phone: '+31612345678', clientIp: '203.0.113.9' })
  await verify(request, device('hash'))
  const rows = []
  for (const table of guardTables()) {
    const found = await opened.database.read.select().from(table)
    expect(found.length).toBeGreaterThan(0)
    rows.push(...found)
  }
  expect(JSON.stringify(rows)).not.toMatch(/31612|203\.0|cb00/)
})
