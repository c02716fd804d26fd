import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { openReader } from '../../../src/store/sqlite/reader.ts'
import { openTestSqlite } from '../../helpers/databases.ts'

test('a snapshot that a failed read has ended is not ended twice', async () => {
  await using opened = await openDisposable()
  const reader = openReader(new SqliteConnection(opened.path, { readonly: true }))
  // As SQLite does when a disk read fails.
  reader.client.prepare('ROLLBACK').run()
  reader.endSnapshot()
  expect(reader.client.prepare('select 1').values()).toEqual([[1]])
  reader.close()
})

test('a query that is built again for each call is prepared once', async () => {
  await using opened = await openDisposable()
  const connection = new SqliteConnection(opened.path, { readonly: true })
  const prepare = spyOn(connection, 'prepare')
  const reader = openReader(connection)
  const db = drizzle({ client: reader.client })
  const preparedBefore = prepare.mock.calls.length
  for (let i = 0; i < 10; i++)
    expect(await db.select({ value: sql`${i}` }).from(sql`(select 1)`)).toEqual([{ value: i }])
  expect(prepare.mock.calls.length - preparedBefore).toBe(1)
  reader.close()
})

async function openDisposable() {
  const { path, dispose } = await openTestSqlite()
  return { path, [Symbol.asyncDispose]: dispose }
}
