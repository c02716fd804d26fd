import { expect, test } from 'bun:test'
import { readGuardFacts } from '../../../src/domain/guard/facts.ts'
import { createGuardRowKeys, type GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import type { GuardRow } from '../../../src/domain/model/guard.ts'
import { dayMs } from '../../../src/shared/durations.ts'
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
const country = (evidence: number, unverified: number, drawn = 0): GuardRow => ({
  windows: [[hour, unverified], [20_000, evidence], [], drawn > 0 ? [hour, drawn] : [], [0, hour, 0, 0]],
  alertedAt: 0,
  until: 0,
})

/** Records the rows that are asked for: at first, and then. */
function recordingRows(stored?: GuardRow) {
  const asked: Array<readonly string[]> = []
  const rows = (names: readonly string[]) => {
    asked.push(names)
    return new Map(stored && names.includes('dev_1 NL') ? [['dev_1 NL', stored]] : [])
  }
  return { asked, rows: { rows } }
}

const hash = expect.stringMatching(/^[\w-]{16}$/)
const subjects = ['dev_1 NL', 'device', 'total 20000']

test('a message of a stranger reads its country, prefix, network, device and the total, in their order', async () => {
  const { asked, rows } = recordingRows(country(1, 0))
  readGuardFacts(rows, keys.keysToJudge(message, home, now))
  const [first = []] = asked
  expect(asked).toHaveLength(1)
  expect(first.filter((key) => !subjects.includes(key))).toEqual([hash, hash])
  expect(first).toEqual(expect.arrayContaining(subjects))
})

test.each<[string, GuardRow | undefined, string[]]>([
  ['the pool where the country has spent its own allowance', country(1, 20), ['dev_1 pool']],
  ['nothing more where it has not', country(1, 19), []],
  [
    'the history once an hour',
    { ...country(1, 0), windows: [[], [20_000, 1], [], [], [0, hour - 1, 0, 0]] },
    ['dev_1 NL history'],
  ],
])('and %s', async (_, stored, further) => {
  const { asked, rows } = recordingRows(stored)
  readGuardFacts(rows, keys.keysToJudge(message, home, now))
  expect(asked.slice(1)).toEqual(further.length > 0 ? [further] : [])
})

test('a known phone reads the total alone, and a forbidden country nothing', async () => {
  const { asked, rows } = recordingRows()
  readGuardFacts(rows, keys.keysToJudge(message, known, now))
  expect(asked.splice(0)).toEqual([['total 20000']])
  readGuardFacts(rows, keys.keysToJudge({ ...message, country: 'CU' }, home, now))
  expect(asked).toEqual([])
})

test('a verified code reads its subjects, and the pool if that paid for messages of the country', async () => {
  for (const [stored, further] of [
    [country(1, 0), []],
    [country(1, 30, 10), [['dev_1 pool']]],
  ] as const) {
    const { asked, rows } = recordingRows(stored)
    readGuardFacts(rows, keys.keysToConvert(message, home, now))
    expect(asked[0]).toHaveLength(4)
    expect(asked.slice(1)).toEqual([...further])
  }
})

test('a known phone that was counted today reads nothing', () => {
  const subjectKeys = keys.keysToConvert(message, known, now)?.subjects
  const verifiedFrom = [subjectKeys?.network, 'device'].map((key = '') => ({ hash: key, verifiedAt: now }))
  expect(keys.keysToConvert(message, { ...known, verifiedAt: now }, now)).toBeDefined()
  expect(keys.keysToConvert(message, { ...known, verifiedAt: now, verifiedFrom }, now)).toBeUndefined()
  const yesterday = { ...known, verifiedAt: now - dayMs, verifiedFrom }
  expect(keys.keysToConvert(message, yesterday, now)).toBeDefined()
  expect(keys.keysToRevert(message, known)).toBeUndefined()
})

test('exempt requests have no keys', () => {
  const off = createGuardRowKeys({ ...guardOff, mode: 'off' }, testKeys)
  expect(off.keysToJudge(message, home, now)).toBeUndefined()
  expect(off.keysToConvert(message, home, now)).toBeUndefined()
  expect(keys.keysToJudge({ ...message, environment: 'test' }, home, now)).toBeUndefined()
})
