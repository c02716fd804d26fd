import { describe, expect, test } from 'bun:test'
import { findExceeded, isFromPool, type Usage, type Usages } from '../../../src/domain/guard/allowances.ts'

const usage = (unverified = 0, evidence = 0, inFlight = 0, earlier = unverified): Usage => ({
  unverified,
  lastHour: 0,
  evidence,
  inFlight,
  earlier,
})
const usages = (changes: Partial<Usages>): Usages => ({
  country: usage(0, 1000),
  namedBase: undefined,
  pool: 0,
  drawn: 0,
  prefix: usage(),
  network: undefined,
  device: undefined,
  isRepeat: false,
  ...changes,
})

describe('an allowance', () => {
  test.each<[string, Partial<Usages>, Partial<Usages>, string]>([
    ['of a country', { country: usage(299, 10) }, { country: usage(300, 10) }, 'COUNTRY_UNVERIFIED'],
    ['of a cold country', { country: usage(99) }, { country: usage(100) }, 'COUNTRY_UNVERIFIED'],
    [
      'of a named country',
      { country: usage(1199, 10), namedBase: 1000 },
      { country: usage(1200, 10), namedBase: 1000 },
      'COUNTRY_UNVERIFIED',
    ],
    ['of the pool', { country: usage(), pool: 299 }, { country: usage(), pool: 300 }, 'POOL_UNVERIFIED'],
    ['of a prefix', { prefix: usage(49, 1) }, { prefix: usage(50, 1) }, 'PREFIX_UNVERIFIED'],
    ['of a network', { network: usage(39, 1) }, { network: usage(40, 1) }, 'NETWORK_UNVERIFIED'],
    ['of a device', { device: usage(9, 1) }, { device: usage(10, 1) }, 'DEVICE_UNVERIFIED'],
  ])('%s takes one message more, and no other', (_, below, spent, rule) => {
    expect(findExceeded(usages(below))).toEqual([])
    expect(findExceeded(usages(spent))).toEqual([rule as never])
    // A challenge that was solved passes up to three times of all of them.
    expect(findExceeded(usages(spent), 3)).toEqual([])
  })

  test('is never lowered by what is sent: only spent', () => {
    for (const evidence of [0, 1, 5, 50])
      for (let unverified = 0; unverified < 20 * evidence; unverified++)
        expect(findExceeded(usages({ country: usage(unverified, evidence) }))).toEqual([])
  })
})

test('messages in flight count a fifth, up to 30 in a prefix and any number in a network', () => {
  expect(findExceeded(usages({ prefix: usage(53, 0, 53) }))).toEqual([])
  expect(findExceeded(usages({ prefix: usage(54, 0, 54) }))).toEqual(['PREFIX_UNVERIFIED'])
  expect(findExceeded(usages({ network: usage(149, 0, 149) }))).toEqual([])
  expect(findExceeded(usages({ network: usage(150, 0, 150) }))).toEqual(['NETWORK_UNVERIFIED'])
  // Those of countries and the pool are bounds without exception.
  expect(findExceeded(usages({ country: usage(100, 0, 100) }))).toEqual(['COUNTRY_UNVERIFIED'])
})

test('the pool pays for what is beyond the own allowance of a country that is not named', () => {
  expect(isFromPool({ country: usage(19, 1), namedBase: undefined })).toBe(false)
  expect(isFromPool({ country: usage(20, 1), namedBase: undefined })).toBe(true)
  expect(isFromPool({ country: usage(20, 1), namedBase: 100 })).toBe(false)
})

