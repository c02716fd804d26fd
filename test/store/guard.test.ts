import { describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { noGuardChanges } from '../../src/domain/guard/facts.ts'
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

  test('are read as they were last written, by the day and the subject', async () => {
    const counts = { unverified: 3, verified: 1, slot: 7, pending: 2, pendingBefore: 1, firstAt: 1000 }
    const country = { windows: [[1, 2, 3]], alertUntil: 5, converts: true, day: 20_000 }
    await apply({ counts: new Map([['20000 b', counts]]), countries: new Map([['dev_1 NL', country]]) })
    await apply({
      counts: new Map([
        ['20000 b', { ...counts, unverified: 4 }],
        ['20000 a', counts],
      ]),
      countries: new Map([['dev_1 NL', { ...country, converts: false }]]),
    })
    await store().write(async ({ guard }) => {
      expect(await guard.counts(['20000 a', '20000 gone'], ['20000 b', '20001 a'])).toEqual(
        new Map([
          ['20000 a', expect.objectContaining(counts)],
          ['20000 b', expect.objectContaining({ ...counts, unverified: 4 })],
        ]),
      )
      expect(await guard.country('dev_1 NL')).toEqual({ ...country, converts: false })
    })
    // Rows that were made for a lock alone count as missing.
    expect([...(await store().read.guard.counts([], ['20000 a', '20000 gone'])).keys()]).toEqual(['20000 a'])
  })

  test('keep the newest day of each context', async () => {
    await apply({
      contexts: new Map([
        ['two', 20_000],
        ['one', 20_000],
      ]),
    })
    await apply({ contexts: new Map([['one', 20_005]]) })
    await apply({ contexts: new Map([['one', 20_001]]) })
    expect(await store().read.guard.contexts(['one', 'other', 'two'])).toEqual(
      new Map([
        ['one', 20_005],
        ['two', 20_000],
      ]),
    )
    expect(await store().read.guard.contexts([])).toEqual(new Map())
  })

  test('report a row that cannot be written as a fault of the guard', async () => {
    const counts = { unverified: -1, verified: 0, slot: 0, pending: 0, pendingBefore: 0, firstAt: 0 }
    const written = store().write(({ guard }) =>
      guard.apply({ ...noGuardChanges(), counts: new Map([['20000 bad', counts]]) }),
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

  test('admit exactly 30 of 60 concurrent messages to one prefix, or from one network to many countries', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      const { clock, evaluate, createRequest, faults } = createGuardFixture(store(), guardOff)
      clock.advance((round + 20) * 2 * dayMs)
      const admitted = async (overrides: (i: number) => Parameters<typeof createRequest>[0]) => {
        const race = Array.from({ length: 60 }, (_, i) => evaluate(createRequest(overrides(i))))
        return (await Promise.all(race)).filter(({ blocked }) => !blocked).length
      }
      const toPrefix = await admitted(() => ({ phone: '+31611110001' }))
      expect(faults).toEqual([])
      expect(toPrefix).toBe(30)
      // Messages that are still pending count a fifth.
      const fromOne = await admitted((i) => ({ country: `C${i % 7}`, clientIp: '203.0.113.9' }))
      expect(fromOne).toBe(60)
      const pendingOnly = Array.from({ length: 120 }, () => ({ clientIp: '203.0.113.9' }))
      const more = await Promise.all(
        pendingOnly.map((overrides, i) => evaluate(createRequest({ ...overrides, country: `C${i % 7}` }))),
      )
      expect(more.filter(({ blocked }) => !blocked).length).toBe(90)
    }
  }, 300_000)

  test('of a country lose none of 40 concurrent messages', async () => {
    const { evaluate, createRequest } = createGuardFixture(store(), guardOff)
    await Promise.all(Array.from({ length: 40 }, () => evaluate(createRequest({ developerId: 'dev_race' }))))
    const country = await store().write(({ guard }) => guard.country('dev_race NL'))
    expect(country?.windows.map(([, unverified]) => unverified)).toEqual([40, 40, 40, 40])
  })

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
    const counts = { unverified: 1, verified: 0, slot: 0, pending: 0, pendingBefore: 0, firstAt: 1 }
    for (const day of [today - 2, today - 1, today])
      for (let i = 0; i < 3; i++) changes.counts.set(`${day} one${i}`, counts).set(`${day} two${i}`, counts)
    for (const days of [181, 180, 0]) changes.contexts.set(`context${days}`, today - days)
    for (const days of [29, 28, 0]) {
      const country = { windows: [], alertUntil: now + days, converts: false, day: today - days }
      changes.countries.set(`dev_1 C${days}`, country)
    }
    for (const age of [26, 25, 24, 0]) {
      const hour = Math.floor(now / hourMs) - age
      const decision = { hour, rule: 'TOTAL_DAILY', country: 'XX', flagged: 0, blocked: 1 } as const
      changes.decisions.set(String(hour), decision)
    }
    await apply(changes)
    let rounds = 0
    while (await write((tx) => tx.guard.deleteOldest(now, 2))) rounds++
    expect(rounds).toBeGreaterThan(2)
    expect((await read.guard.counts([], [`${today - 2} one0`])).size).toBe(0)
    expect((await read.guard.counts([], [`${today - 1} one0`])).size).toBe(1)
    const contexts = await read.guard.contexts(['context181', 'context180'])
    expect([...contexts.keys()]).toEqual(['context180'])
    const subjects = (await read.guard.alerts(now - 1)).map(({ subject }) => subject).toSorted()
    expect(subjects).toEqual(['dev_1 C0', 'dev_1 C28'])
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
        `select * from guard_counts where subject in ('a', 'b')`,
        `select * from guard_countries where subject = 'a'`,
        `select * from guard_contexts where context in ('a', 'b')`,
        `select rule, sum(blocked) from guard_decisions where hour >= 5 group by rule, country`,
        ...[
          ['guard_counts', 'subject', 'subject'],
          ['guard_countries', 'day, subject', 'day'],
          ['guard_contexts', 'day, context', 'day'],
          ['guard_decisions', 'hour, rule, country', 'hour'],
        ].map(
          ([table, key, time]) =>
            `delete from ${table} where (${key}) in (select ${key} from ${table} where ${time} <= '5' limit 500)`,
        ),
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
