import { describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { pendingMs } from '../../src/domain/model/guard.ts'
import { dayMs, hourMs } from '../../src/shared/durations.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, openTestSqlite, raceRounds } from '../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../helpers/guard.ts'
import { testKeys } from '../helpers/keys.ts'

describeEachDatabase("the guard's counters", (database, kind) => {
  const store = () => createStore(database(), { keys: testKeys })

  test('are counted per subject and day', async () => {
    await store().write(async ({ guard }) => {
      await guard.addUnverified(['b', 'a'], 20_000, 1000)
      await guard.addUnverified(['a'], 20_000, 2000)
      await guard.addUnverified(['a'], 20_001, 3000)
      const change = { messages: 1, verified: 1 }
      expect(await guard.adjust(['a', 'gone'], 20_000, 1000, change)).toEqual(new Map([['a', 1]]))
    })
    const counts = await store().read.guard.counts(['a', 'gone'], 20_000)
    expect([...counts.keys()]).toEqual(['a'])
    expect(counts.get('a')).toMatchObject({ unverified: 1, verified: 1, firstAt: 1000 })
    expect((await store().read.guard.counts(['a'], 20_001)).get('a')).toMatchObject({
      unverified: 1,
      firstAt: 3000,
    })
  })

  test('never become negative, and know how many messages are minutes old', async () => {
    const countsAt = async (at: number) =>
      (await store().write(({ guard }) => guard.addUnverified(['low'], 30_000, at))).get('low')
    await countsAt(pendingMs)
    expect(await countsAt(pendingMs)).toMatchObject({ pending: 2, pendingBefore: 0 })
    expect(await countsAt(2 * pendingMs)).toMatchObject({ pending: 1, pendingBefore: 2 })
    await store().write(({ guard }) => guard.adjust(['low'], 30_000, pendingMs, { messages: 9, verified: 1 }))
    expect(await countsAt(2 * pendingMs)).toMatchObject({
      unverified: 1,
      verified: 1,
      pending: 2,
      pendingBefore: 0,
    })
    expect(await countsAt(4 * pendingMs)).toMatchObject({ pending: 1, pendingBefore: 0 })
  })

  test('keep the contexts that verified, and those of no other', async () => {
    await store().write(({ guard }) => guard.addContexts(['one', 'two'], 20_000))
    await store().write(({ guard }) => guard.addContexts(['one'], 20_005))
    const { hasVerified } = store().read.guard
    expect(await hasVerified(['one', 'other'], 20_005)).toBe(true)
    expect(await hasVerified(['other', 'two'], 20_001)).toBe(false)
    expect(await hasVerified([], 0)).toBe(false)
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
    const { windows } = await store().write(({ guard }) => guard.lockCountry('dev_race NL'))
    expect(windows.map(([, unverified]) => unverified)).toEqual([40, 40, 40, 40])
  })

  test('count decisions by hour, rule and country', async () => {
    const { guard } = store().read
    await store().write(async (tx) => {
      const decision = { rule: 'NUMBER_TYPE', country: 'NL' } as const
      await tx.guard.addDecision({ ...decision, hour: 10, blocked: true })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: true })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: false })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: false, country: 'BE' })
    })
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
    await write(async ({ guard }) => {
      for (const day of [today - 2, today - 1, today])
        for (let i = 0; i < 3; i++) await guard.addUnverified([`one${i}`, `two${i}`], day, day * dayMs)
      for (const days of [181, 180, 0]) await guard.addContexts([`context${days}`], today - days)
      for (const days of [29, 28, 0]) {
        await guard.lockCountry(`dev_1 C${days}`)
        await guard.putCountry(`dev_1 C${days}`, today - days, {
          windows: [],
          alertUntil: now + days,
          converts: false,
        })
      }
      for (const hour of [26, 25, 24, 0]) {
        await guard.addDecision({
          hour: Math.floor(now / hourMs) - hour,
          rule: 'TOTAL_DAILY',
          country: 'XX',
          blocked: true,
        })
      }
    })
    let rounds = 0
    while (await write((tx) => tx.guard.deleteOldest(now, 2))) rounds++
    expect(rounds).toBeGreaterThan(2)
    expect((await read.guard.counts(['one0'], today - 2)).size).toBe(0)
    expect((await read.guard.counts(['one0'], today - 1)).size).toBe(1)
    expect(await read.guard.hasVerified(['context181'], 0)).toBe(false)
    expect(await read.guard.hasVerified(['context180'], 0)).toBe(true)
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
        `select context from guard_contexts where context in ('a', 'b') and day >= 5`,
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
