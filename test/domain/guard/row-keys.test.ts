import { expect, test } from 'bun:test'
import { loadGuardFacts } from '../../../src/domain/guard/facts.ts'
import { createGuardRowKeys, type GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { unusedCountry, type GuardCountry, type GuardCounts } from '../../../src/domain/model/guard.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import { guardOff } from '../../helpers/guard.ts'
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
  costlyType: null,
}
const stranger = { isKnownPhone: false, contexts: ['home'] }
const known = { isKnownPhone: true, contexts: ['home'] }
const keys = createGuardRowKeys({ ...guardOff, deniedCountries: ['CU'], totalPerDay: 5 }, testKeys)

/** Records the rows that are asked for. */
function recordingRows({ country, counts }: { country?: GuardCountry; counts?: GuardCounts } = {}) {
  const asked: Array<readonly string[]> = []
  return {
    asked,
    rows: {
      country: (subject: string) => {
        asked.push([subject])
        return Promise.resolve(country)
      },
      counts: (locked: readonly string[], others: readonly string[]) => {
        asked.push(locked, others)
        return Promise.resolve(new Map(counts ? locked.map((key) => [key, counts]) : []))
      },
      contexts: (contexts: readonly string[]) => {
        asked.push(contexts)
        return Promise.resolve(new Map<string, number>())
      },
    },
  }
}

test('a message of a stranger reads its country, the counts of two days and the total', async () => {
  const { asked, rows } = recordingRows()
  await loadGuardFacts(rows, keys.keysToJudge(message, stranger, now))
  const hash = '[\\w-]{16}'
  const on = (day: number) => expect.stringMatching(new RegExp(`^${day} ${hash}$`))
  expect(asked).toEqual([['dev_1 NL'], [on(20_000), on(20_000), '20000 total'], [on(19_999), on(19_999)]])
  const [, [first, second] = []] = asked
  expect((first ?? '') < (second ?? '')).toBe(true)
})

test.each([
  ['its country has an alert', { country: { ...unusedCountry, alertUntil: now + 1 } }],
  [
    'its prefix is exhausted',
    { counts: { unverified: 30, verified: 0, slot: 0, pending: 0, pendingBefore: 0, firstAt: 1 } },
  ],
])('it reads contexts and network only if a rule may block it: %s', async (_, stored) => {
  const { asked, rows } = recordingRows(stored)
  await loadGuardFacts(rows, keys.keysToJudge(message, stranger, now))
  expect(asked.at(-1)).toEqual(['home', expect.stringMatching(/^[\w-]{16}$/)])
})

test('a known phone reads the total alone, and a forbidden country nothing', async () => {
  const { asked, rows } = recordingRows()
  await loadGuardFacts(rows, keys.keysToJudge(message, known, now))
  expect(asked.splice(0)).toEqual([['20000 total'], []])
  await loadGuardFacts(rows, keys.keysToJudge({ ...message, country: 'CU' }, stranger, now))
  expect(asked).toEqual([])
})

test('a verified code reads the counts of the day of its send', async () => {
  const { asked, rows } = recordingRows()
  await loadGuardFacts(rows, keys.keysToConvert(message, stranger))
  const [[country] = [], locked = [], others] = asked
  expect([country, locked.map((key) => key.slice(0, 6)), others]).toEqual([
    'dev_1 NL',
    ['19999 ', '19999 '],
    [],
  ])
  asked.length = 0
  await loadGuardFacts(rows, keys.keysToConvert(message, known))
  expect(asked).toEqual([])
  expect(keys.keysToRevert(message, known)).toBeUndefined()
})

test('exempt requests have no keys', () => {
  const off = createGuardRowKeys({ ...guardOff, mode: 'off' }, testKeys)
  expect(off.keysToJudge(message, stranger, now)).toBeUndefined()
  expect(off.keysToConvert(message, stranger)).toBeUndefined()
  expect(keys.keysToJudge({ ...message, environment: 'test' }, stranger, now)).toBeUndefined()
})
