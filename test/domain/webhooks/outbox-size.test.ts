import { expect, test } from 'bun:test'
import { getTableColumns, sql } from 'drizzle-orm'
import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createWebhookFixture, unsharedPermits } from './fixture.ts'

/**
 * Best time (other load only adds to it) of a lease and its two results, with the given number of completed
 * deliveries.
 */
async function measureClaimMs(history: number): Promise<number> {
  const { database, dispose } = await openTestSqlite()
  const fixture = await createWebhookFixture(database)
  const app = await fixture.createApplication()
  const endpoint = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/')
  for (let i = 0; i < 100; i++) await fixture.record(app.id)
  const [{ eventSeq = 0 } = {}] = await fixture.deliveries(endpoint)
  await database.write(async (tx) => {
    const { webhookDeliveries } = database.tables
    await tx.insert(webhookDeliveries).values({
      id: 'dlv_0',
      endpointId: endpoint,
      eventSeq,
      type: 'otp.sent',
      status: 'delivered',
      createdAt: 0,
      deliveredAt: 0,
    })
    const names = Object.values(getTableColumns(webhookDeliveries)).map(({ name }) => name)
    const values = names.map((name) => (name === 'id' ? `'dlv_' || number` : name))
    // By the database: a statement with 1,000 rows each takes ten times as long.
    const copy = `with recursive copies (number) as (select 1 union all select number + 1 from copies where number < ${history})
      insert into webhook_deliveries (${names.join()}) select ${values.join()} from copies, webhook_deliveries where id = 'dlv_0'`
    if (history > 0) await (tx as unknown as BunSQLiteDatabase).run(sql.raw(copy))
  })
  const now = fixture.clock.now()
  const attempt = { at: now, statusCode: 200, error: null, request: null, durationMs: 1, body: 'ok' }
  const times: number[] = []
  for (let round = 0; round < 40; round++) {
    const before = performance.now()
    const claim = { owner: 'a', now, leaseUntil: now + 30_000, permits: unsharedPermits() }
    const claimed = await fixture.store.write((tx) => tx.webhookOutbox.claim(claim))
    expect(claimed).toHaveLength(2)
    await Promise.all(
      claimed.map((one) =>
        fixture.store.write((tx) =>
          tx.webhookOutbox.finish({ ...one, owner: 'a', attempt, retryAt: null, now }),
        ),
      ),
    )
    times.push(performance.now() - before)
  }
  await dispose()
  return Math.min(...times)
}

test('the cost of an attempt does not grow with the number of completed deliveries', async () => {
  const emptyMs = await measureClaimMs(0)
  // Scanning these would take a hundred times as long.
  expect(await measureClaimMs(60_000)).toBeLessThan(8 * emptyMs)
}, 300_000)
