import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
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

async function openDisposable() {
  const { path, dispose } = await openTestSqlite()
  return { path, [Symbol.asyncDispose]: dispose }
}
