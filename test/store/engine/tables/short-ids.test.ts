import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { createStore } from '../../../../src/store/store.ts'
import { openTestSqlite, registerDeletedApplications, registerShortIds } from '../../../helpers/databases.ts'
import { testKeys } from '../../../helpers/keys.ts'

const shortIds = sqliteTable('short_ids', { id: text('id').notNull() })
const createEntry = (appId: string | null) => ({
  entry: {
    type: 'otp.sent' as const,
    developerId: 'dev',
    appId,
    requestId: null,
    phone: null,
    status: null,
    detail: null,
    at: 1,
  },
})

test('a number assigned in a transaction that is rolled back is not cached', async () => {
  const { database, dispose } = await openTestSqlite()
  const store = createStore(database, { keys: testKeys })
  await registerShortIds(database, 'dev')
  const undone = database.write(async (tx) => {
    await tx.insert(shortIds).values({ id: 'app_undone' })
    const { events } = database.tables
    const row = { seq: 1, type: 'otp.sent' as const, developerId: 'dev', appId: 'app_undone', at: 1 }
    await tx.insert(events).values(row)
    const [written] = await tx.select({ appId: events.appId }).from(events)
    expect(written?.appId).toBe('app_undone')
    throw new Error('undone')
  })
  expect(await undone.catch((error: unknown) => String(error))).toContain('undone')

  await registerShortIds(database, 'app_next')
  await registerDeletedApplications(database, [{ developerId: 'dev', appId: 'app_next' }])
  await store.write((tx) => tx.events.append([createEntry('app_next')]))
  const log = await store.read.events.list('dev', { limit: 9 })
  expect(log.map(({ appId }) => appId)).toEqual(['app_next'])
  expect(database.shortId('app_undone')).toBe(0)
  await dispose()
})

test('an unknown id cannot be written, and matches no row', async () => {
  const { database, dispose } = await openTestSqlite()
  const store = createStore(database, { keys: testKeys })
  await registerShortIds(database, 'dev')
  const refused = await store
    .write((tx) => tx.events.append([createEntry('app_unknown')]))
    .catch((error: unknown) => String(error))
  expect(refused).toContain('SQLITE_CONSTRAINT_CHECK')
  await store.write((tx) => tx.events.append([createEntry(null)]))
  expect(await store.read.events.list('dev', { limit: 9, appId: 'app_unknown' })).toEqual([])
  expect(await store.read.events.list('dev_unknown', { limit: 9 })).toEqual([])
  expect(await store.read.events.list('dev', { limit: 9 })).toHaveLength(1)
  await dispose()
})

test('100,001 ids are never confused', async () => {
  const { database, dispose } = await openTestSqlite()
  const ids = Array.from({ length: 100_001 }, (_, index) => `app_${index}`)
  // By the database: statements with that many values take ten times as long.
  const insert = sql`with recursive numbers (number) as (
    select 0 union all select number + 1 from numbers where number < ${ids.length - 1}
  ) insert into short_ids (id) select 'app_' || number from numbers`
  await database.write(async (tx) => void (await (tx as unknown as BunSQLiteDatabase).run(insert)))
  const numbers = ids.map(database.shortId)
  expect(new Set(numbers).size).toBe(ids.length)
  expect(ids.map(database.shortId)).toEqual(numbers)
  await dispose()
}, 300_000)
