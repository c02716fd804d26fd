import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, openTestSqlite, registerShortIds } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

describeEachDatabase('the breakdown of requests', (database) => {
  const key = {
    developerId: 'dev_b',
    appId: 'app_b',
    day: 20_000,
    country: 'NL',
    channel: 'sms',
    provider: 'twilio',
  }
  const read = () => database().read.select().from(database().tables.breakdownCounts)

  test('adds up the changes of a key, and keeps others apart', async () => {
    await registerShortIds(database(), 'dev_b', 'app_b')
    const store = createStore(database(), { keys: testKeys })
    const unknown = { ...key, country: null, channel: null, provider: null }
    await store.write(async (tx) => {
      tx.analytics.addBreakdown([{ key, counts: { requests: 2, sent: 2 } }])
      tx.analytics.addBreakdown([
        { key, counts: { delivered: 1, undelivered: 1, verified: 1, failed: -1 } },
        { key: { ...key, day: 20_001 }, counts: { sent: 1 } },
        { key: unknown, counts: { sent: 5 } },
      ])
    })
    const none = {
      requests: 0,
      sent: 0,
      delivered: 0,
      undelivered: 0,
      verified: 0,
      failed: 0,
      cost: 0,
      estimatedCost: 0,
      unpriced: 0,
      relayed: 0,
      relayedCost: 0,
      blocked: 0,
      verified5s: 0,
      verified10s: 0,
      verified20s: 0,
      verified30s: 0,
      verified60s: 0,
      verified120s: 0,
      verifiedLater: 0,
    }
    const rows = (await read()).toSorted((a, b) => a.day - b.day || a.sent - b.sent)
    expect(rows).toEqual([
      { ...key, ...none, requests: 2, sent: 2, delivered: 1, undelivered: 1, verified: 1, failed: -1 },
      { ...key, ...none, country: '', channel: '', provider: '', sent: 5 },
      { ...key, ...none, day: 20_001, sent: 1 },
    ])
  })

  test('loses its oldest days in batches', async () => {
    const store = createStore(database(), { keys: testKeys })
    const purge = () => store.write((tx) => tx.analytics.deleteBreakdown(20_001, 1))
    expect([await purge(), await purge(), await purge()]).toEqual([true, true, false])
    expect((await read()).map(({ day }) => day)).toEqual([20_001])
  })
})

test('counters, requests of a phone and deliveries to recover are found without a scan', async () => {
  const opened = await openTestSqlite()
  const connection = new SqliteConnection(opened.path)
  const range =
    'with recursive range (day) as (select 5 union all select day + 1 from range where day < 95) select day from range'
  try {
    for (const statement of [
      `select app_id, sum(sent) from breakdown_counts where day in (${range}) and developer_id = 7 group by app_id`,
      `select day, sum(sent) from breakdown_counts where day in (${range}) and developer_id = 7 and app_id = 8 group by day`,
      `select * from otp_requests where id in (with recursive list (id, previous, number) as (
          select id, previous_request, 1 from otp_requests where id = 'otp_1'
          union all
          select one.id, one.previous_request, list.number + 1
            from list join otp_requests as one on one.id = list.previous where list.number < 50
        ) select id from list)`,
      `select id from webhook_deliveries where endpoint_id = 'whk_1' and (status = 'failed' or status = 'skipped')
        and id > 'dlv_1' order by id limit 500`,
      `select id from webhook_deliveries where endpoint_id = 'whk_1' and status = 'pending' and lease_owner is null
        and (next_attempt_at, id) > (5, '~') order by next_attempt_at, id limit 500`,
    ]) {
      const plan = connection.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
      const scans = plan
        .map(({ detail }) => detail)
        .filter((detail) => /^SCAN (?!(range|list|CONSTANT)\b)/.test(detail))
      expect([statement, ...scans]).toEqual([statement])
    }
  } finally {
    connection.close()
    await opened.dispose()
  }
})