describe('once half of the allowance of a country is spent', () => {
  const half = { country: usage(1250, 120) }

  test('it is of what other countries left in the pool', () => {
    const few = { country: usage(60, 5), network: usage(6) }
    for (const [pool, drawn, rules] of [
      [0, 0, []],
      [260, 0, []],
      [300, 0, ['FAIR_SHARE']],
      // The country took 30 of it.
      [300, 30, []],
    ] as const)
      expect(findExceeded(usages({ ...few, pool, drawn }))).toEqual([...rules])
    expect(findExceeded(usages({ ...few, namedBase: 100, pool: 300 }))).toEqual([])
    expect(findExceeded(usages({ ...few, pool: 300 }), 3)).toEqual([])
  })

  test('networks pass that sent least; devices where no network is told', () => {
    for (const [sent, rules] of [
      [0, []],
      [3, []],
      [20, ['FAIR_SHARE']],
    ] as const) {
      expect(findExceeded(usages({ ...half, network: usage(sent) }))).toEqual([...rules])
    }
    expect(findExceeded(usages({ ...half, device: usage(9, 1) }))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages(half))).toEqual([])
  })

  test('half of the allowance of a prefix in which phones were verified counts too', () => {
    for (const [prefix, sent, rules] of [
      [usage(115, 10), 20, ['FAIR_SHARE']],
      [usage(115, 10), 0, []],
      [usage(114, 10), 20, []],
      // A fifth of what is in flight.
      [{ ...usage(138, 10), inFlight: 30 }, 20, []],
      // Without a verified phone, no customer is known there.
      [usage(29), 20, []],
    ] as const)
      expect(findExceeded(usages({ prefix, network: usage(sent) }))).toEqual([...rules])
    expect(findExceeded(usages({ prefix: usage(115, 10), network: usage(20) }), 3)).toEqual([])
  })

  test('near the end only the first message of a network does, and more for its verified phones', () => {
    const end = { country: usage(2000, 120) }
    expect(findExceeded(usages({ ...end, network: usage(0) }))).toEqual([])
    expect(findExceeded(usages({ ...end, network: usage(1) }))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages({ ...end, network: usage(20, 20) }))).toEqual([])
    expect(findExceeded(usages({ ...end, network: usage(9), device: usage(0) }))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages({ ...end, network: usage(9), device: usage(0, 1) }))).toEqual([])
    const last = { country: usage(2450, 120) }
    expect(findExceeded(usages({ ...last, network: usage(0) }))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages({ ...last, network: usage(0, 1) }))).toEqual([])
  })

  test('so it is at a pace that would spend half of it in a day, from a message a minute and a tenth on', () => {
    const at = (lastHour: number, evidence: number, spent = 500): Partial<Usages> => ({
      country: { ...usage(spent, evidence), lastHour },
      network: usage(1),
    })
    expect(findExceeded(usages(at(100, 235)))).toEqual([])
    expect(findExceeded(usages(at(110, 200)))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages(at(59, 100)))).toEqual([])
    // The allowance is not scarce because of a burst that hardly touches it.
    expect(findExceeded(usages(at(400, 200, 400)))).toEqual([])
  })

  test.each([
    { spent: 1_260, lastHour: 0, messages: 7 },
    { spent: 1_260, lastHour: 79, messages: 5 },
    { spent: 1_260, lastHour: 1_000, messages: 2 },
    { spent: 1_490, lastHour: 0, messages: 7 },
    { spent: 1_490, lastHour: 1_000, messages: 2 },
    { spent: 1_510, lastHour: 1_000, messages: 1 },
  ])(
    'a network may ask again, or correct a number: less often at a high pace, and once three fifths are spent ($spent, $lastHour)',
    ({ spent, lastHour, messages }) => {
      const country = { ...usage(spent, 120), lastHour }
      for (const [sent, rules] of [
        [messages - 1, []],
        [messages, ['FAIR_SHARE']],
      ] as const) {
        expect(findExceeded(usages({ country, network: usage(sent), isRepeat: true }))).toEqual([...rules])
        expect(findExceeded(usages({ country, network: usage(sent, 0, 1) }))).toEqual([...rules])
      }
    },
  )

  test('a network that verified nothing is known by its unverified messages of two weeks', () => {
    const end = { country: usage(2000, 120) }
    expect(findExceeded(usages({ ...end, network: usage(0, 0, 0, 1) }))).toEqual(['FAIR_SHARE'])
    expect(findExceeded(usages({ ...end, network: usage(0, 1, 0, 9) }))).toEqual([])
  })
})
