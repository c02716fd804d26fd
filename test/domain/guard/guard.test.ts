import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { GuardedRequest } from '../../../src/domain/guard/guard.ts'
import type { GuardSettings } from '../../../src/domain/guard/rules.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../../helpers/guard.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let store: Store
beforeAll(async () => {
  opened = await openTestSqlite()
  store = createStore(opened.database)
})
afterAll(() => opened.dispose())
beforeEach(async () => {
  const { guardWindows, guardDays, guardAddressCountries, guardDecisions } = opened.database.tables
  await opened.database.write(async (tx) => {
    for (const table of [guardWindows, guardDays, guardAddressCountries, guardDecisions])
      await tx.delete(table)
  })
})

const createBench = (changes: Partial<GuardSettings>) =>
  createGuardFixture(store, { ...guardOff, ...changes })
const unverified = (limits: Partial<GuardSettings['unverified']>) => ({
  unverified: { ...guardOff.unverified, ...limits },
})
const passed = (count: number) => Array<string>(count).fill('')

describe('a country', () => {
  test('is denied the fourth unverified message of an hour', async () => {
    const { send, clock } = createBench(unverified({ countryPerHour: 3 }))
    expect((await send(5)).rules).toEqual([...passed(3), 'COUNTRY_HOURLY', 'COUNTRY_HOURLY'])
    expect((await send(1, { country: 'BE' })).rules).toEqual([''])
    expect((await send(1, { appId: 'app_2' })).rules).toEqual([''])
    clock.advance(hourMs + 15 * minuteMs)
    // Blocked messages never counted, so the continuing attack does not prolong the block.
    expect((await send(4)).rules).toEqual([...passed(3), 'COUNTRY_HOURLY'])
  })

  test('never gets more than that in any hour', async () => {
    const { send, clock } = createBench(unverified({ countryPerHour: 3 }))
    const sentAt: number[] = []
    for (let step = 0; step < 600; step++) {
      if ((await send(1)).rules[0] === '') sentAt.push(clock.now())
      clock.advance(minuteMs)
    }
    expect(sentAt.length).toBeGreaterThan(20)
    for (const at of sentAt) expect(sentAt.filter((t) => t >= at && t < at + hourMs).length).toBeLessThan(4)
  })

  test('is denied the twenty-first unverified message of a day', async () => {
    const { send, clock } = createBench(unverified({ countryPerDay: 20 }))
    for (let hour = 0; hour < 20; hour++) {
      expect((await send(1)).rules).toEqual([''])
      clock.advance(hourMs)
    }
    expect((await send(1)).rules).toEqual(['COUNTRY_DAILY'])
    clock.advance(4 * hourMs + 15 * minuteMs)
    expect((await send(2)).rules).toEqual(['', 'COUNTRY_DAILY'])
  })

  test('with verified codes may get more: 20 % of them in an hour, 30 % in a day', async () => {
    const { send, verify } = createBench(unverified({ countryPerHour: 3, countryPerDay: 20 }))
    for (let user = 0; user < 100; user++) await verify((await send(1)).request)
    expect((await send(21)).rules).toEqual([...passed(20), 'COUNTRY_HOURLY'])
  })

  test('is measured by its best day of the last 14', async () => {
    const { send, verify, clock } = createBench(unverified({ countryPerHour: 3, countryPerDay: 20 }))
    for (let user = 0; user < 120; user++) await verify((await send(1)).request)
    clock.advance(14 * dayMs)
    // 120 / 6 × 20 % in an hour, and 120 × 30 % in a day.
    expect((await send(5)).rules).toEqual([...passed(4), 'COUNTRY_HOURLY'])
    clock.advance(dayMs)
    expect((await send(4)).rules).toEqual([...passed(3), 'COUNTRY_HOURLY'])
  })

  test('counts a resend as another message, and a verification takes back all messages of its request', async () => {
    const { evaluate, createRequest, verify, send } = createBench(unverified({ countryPerHour: 3 }))
    const request = createRequest()
    await evaluate(request)
    expect((await evaluate({ ...request, resends: 0 })).blocked).toBe(false)
    expect((await evaluate({ ...request, resends: 1 })).blocked).toBe(false)
    expect((await evaluate({ ...request, resends: 2 })).violatedRules).toEqual(['COUNTRY_HOURLY'])
    await verify({ ...request, resends: 2 })
    expect((await send(4)).rules).toEqual([...passed(3), 'COUNTRY_HOURLY'])
  })

  test('is not charged for messages that no provider accepted', async () => {
    const { send, revert: withdraw } = createBench(unverified({ countryPerHour: 3 }))
    for (let outage = 0; outage < 5; outage++) {
      const { request, rules } = await send(1)
      expect(rules).toEqual([''])
      await withdraw(request)
    }
    expect((await send(4)).rules).toEqual([...passed(3), 'COUNTRY_HOURLY'])
  })

  test('outside the allow-list or on the deny-list gets nothing', async () => {
    const { send } = createBench({ countries: ['NL', 'BE'], deniedCountries: ['BE'] })
    expect((await send(1, { country: 'NL' })).rules).toEqual([''])
    expect((await send(1, { country: 'BE' })).rules).toEqual(['COUNTRY_DENIED'])
    expect((await send(1, { country: 'CU' })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
    // A satellite number has no country and is not exempt for that.
    expect((await send(1, { country: null, phone: '+881612345678' })).rules).toEqual(['COUNTRY_NOT_ALLOWED'])
  })
})

describe('a phone prefix', () => {
  const near = (n: number): Partial<GuardedRequest> => ({ phone: `+31611111${String(n).padStart(3, '0')}` })

  test('is denied the sixth unverified message of an hour, whatever the last four digits', async () => {
    const { evaluate, createRequest } = createBench(unverified({ prefixPerHour: 5 }))
    const verdicts = []
    for (let n = 0; n < 6; n++)
      verdicts.push((await evaluate(createRequest(near(n)))).violatedRules.join(' '))
    expect(verdicts).toEqual([...passed(5), 'PREFIX_HOURLY'])
    expect((await evaluate(createRequest({ phone: '+31611121000' }))).blocked).toBe(false)
  })

  test('is denied the eleventh of a day, and gets more if it verifies', async () => {
    const { send, verify, clock } = createBench(unverified({ prefixPerDay: 10 }))
    expect((await send(11, near(1))).rules).toEqual([...passed(10), 'PREFIX_DAILY'])
    clock.advance(dayMs + 15 * minuteMs)
    for (let user = 0; user < 40; user++) await verify((await send(1, near(1))).request)
    expect((await send(13, near(1))).rules).toEqual([...passed(12), 'PREFIX_DAILY'])
  })
})

describe('a client address', () => {
  const from = (clientIp: string) => ({ clientIp })

  test('is denied the sixth unverified message of an hour, as is its whole /64', async () => {
    const { send } = createBench(unverified({ addressPerHour: 5 }))
    expect((await send(6, from('203.0.113.9'))).rules).toEqual([...passed(5), 'ADDRESS_HOURLY'])
    expect((await send(1, from('203.0.113.10'))).rules).toEqual([''])
    expect((await send(1)).rules).toEqual([''])
    await send(5, from('2001:db8:1:2::1'))
    expect((await send(1, from('2001:db8:1:2:ffff::9'))).rules).toEqual(['ADDRESS_HOURLY'])
    expect((await send(1, from('2001:db8:1:3::1'))).rules).toEqual([''])
    expect((await send(1, from('::ffff:203.0.113.9'))).rules).toEqual(['ADDRESS_HOURLY'])
  })

  test('is denied the eleventh of a day, and gets more if it verifies', async () => {
    const { send, verify, clock } = createBench(unverified({ addressPerDay: 10 }))
    expect((await send(11, from('203.0.113.9'))).rules).toEqual([...passed(10), 'ADDRESS_DAILY'])
    clock.advance(dayMs + 15 * minuteMs)
    for (let user = 0; user < 40; user++) await verify((await send(1, from('203.0.113.9'))).request)
    expect((await send(13, from('203.0.113.9'))).rules).toEqual([...passed(12), 'ADDRESS_DAILY'])
  })

  test('may send to three countries without verifying there, and to no fourth', async () => {
    const { send, verify, clock } = createBench(unverified({ addressCountries: 3 }))
    const to = async (country: string) => (await send(1, { country, ...from('203.0.113.9') })).rules[0]
    expect(await to('NL')).toBe('')
    expect(await to('BE')).toBe('')
    const { request } = await send(1, { country: 'FR', ...from('203.0.113.9') })
    expect(await to('DE')).toBe('ADDRESS_COUNTRIES')
    expect(await to('NL')).toBe('')
    await verify(request)
    expect(await to('DE')).toBe('')
    expect(await to('GB')).toBe('ADDRESS_COUNTRIES')
    expect(await to('FR')).toBe('')
    clock.advance(dayMs)
    expect(await to('GB')).toBe('')
  })
})

describe('a cap', () => {
  test('on an application resets at midnight UTC', async () => {
    const { send, clock } = createBench({ caps: { applicationPerDay: 4, totalPerDay: 0 } })
    expect((await send(5)).rules).toEqual([...passed(4), 'APPLICATION_DAILY'])
    expect((await send(1, { appId: 'app_2' })).rules).toEqual([''])
    clock.advance(12 * hourMs - 1)
    expect((await send(1)).rules).toEqual(['APPLICATION_DAILY'])
    clock.advance(1)
    expect((await send(5)).rules).toEqual([...passed(4), 'APPLICATION_DAILY'])
  })

  test('on the total counts every application, and only messages that are sent', async () => {
    const { send } = createBench({ deniedCountries: ['BE'], caps: { applicationPerDay: 3, totalPerDay: 5 } })
    await send(9, { country: 'BE' })
    expect((await send(4)).rules).toEqual([...passed(3), 'APPLICATION_DAILY'])
    expect((await send(3, { appId: 'app_2' })).rules).toEqual([...passed(2), 'TOTAL_DAILY'])
    const day = Math.floor(Date.parse('2026-11-20T12:00:00Z') / dayMs)
    expect(await store.read.guard.sentOn('app_2', day)).toBe(2)
    expect(await store.read.guard.sentOn('total', day)).toBe(5)
  })
})

describe('the exemptions', () => {
  const everything = { countryPerHour: 1, prefixPerHour: 1, addressPerHour: 1, addressCountries: 1 }

  test.each<[string, Partial<GuardSettings['trusted']>, Partial<GuardedRequest>]>([
    ['a country', { countries: ['NL'] }, { country: 'NL' }],
    ['numbers of no country', { countries: ['001'] }, { country: null, phone: '+881612345678' }],
    ['a prefix', { prefixes: ['+3161'] }, { phone: '+31611111111' }],
    ['an address', { addresses: ['203.0.113.0/24'] }, { clientIp: '203.0.113.77' }],
    ['an IPv6 network', { addresses: ['2001:db8::/32'] }, { clientIp: '2001:db8:5::1' }],
  ])('let %s pass every rule without counting it', async (_, trusted, overrides) => {
    const settings = {
      ...unverified(everything),
      countries: ['BE'],
      caps: { applicationPerDay: 1, totalPerDay: 1 },
      trusted: { ...guardOff.trusted, ...trusted },
    }
    const { send, verify } = createBench(settings)
    const { request, rules } = await send(4, overrides)
    expect(rules).toEqual(passed(4))
    await verify(request)
    expect(await opened.database.read.select().from(opened.database.tables.guardWindows)).toEqual([])
    expect((await send(2, { country: 'BE', phone: '+32470000001', clientIp: '198.51.100.1' })).rules[0]).toBe(
      '',
    )
    expect((await send(1, { country: 'NL', phone: '+31701111111', clientIp: '203.0.112.77' })).rules[0]).toBe(
      trusted.countries?.includes('NL') ? '' : 'COUNTRY_NOT_ALLOWED',
    )
  })

  test('cover test applications and virtual numbers', async () => {
    const { send } = createBench({ countries: ['BE'] })
    expect((await send(1, { environment: 'test' })).rules).toEqual([''])
    expect((await send(1, { phone: '+9991234567890', country: null })).rules).toEqual([''])
  })
})

describe('a guard in monitor mode', () => {
  test('allows and counts everything, and names every violated rule', async () => {
    const { send, createRequest, evaluate } = createBench({
      mode: 'monitor',
      ...unverified({ countryPerHour: 2, prefixPerHour: 2, addressPerHour: 2 }),
      deniedCountries: ['NL'],
      caps: { applicationPerDay: 2, totalPerDay: 2 },
    })
    const overrides = { phone: '+31611111111', clientIp: '203.0.113.9' }
    expect((await send(2, overrides)).rules).toEqual(['COUNTRY_DENIED', 'COUNTRY_DENIED'])
    const verdict = await evaluate(createRequest(overrides))
    expect(verdict.blocked).toBe(false)
    expect(verdict.violatedRules).toEqual([
      'COUNTRY_DENIED',
      'COUNTRY_HOURLY',
      'PREFIX_HOURLY',
      'ADDRESS_HOURLY',
      'APPLICATION_DAILY',
      'TOTAL_DAILY',
    ])
    const decisions = await store.read.guard.decisions(0)
    expect(decisions.find(({ rule }) => rule === 'COUNTRY_DENIED')).toEqual({
      rule: 'COUNTRY_DENIED',
      country: 'NL',
      flagged: 3,
      blocked: 0,
    })
  })

  test('counts nothing once it is off', async () => {
    const { send, verify } = createBench({
      mode: 'off',
      deniedCountries: ['NL'],
      ...unverified({ countryPerHour: 1 }),
    })
    const { request, rules } = await send(3)
    expect(rules).toEqual(passed(3))
    await verify(request)
    expect(await opened.database.read.select().from(opened.database.tables.guardWindows)).toEqual([])
  })
})

test('new settings apply from the next message on, and counts are kept', async () => {
  const { send, guard } = createBench(unverified({ countryPerHour: 3 }))
  await send(3)
  guard.configure({ ...guardOff, ...unverified({ countryPerHour: 5 }) })
  expect((await send(3)).rules).toEqual([...passed(2), 'COUNTRY_HOURLY'])
  guard.configure({ ...guardOff, mode: 'off' })
  expect((await send(1)).rules).toEqual([''])
})

test('the tables hold neither a phone number nor an address', async () => {
  const { send, verify } = createBench({
    ...unverified({ countryPerHour: 9, addressCountries: 3 }),
    mode: 'monitor',
    deniedCountries: ['NL'],
  })
  await verify((await send(1, { phone: '+31612345678', clientIp: '203.0.113.9' })).request)
  const { guardWindows, guardDays, guardAddressCountries, guardDecisions } = opened.database.tables
  const rows = []
  for (const table of [guardWindows, guardDays, guardAddressCountries, guardDecisions]) {
    const found = await opened.database.read.select().from(table)
    expect(found.length).toBeGreaterThan(0)
    rows.push(...found)
  }
  expect(JSON.stringify(rows)).not.toMatch(/31612|203\.0|cb00/)
})
