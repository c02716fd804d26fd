import { Database } from 'bun:sqlite'
import { beforeEach, expect, test } from 'bun:test'
import type { GuardRow } from '../../../src/domain/model/guard.ts'
import { createGuardRows } from '../../../src/store/sqlite/guard-rows.ts'

let connection: Database
let rows: ReturnType<typeof createGuardRows>
const open = () => createGuardRows(connection, (body) => transaction(body))

beforeEach(() => {
  connection = new Database(':memory:')
  connection.run(`create table guard_usage (subject text not null primary key, windows text not null,
    alerted_at integer not null, until integer not null) strict, without rowid`)
  rows = open()
})

const row = (count: number): GuardRow => ({
  windows: { unverified: [1, count] },
  alertedAt: 0,
  until: 20_000,
})

/** Runs a body in a transaction, as the write queue does. */
async function transaction(body: () => void | Promise<void>, end: 'commit' | 'rollback' = 'commit') {
  connection.run('begin')
  await body()
  connection.run(end)
  if (end === 'commit') rows.hooks.onCommit?.()
  else rows.hooks.onRollback?.()
}

const change = (key: string, count: number, end?: 'rollback') =>
  transaction(() => rows.cache.change(new Map([[key, row(count)]])), end)
const stored = () =>
  connection.query('select subject, windows from guard_usage order by subject').values().map(String)

test('named rows are written at once; others are held back, and written when the database is closed', async () => {
  await change('dev_1 NL', 1)
  await change('prefix', 1)
  await change('prefix', 2)
  expect(rows.cache.get('prefix')).toEqual(row(2))
  expect(stored()).toEqual(['dev_1 NL,{"unverified":[1,1]}'])
  await rows.close()
  expect(stored()).toEqual(['dev_1 NL,{"unverified":[1,1]}', 'prefix,{"unverified":[1,2]}'])
  // As after a restart.
  rows = open()
  expect([rows.cache.get('prefix'), rows.cache.get('gone')]).toEqual([row(2), undefined])
})

test('a transaction that is rolled back changes nothing, and what was held back before is still written', async () => {
  await change('prefix', 1)
  await change('prefix', 2, 'rollback')
  await transaction(() => rows.cache.write(), 'rollback')
  expect(rows.cache.get('prefix')).toEqual(row(1))
  await rows.close()
  expect(stored()).toEqual(['prefix,{"unverified":[1,1]}'])
})

test('a row that was deleted stays deleted', async () => {
  await change('prefix', 1)
  await transaction(() => rows.cache.change(new Map([['prefix', undefined]])))
  expect(rows.cache.get('prefix')).toBeUndefined()
  await rows.close()
  expect(stored()).toEqual([])
})

test('rows that another process wrote are read again, but for those that are held back', async () => {
  await change('dev_1 NL', 1)
  await change('prefix', 1)
  connection.run(`update guard_usage set windows = '{"unverified":[1,9]}'`)
  expect(rows.cache.get('dev_1 NL')).toEqual(row(1))
  rows.hooks.onForeignCommit?.()
  expect([rows.cache.get('dev_1 NL'), rows.cache.get('prefix')]).toEqual([row(9), row(1)])
})

test('each change counts as pending until the transaction ends, also a second one of the same row', async () => {
  const pending = () => rows.hooks.countPending?.()
  await transaction(() => {
    for (const count of [1, 2]) rows.cache.change(new Map([['prefix', row(count)]]))
    expect(pending()).toBe(2)
  })
  expect(pending()).toBe(0)
})

test('rows are written every ten seconds, as they are then and in the order of their keys', async () => {
  let now = 0
  rows = createGuardRows(connection, (body) => transaction(body), { monotonic: () => now })
  connection.run('create table inserted (subject text)')
  connection.run(`create trigger note after insert on guard_usage
    begin insert into inserted values (new.subject); end`)
  await change('prefix', 1)
  await change('network', 1)
  now = 9_999
  await change('prefix', 2)
  expect(stored()).toEqual([])
  now = 10_000
  await change('device', 1)
  const written = ['network,{"unverified":[1,1]}', 'prefix,{"unverified":[1,2]}']
  expect(stored()).toEqual(written)
  expect(connection.query('select subject from inserted').values().flat()).toEqual(['network', 'prefix'])
  now = 19_999
  await change('dev_1 NL', 1)
  expect(stored()).toEqual(['dev_1 NL,{"unverified":[1,1]}', ...written])
  now = 20_000
  await change('dev_1 NL', 1)
  expect(stored()).toEqual(['dev_1 NL,{"unverified":[1,1]}', 'device,{"unverified":[1,1]}', ...written])
})

test('a round writes as many rows as are added meanwhile, so that it ends', async () => {
  const changeMany = (first: number, count: number) =>
    transaction(() => {
      const keys = Array.from({ length: count }, (_, n) => `key${first + n}`)
      rows.cache.change(new Map(keys.map((key) => [key, row(1)])))
    })
  await changeMany(0, 10_001)
  for (let batch = 0; batch < 20; batch++) await changeMany(20_000 + batch * 768, 768)
  expect(stored().length).toBeGreaterThan(10_000)
})
