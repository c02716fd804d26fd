import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { AlertCause, AlertDestination, AlertNotice } from '../../src/domain/model/alert.ts'
import { recordObservation } from '../../src/domain/upkeep/alerts.ts'
import { createUnstoredAlert } from '../../src/server/unstored-alerts.ts'
import { minuteMs } from '../../src/shared/durations.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

const full: AlertCause = {
  kind: 'disk',
  subject: '',
  severity: 'critical',
  message: 'disk space: 0 MB free',
  remedy: 'Free disk space.',
}

test('a full disk is told once, although the database cannot store its alert, and so is its end', async () => {
  const { database, dispose } = await openTestSqlite()
  try {
    const clock = testClock()
    const store = createStore(database, { keys: testKeys, clock })
    const setPagesMax = (pages: number) =>
      database.write(async (tx) => {
        // SQLite's executor has `run`; the shared type does not.
        if ('run' in tx && typeof tx.run === 'function') tx.run(sql.raw(`pragma max_page_count = ${pages}`))
      })
    const destinations: AlertDestination[] = ['mail', 'chat'].map((name) => ({
      name,
      kind: 'webhook',
      min: 'warning',
      values: {},
    }))
    const sent: string[] = []
    let isChatDown = true
    const alert = createUnstoredAlert({
      source: 'node/',
      destinations: () => destinations,
      now: clock.now,
      async send({ destination, event, message }: AlertNotice) {
        if (destination === 'chat' && isChatDown) return false
        sent.push(`${destination} ${event} ${message}`)
        return true
      },
    })
    const observe = async (causes: AlertCause[]) => {
      try {
        await alert.store(store)
        const observation = { source: 'node/', kinds: ['disk'] as const, causes }
        await recordObservation(store, observation, destinations, clock.now())
      } catch {
        await alert.send(causes)
      }
      clock.advance(minuteMs)
    }

    await setPagesMax(1)
    const since = clock.now()
    // More than a page has room for.
    const long = { ...full, remedy: 'Free disk space. '.repeat(5_000) }
    await observe([long])
    expect(sent).toEqual(['mail firing disk space: 0 MB free'])
    isChatDown = false
    await observe([long])
    await observe([long])
    expect(sent).toEqual(['mail firing disk space: 0 MB free', 'chat firing disk space: 0 MB free'])

    await setPagesMax(100_000)
    for (let minutes = 0; minutes < 10; minutes++) await observe([])
    const notices = await store.read.alerts.listNotices()
    expect(notices.map(({ destination, event, since: at }) => [destination, event, at]).toSorted()).toEqual([
      ['chat', 'resolved', since],
      ['mail', 'resolved', since],
    ])
  } finally {
    await dispose()
  }
})
