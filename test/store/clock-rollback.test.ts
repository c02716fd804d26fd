import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { openTestSqlite } from '../helpers/databases.ts'

test('the clock-rollback check at start scans no table', async () => {
  const opened = await openTestSqlite()
  const connection = new SqliteConnection(opened.path)
  try {
    for (const statement of [
      `select max(sent_at) from otp_requests where status = 'pending' and expires_at > 5`,
    ]) {
      const plan = connection.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
      expect([statement, ...plan.map(({ detail }) => detail.slice(0, 6))]).toEqual([statement, 'SEARCH'])
    }
  } finally {
    connection.close()
    await opened.dispose()
  }
})
