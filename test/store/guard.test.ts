import { describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, openTestSqlite, raceRounds } from '../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../helpers/guard.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describeEachDatabase("the guard's counters", (database, kind) => {
  const store = () => createStore(database())

  test('are summed per subject, over the windows after a time', async () => {
    await store().write(async ({ guard }) => {
      await guard.addUnverified(['a', 'b', 'c'], 1000)
      await guard.addUnverified(['a', 'b'], 1000)
      await guard.addUnverified(['a', 'b'], 2000)
      expect(await guard.adjustCounts(['a', 'b'], 2000, { messages: 1, verified: 1 })).toBe(true)
      expect(await guard.adjustCounts(['a', 'b'], 3000, { messages: 1, verified: 1 })).toBe(false)
    })
    const usage = await store().read.guard.usage(['a', 'c', 'nobody'], { hour: 1000, day: 999 })
    expect([...usage.keys()].toSorted()).toEqual(['a', 'c'])
    expect(usage.get('a')).toEqual({ unverifiedHour: 0, unverifiedDay: 2, verifiedHour: 1, verifiedDay: 1 })
    expect(usage.get('c')).toEqual({ unverifiedHour: 0, unverifiedDay: 1, verifiedHour: 0, verifiedDay: 0 })
    expect(await store().read.guard.usage(['a'], { hour: 2000, day: 2000 })).toEqual(new Map())
  })

  test('never become negative', async () => {
    await store().write(async ({ guard }) => {
      await guard.addUnverified(['low', 'lower'], 1000)
      await guard.adjustCounts(['low', 'lower'], 1000, { messages: 4, verified: 1 })
    })
    const usage = await store().read.guard.usage(['low'], { hour: 0, day: 0 })
    expect(usage.get('low')).toMatchObject({ unverifiedDay: 0, verifiedDay: 1 })
  })

  test('admit exactly as many of 40 concurrent messages as the cap allows, across four applications', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      const caps = { applicationPerDay: 0, totalPerDay: 7 }
      const { clock, evaluate, createRequest } = createGuardFixture(store(), { ...guardOff, caps })
      clock.advance((round + 1) * dayMs)
      const race = Array.from({ length: 40 }, (_, i) => evaluate(createRequest({ appId: `app_${i % 4}` })))
      const verdicts = await Promise.all(race)
      expect(verdicts.filter(({ blocked }) => !blocked)).toHaveLength(7)
      expect(verdicts.flatMap(({ violatedRules: rules }) => rules)).toEqual(Array(33).fill('TOTAL_DAILY'))
      expect(await store().read.guard.sentOn('total', Math.floor(clock.now() / dayMs))).toBe(7)
    }
  }, 300_000)

  test('count decisions by hour, rule and country', async () => {
    const { guard } = store().read
    await store().write(async (tx) => {
      const decision = { rule: 'COUNTRY_DENIED', country: 'NL' } as const
      await tx.guard.addDecision({ ...decision, hour: 10, blocked: true })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: true })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: false })
      await tx.guard.addDecision({ ...decision, hour: 11, blocked: false, country: 'BE' })
    })
    const decisionsFrom = async (fromHour: number) =>
      (await guard.decisions(fromHour))
        .filter(({ rule }) => rule === 'COUNTRY_DENIED')
        .toSorted((a, b) => a.country.localeCompare(b.country))
    expect(await decisionsFrom(10)).toEqual([
      { rule: 'COUNTRY_DENIED', country: 'BE', flagged: 1, blocked: 0 },
      { rule: 'COUNTRY_DENIED', country: 'NL', flagged: 1, blocked: 2 },
    ])
    expect(await decisionsFrom(12)).toEqual([])
  })

  test('are deleted once no rule reads them, and not before', async () => {
    const now = Date.parse('2027-01-01T00:10:00Z')
    const today = Math.floor(now / dayMs)
    const { read, write } = store()
    await write(async ({ guard }) => {
      for (const at of [now - dayMs - hourMs, now - dayMs - 10 * 60_000, now]) {
        for (let i = 0; i < 3; i++) await guard.addUnverified([`old${i}`, `older${i}`], at)
        await guard.addAddressCountry('kept', `C${at}`, at)
      }
      await guard.addAddressCountry('gone', 'NL', now - dayMs)
      for (const day of [today - 15, today - 14, today]) {
        await guard.addVerified('country', day)
        await guard.addSent('total', day, 9)
      }
      for (const hour of [26, 25, 24, 0]) {
        await guard.addDecision({
          hour: Math.floor(now / hourMs) - hour,
          rule: 'TOTAL_DAILY',
          country: 'NL',
          blocked: true,
        })
      }
    })
    let rounds = 0
    while (await write((tx) => tx.guard.deleteOldest(now, 2))) rounds++
    expect(rounds).toBeGreaterThan(2)
    const since = { hour: 0, day: now - 2 * dayMs }
    expect((await read.guard.usage(['old0'], since)).get('old0')?.unverifiedDay).toBe(2)
    expect(await read.guard.addressCountries('kept', 0)).toHaveLength(1)
    expect(await read.guard.addressCountries('gone', 0)).toEqual([])
    expect(await read.guard.sentOn('total', today - 15)).toBe(0)
    expect(await read.guard.maxVerifiedInDay('country', today - 14)).toBe(1)
    expect(await read.guard.sentOn('total', today - 14)).toBe(1)
    const remainingDecision = (await read.guard.decisions(0)).find(({ rule }) => rule === 'TOTAL_DAILY')
    expect(remainingDecision?.blocked).toBeGreaterThanOrEqual(2)
  })
})

describe('on SQLite', () => {
  test('no statement of the guard scans a table', async () => {
    const opened = await openTestSqlite()
    const connection = new SqliteConnection(opened.path)
    try {
      const statements = [
        `select subject, sum(unverified) from guard_windows where subject in ('a', 'b', '') and starts_at > 5 group by subject`,
        `update guard_windows set verified = 1 where subject in ('a', 'b', '') and starts_at = 5`,
        `select country from guard_address_countries where subject = 'a' and sent_at > 5`,
        `select max(verified) from guard_days where subject = 'a' and day >= 5`,
        `select rule, sum(blocked) from guard_decisions where hour >= 5 group by rule, country`,
        ...[
          ['guard_windows', 'starts_at, subject', 'starts_at'],
          ['guard_address_countries', 'sent_at, subject, country', 'sent_at'],
          ['guard_days', 'day, subject', 'day'],
          ['guard_decisions', 'hour, rule, country', 'hour'],
        ].map(
          ([table, key, time]) =>
            `delete from ${table} where (${key}) in (select ${key} from ${table} where ${time} <= 5 limit 500)`,
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
