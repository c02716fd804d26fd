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

/** More than a page has room for. */
const long = { ...full, remedy: 'Free disk space. '.repeat(5_000) }

async function setUp() {
  const { database, dispose } = await openTestSqlite()
  const clock = testClock()
  const store = createStore(database, { keys: testKeys, clock })
  const destinations: AlertDestination[] = ['mail', 'chat'].map((name) => ({
    name,
    kind: 'webhook',
    min: 'warning',
    values: {},
  }))
  const sent: string[] = []
  const down = new Set<string>()
  const alert = createUnstoredAlert({
    source: 'node/',
    destinations: () => destinations,
    now: clock.now,
    async send({ destination, event, message }: AlertNotice) {
      if (down.has(destination)) return false
      sent.push(`${destination} ${event} ${message}`)
      return true
    },
  })
  return {
    clock,
    store,
    sent,
    down,
    dispose,
    setPagesMax: (pages: number) =>
      database.write(async (tx) => {
        // SQLite's executor has `run`; the shared type does not.
        if ('run' in tx && typeof tx.run === 'function') tx.run(sql.raw(`pragma max_page_count = ${pages}`))
      }),
    async observe(causes: AlertCause[]) {
      try {
        await alert.store(store)
        const observation = { source: 'node/', kinds: ['disk'] as const, causes }
        await recordObservation(store, observation, destinations, clock.now())
      } catch {
        await alert.send(store, causes)
      }
      clock.advance(minuteMs)
    },
  }
}

test('a full disk is told once, although the database cannot store its alert, and so is its end', async () => {
  const { clock, store, sent, down, dispose, setPagesMax, observe } = await setUp()
  try {
    await setPagesMax(1)
    down.add('chat')
    const since = clock.now()
    await observe([long])
    expect(sent).toEqual(['mail firing disk space: 0 MB free'])
    down.clear()
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

test.each([
  ['critical', ['chat firing disk space: 0 MB free']],
  ['warning', ['mail firing disk space: 0 MB free', 'chat firing disk space: 0 MB free']],
] as const)(
  'a full disk whose %s alert was sent before is told where that was not, or was a warning',
  async (severity, expected) => {
    const { store, sent, dispose, setPagesMax, observe } = await setUp()
    try {
      await observe([{ ...full, severity, message: 'disk space: 90 MB free' }])
      const queued = await store.read.alerts.listNotices()
      const toMail = queued.filter(({ destination }) => destination === 'mail')
      for (const notice of toMail) await store.write((tx) => tx.alerts.deleteNotice(notice))

      await setPagesMax(1)
      await observe([long])
      await observe([long])

      expect(sent).toEqual([...expected])
    } finally {
      await dispose()
    }
  },
)

test('a full disk is told to a destination that did not take it, once there is room to store the notice', async () => {
  const { store, sent, down, dispose, setPagesMax, observe } = await setUp()
  try {
    await setPagesMax(1)
    down.add('chat')
    await observe([long])
    await observe([long])
    await setPagesMax(100_000)
    await observe([])
    expect(sent).toEqual(['mail firing disk space: 0 MB free'])
    expect(await store.read.alerts.listNotices()).toMatchObject([{ destination: 'chat', event: 'firing' }])
  } finally {
    await dispose()
  }
})
