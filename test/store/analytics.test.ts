import { expect, test } from 'bun:test'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
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
      await tx.analytics.addBreakdown(key, { requests: 2, sent: 2 })
      await tx.analytics.addBreakdown(key, { delivered: 1, undelivered: 1, verified: 1, failed: -1 })
      await tx.analytics.addBreakdown({ ...key, day: 20_001 }, { sent: 1 })
      await tx.analytics.addBreakdown(unknown, { sent: 5 })
    })
    const none = { requests: 0, sent: 0, delivered: 0, undelivered: 0, verified: 0, failed: 0 }
    const rows = (await read()).toSorted((a, b) => a.day - b.day || a.sent - b.sent)
    expect(rows).toEqual([
      { ...key, requests: 2, sent: 2, delivered: 1, undelivered: 1, verified: 1, failed: -1 },
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
