import { expect, test } from 'bun:test'
import {
  createGuardRowKeys,
  firstNames,
  namesOf,
  prefixKey,
  type GuardedMessage,
  type GuardKeys,
} from '../../../src/domain/guard/row-keys.ts'
import type { GuardRow } from '../../../src/domain/model/guard.ts'
import { dayMs, utcDay } from '../../../src/shared/durations.ts'
import { guardOff, stranger } from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'

const now = 20_000 * dayMs
const message: GuardedMessage = {
  developerId: 'dev_1',
  environment: 'live',
  phone: '+31612345678',
  country: 'NL',
  clientIp: '203.0.113.9',
  provider: null,
  createdAt: now - dayMs,
  resends: 0,
  numberType: null,
}
const home = { ...stranger, contexts: ['home', 'device'] }
const known = { ...home, isKnownPhone: true }
const keys = createGuardRowKeys({ ...guardOff, deniedCountries: ['CU'], totalPerDay: 5 }, testKeys)
const hour = now / 3_600_000
/** A country with as many verified phones and unverified messages. */
const country = (evidence: number, unverified: number): GuardRow => ({
  windows: { unverified: [hour, unverified], evidence: [20_000, evidence], hour },
  alertedAt: 0,
  until: 0,
})

/** Names the rows of a call. @param stored row of the country */
const namesFor = (guardKeys: GuardKeys | undefined, stored?: GuardRow) =>
  guardKeys && namesOf({ row: (key) => (key === 'dev_1 NL' ? stored : undefined) }, guardKeys, now)

const hash = expect.stringMatching(/^[\w-]{16}$/)

test('a message of a stranger reads its country, prefix, network, device, the pool and the total', () => {
  const names = ['dev_1 NL', hash, hash, 'device', 'dev_1 pool', 'total 20000']
  expect(namesFor(keys.keysToJudge(message, home, now), country(1, 0))).toEqual(names)
})

test('and the history once an hour', () => {
  const old = { ...country(1, 0), windows: { evidence: [20_000, 1], hour: hour - 1 } }
  expect(namesFor(keys.keysToJudge(message, home, now), old)?.at(-1)).toBe('dev_1 NL history')
})

test('a known phone reads the total alone, and a forbidden country nothing', () => {
  expect(namesFor(keys.keysToJudge(message, known, now))).toEqual(['total 20000'])
  expect(namesFor(keys.keysToJudge({ ...message, country: 'CU' }, home, now))).toEqual([])
})

test.each([
  ['Argentina', '+5491155550001', '+541155559999'],
  ['Brazil', '+5511987650001', '+551187659999'],
])('both spellings of the subscribers of a block have one prefix (%s)', (_, long, short) => {
  expect(prefixKey(testKeys, 'dev_1', long)).toBe(prefixKey(testKeys, 'dev_1', short))
})

test('a verified code reads its subjects, and the pool, which may have paid for messages of the country', () => {
  const names = ['dev_1 NL', hash, hash, 'device', 'dev_1 pool']
  expect(firstNames(keys.keysToConvert(message, home, now) ?? {})).toEqual(names)
})

test('a known phone that was counted today reads nothing but the total, wherever it is verified', () => {
  expect(keys.keysToConvert(message, { ...known, verifiedAt: now }, now)).toBeUndefined()
  expect(keys.keysToConvert(message, { ...known, verifiedAt: now - dayMs }, now)).toBeDefined()
  expect(keys.keysToRevert(message, known)).toEqual({
    total: `total ${utcDay(message.createdAt)}`,
    spend: undefined,
  })
})

test('exempt requests have no keys', () => {
  const off = createGuardRowKeys({ ...guardOff, mode: 'off' }, testKeys)
  expect(off.keysToJudge(message, home, now)).toBeUndefined()
  expect(off.keysToConvert(message, home, now)).toBeUndefined()
  expect(keys.keysToJudge({ ...message, environment: 'test' }, home, now)).toBeUndefined()
})
