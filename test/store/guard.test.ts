import { describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { noGuardChanges } from '../../src/domain/store/guard.ts'
import { GuardFault } from '../../src/domain/model/guard.ts'
import type { GuardChanges } from '../../src/domain/store/guard.ts'
import { dayMs, hourMs } from '../../src/shared/durations.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, openTestSqlite, raceRounds } from '../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../helpers/guard.ts'
import { testKeys } from '../helpers/keys.ts'

describeEachDatabase("the guard's counters", (database, kind) => {
  const store = () => createStore(database(), { keys: testKeys })
  const apply = (changes: Partial<GuardChanges>) =>
    store().write(({ guard }) => guard.apply({ ...noGuardChanges(), ...changes }))

  test('are read as they were last written, by their keys', async () => {
    const row = { windows: { unverified: [1, 2, 3] }, alertedAt: 5, until: 20_000 }
    await apply({ rows: new Map([['b', row]]) })
    const rows = new Map([
      ['b', { ...row, alertedAt: 6 }],
      ['a', row],
    ])
    await apply({ rows })
    await store().write(async ({ guard }) => {
      expect(await guard.rows(['a', 'b', 'gone'])).toEqual(rows)
      expect(await guard.rows(['gone'])).toEqual(new Map())
    })
  })

  test('of developers are listed by the first part of their keys', async () => {
    const row = { windows: { unverified: [1, 2] }, alertedAt: 0, until: 20_000 }
    const keys = ['dev_1 NL', 'dev_1 pool', 'dev_11 NL', 'dev_1aaaaaaaaaaaa']
    await apply({ rows: new Map(keys.map((key) => [key, row])) })
    expect([...(await store().read.guard.named('dev_1 ')).keys()].toSorted()).toEqual(keys.slice(0, 2))
    expect([...(await store().read.guard.named('dev_')).keys()].toSorted()).toEqual(keys.slice(0, 3))
  })

  test('report a row that cannot be written as a fault of the guard', async () => {
    const row = { windows: {}, alertedAt: 0.5, until: NaN }
    const written = store().write(({ guard }) =>
      guard.apply({ ...noGuardChanges(), rows: new Map([['dev_1 bad', row]]) }),
    )
    expect(await written.catch((error: unknown) => error)).toBeInstanceOf(GuardFault)
  })

  test('admit exactly as many of 40 concurrent messages as the daily cap allows', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      const { clock, evaluate, createRequest } = createGuardFixture(store(), { ...guardOff, totalPerDay: 7 })
      clock.advance((round + 1) * dayMs)
      const race = Array.from({ length: 40 }, (_, i) =>
        evaluate(createRequest({ developerId: `dev_${i % 4}` })),
      )
      const verdicts = await Promise.all(race)
      expect(verdicts.filter(({ blocked }) => !blocked)).toHaveLength(7)
      expect(verdicts.flatMap(({ violatedRules: rules }) => rules)).toEqual(Array(33).fill('TOTAL_DAILY'))
    }
  }, 300_000)

  test('admit exactly as many of 40 concurrent messages as the daily budget pays for', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      const { clock, evaluate, createRequest } = createGuardFixture(store(), {
        ...guardOff,
        spendPerDay: 10_000_000,
      })
      clock.advance((round + 1) * dayMs)
      const race = Array.from({ length: 40 }, (_, i) =>
        evaluate(createRequest({ developerId: `dev_${i % 4}`, estimatePrice: () => 1_500_000 })),
      )
      const verdicts = await Promise.all(race)
      expect(verdicts.filter(({ blocked }) => !blocked)).toHaveLength(6)
      expect(verdicts.flatMap(({ violatedRules: rules }) => rules)).toEqual(Array(34).fill('SPEND_DAILY'))
      // The rest pays for a cheaper one, and messages of unknown price pass.
      expect(await evaluate(createRequest({ estimatePrice: () => 1_000_000 }))).toMatchObject({
        blocked: false,
      })
      expect(await evaluate(createRequest({ estimatePrice: () => 1 }))).toMatchObject({ blocked: true })
      expect(await evaluate(createRequest({ estimatePrice: () => null }))).toMatchObject({ blocked: false })
    }
  }, 300_000)

  test('admit exactly what the allowances take of concurrent messages', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      const { clock, evaluate, createRequest, faults } = createGuardFixture(store(), guardOff)
      clock.advance((round + 20) * 2 * dayMs)
      const admitted = async (
        count: number,
        overrides: (i: number) => Parameters<typeof createRequest>[0],
      ) => {
        const race = Array.from({ length: count }, (_, i) => evaluate(createRequest(overrides(i))))
        return (await Promise.all(race)).filter(({ blocked }) => !blocked).length
      }
      // 30, as those in flight count a fifth up to 30.
      expect(await admitted(64, () => ({ phone: '+31611110001' }))).toBe(54)
      // The pool has paid for those, too.
      expect(await admitted(400, (i) => ({ country: `C${i % 7}` }))).toBe(300 - 54)
      expect(faults).toEqual([])
    }
  }, 300_000)

  test('count decisions by hour, rule and country', async () => {
    const { guard } = store().read
    const decide = (hour: number, country: string, count: { flagged: number; blocked: number }) =>
      apply({
        decisions: new Map([[`${hour} ${country}`, { hour, rule: 'NUMBER_TYPE', country, ...count }]]),
      })
    await decide(10, 'NL', { flagged: 0, blocked: 1 })
    await decide(11, 'NL', { flagged: 0, blocked: 1 })
    await decide(11, 'NL', { flagged: 1, blocked: 0 })
    await decide(11, 'BE', { flagged: 1, blocked: 0 })
    const decisionsFrom = async (fromHour: number) =>
      (await guard.decisions(fromHour))
        .filter(({ rule }) => rule === 'NUMBER_TYPE')
        .toSorted((a, b) => a.country.localeCompare(b.country))
    expect(await decisionsFrom(10)).toEqual([
      { rule: 'NUMBER_TYPE', country: 'BE', flagged: 1, blocked: 0 },
      { rule: 'NUMBER_TYPE', country: 'NL', flagged: 1, blocked: 2 },
    ])
    expect(await decisionsFrom(12)).toEqual([])
  })

  test('are deleted once no rule reads them, and not before', async () => {
    const now = Date.parse('2027-01-01T00:10:00Z')
    const today = Math.floor(now / dayMs)
    const { read, write } = store()
    const changes = noGuardChanges()
    for (const days of [-1, 0, 1])
      for (let i = 0; i < 3; i++)
        changes.rows.set(`row ${days} ${i}`, {
          windows: { unverified: [1, 2] },
          alertedAt: 0,
          until: today + days,
        })
    for (const age of [26, 25, 24, 0]) {
      const hour = Math.floor(now / hourMs) - age
      const decision = { hour, rule: 'TOTAL_DAILY', country: 'XX', flagged: 0, blocked: 1 } as const
      changes.decisions.set(String(hour), decision)
    }
    await apply(changes)
    await write((tx) => tx.guard.deleteUnused('row -1 0', 'row 0 1', now))
    const left = async () => [...(await read.guard.named('row ')).keys()].toSorted()
    const later = [0, 1, 2].map((i) => `row 1 ${i}`)
    expect(await left()).toEqual(['row -1 0', 'row 0 2', ...later])
    await write((tx) => tx.guard.deleteUnused('', 'row 9', now))
    expect(await left()).toEqual(later)
    let rounds = 0
    while (await write((tx) => tx.guard.deleteOldDecisions(now, 1))) rounds++
    expect(rounds).toBeGreaterThan(1)
    expect(
      (await read.guard.decisions(0)).find(({ country }) => country === 'XX')?.blocked,
    ).toBeGreaterThanOrEqual(2)
  })
})

describe('on SQLite', () => {
  test('no statement of the guard scans a table', async () => {
    const opened = await openTestSqlite()
    const connection = new SqliteConnection(opened.path)
    try {
      const statements = [
        `select * from guard_usage where subject in ('a', 'b')`,
        `select * from guard_usage where subject >= 'dev_1 ' and subject < 'dev_1 z'`,
        `select rule, sum(blocked) from guard_decisions where hour >= 5 group by rule, country`,
        `delete from guard_usage where subject > 'a' and subject <= 'b' and until <= 5`,
        `delete from guard_decisions where (hour, rule, country) in
           (select hour, rule, country from guard_decisions where hour <= 5 limit 500)`,
      ]
      for (const statement of statements) {
        const plan = connection.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
        const scans = plan
          .map(({ detail }) => detail)
          .filter((detail) => /^SCAN (?!\(?subquery|LIST)/i.test(detail))
        expect([statement, ...scans]).toEqual([statement])
      }
    } finally {
      connection.close()
      await opened.dispose()
    }
  })
})
