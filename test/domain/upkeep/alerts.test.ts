import { beforeEach, describe, expect, test } from 'bun:test'
import type { AlertCause, AlertNotice } from '../../../src/domain/model/alert.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createNoticeSender } from '../../../src/domain/upkeep/alert-notices.ts'
import { recordObservation, resolveAlertsOfGoneNodes } from '../../../src/domain/upkeep/alerts.ts'
import { findHalvedConversions } from '../../../src/domain/upkeep/conversion.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../../src/shared/durations.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock, type TestClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const source = 'installation'
const lowDisk: AlertCause = {
  kind: 'disk',
  subject: '',
  severity: 'warning',
  message: 'disk space: 900 MB free',
  remedy: 'Free disk space.',
}
const fullDisk: AlertCause = { ...lowDisk, severity: 'critical', message: 'disk space: 90 MB free' }
const openCircuit: AlertCause = {
  ...lowDisk,
  kind: 'provider',
  subject: 'main',
  message: 'provider main: open',
}
const phone = { name: 'phone', min: 'critical' } as const
const mail = { name: 'mail', min: 'warning' } as const

describeEachDatabase('alerts', (database) => {
  let clock: TestClock
  let store: Store
  beforeEach(async () => {
    clock = testClock()
    store = createStore(database(), { keys: testKeys, clock })
    await database().write(async (tx) => {
      await tx.delete(database().tables.alerts)
      await tx.delete(database().tables.alertNotices)
    })
  })

  const observe = (causes: AlertCause[]) =>
    recordObservation(store, { source, kinds: ['disk', 'provider'], causes }, [mail, phone], clock.now())
  /** Takes the queued notices, as a sender would. */
  async function take(): Promise<string[]> {
    const notices = await store.read.alerts.listNotices()
    await store.write((tx) => tx.alerts.deleteNoticesExcept([]))
    return notices.map(({ destination, event, message }) => `${destination} ${event} ${message}`)
  }
  async function observeFor(ms: number, causes: AlertCause[]) {
    const stepMs = ms > hourMs ? 20 * minuteMs : 30 * secondMs
    for (const until = clock.now() + ms; clock.now() < until; clock.advance(stepMs)) await observe(causes)
  }

  test('have one message at the beginning, one at the end, and a reminder each day', async () => {
    await observeFor(2 * hourMs, [lowDisk])
    expect(await take()).toEqual(['mail firing disk space: 900 MB free'])
    await observeFor(22 * hourMs, [lowDisk])
    expect(await take()).toEqual([])
    await observeFor(hourMs + 1, [lowDisk])
    expect(await take()).toEqual(['mail reminder disk space: 900 MB free'])
    await observeFor(dayMs, [lowDisk])
    expect(await take()).toEqual(['mail reminder disk space: 900 MB free'])
    await observeFor(10 * minuteMs, [])
    expect(await take()).toEqual(['mail resolved disk space: 900 MB free'])
    expect(await store.read.alerts.list()).toEqual([])
    await observeFor(2 * dayMs, [])
    expect(await take()).toEqual([])
  })

  test('go to the destinations that want their severity, also when they get worse', async () => {
    await observe([lowDisk])
    expect(await take()).toEqual(['mail firing disk space: 900 MB free'])
    clock.advance(minuteMs)
    await observe([fullDisk])
    await observe([fullDisk])
    const critical = 'firing disk space: 90 MB free'
    expect(await take()).toEqual([`mail ${critical}`, `phone ${critical}`])
    // It was critical, so the destinations that heard of that hear of the end.
    await observeFor(minuteMs, [lowDisk])
    await observeFor(10 * minuteMs, [])
    expect(await take()).toEqual([
      'mail resolved disk space: 900 MB free',
      'phone resolved disk space: 900 MB free',
    ])
  })

  test('of a circuit fire after five minutes', async () => {
    await observeFor(5 * minuteMs, [openCircuit])
    await observeFor(5 * minuteMs, [])
    expect(await take()).toEqual([])
    await observeFor(5 * minuteMs + 30 * secondMs, [openCircuit])
    expect(await take()).toEqual(['mail firing provider main: open'])
  })

  test('are one alert while the fault comes and goes', async () => {
    for (let round = 0; round < 20; round++) {
      await observeFor(minuteMs, [lowDisk])
      await observeFor(4 * minuteMs, [])
    }
    expect(await take()).toEqual(['mail firing disk space: 900 MB free'])
  })

  test('stay as they are while a check of theirs fails', async () => {
    await observe([lowDisk])
    await take()
    for (let round = 0; round < 20; round++) {
      clock.advance(minuteMs)
      await recordObservation(store, { source, kinds: ['provider'], causes: [] }, [mail], clock.now())
      await recordObservation(store, { source: 'node/b', kinds: ['disk'], causes: [] }, [mail], clock.now())
    }
    expect(await take()).toEqual([])
    expect(await store.read.alerts.list()).toMatchObject([{ kind: 'disk', clearedAt: null }])
  })

  test('of a node that is gone are resolved', async () => {
    const ofNode = (node: string): AlertCause => ({ ...lowDisk, kind: 'clock', subject: node, message: node })
    for (const node of ['a', 'b'])
      await recordObservation(
        store,
        { source: `node/${node}`, kinds: ['clock'], causes: [ofNode(node)] },
        [mail],
        clock.now(),
      )
    await take()
    for (let round = 0; round < 10; round++) {
      clock.advance(minuteMs)
      await resolveAlertsOfGoneNodes(store, [source, 'node/a'], [mail], clock.now())
    }
    expect(await take()).toEqual(['mail resolved b'])
  })

  describe('a notice', () => {
    type Sent = { destination: string; message: string; at: number }
    let sent: Sent[]
    let failing: Set<string>
    let dropped: number
    const startNode = (destinations = ['mail', 'phone']) =>
      createNoticeSender({
        store,
        now: clock.now,
        destinations: () => destinations,
        async send({ destination, message }) {
          if (failing.has(destination)) return { failure: 'HTTP 500' }
          sent.push({ destination, message, at: clock.now() })
          return { failure: null }
        },
        onFailed() {},
        onDropped: () => void dropped++,
      }).sendDue
    const queue = (destination: string, message: string, event: AlertNotice['event'] = 'firing') =>
      store.write((tx) =>
        tx.alerts.addNotices([
          { ...lowDisk, destination, event, subject: message, message, since: clock.now(), at: clock.now() },
        ]),
      )
    beforeEach(() => {
      sent = []
      failing = new Set()
      dropped = 0
    })

    test('is sent once by three nodes at a time', async () => {
      const nodes = [startNode(), startNode(), startNode()]
      for (let index = 0; index < 20; index++) await queue('mail', `message ${index}`)
      await Promise.all(nodes.map((sendNotices) => sendNotices()))
      for (const sendNotices of nodes) await sendNotices()
      expect(sent.map(({ message }) => message).toSorted()).toEqual(
        Array.from({ length: 20 }, (_, index) => `message ${index}`).toSorted(),
      )
    })

    test('waits for its destination, in order, and holds up no other', async () => {
      failing.add('mail')
      await queue('mail', 'first')
      clock.advance(1)
      await queue('mail', 'second')
      await queue('phone', 'other')
      const attempts: number[] = []
      for (let minute = 0; minute < 120; minute++) {
        await startNode()()
        const [first] = await store.read.alerts.listNotices()
        attempts.push(first?.attempts ?? 0)
        clock.advance(minuteMs)
      }
      expect(sent.map(({ message }) => message)).toEqual(['other'])
      // After 0, 1, 3, 7, 15, 31 and 63 minutes.
      expect(attempts.at(-1)).toBe(7)
      failing.clear()
      clock.advance(hourMs)
      await startNode()()
      expect(sent.map(({ message }) => message)).toEqual(['other', 'first', 'second'])
      expect(await store.read.alerts.listNotices()).toEqual([])
    })

    test('is dropped after a day, and with its destination', async () => {
      failing.add('mail')
      await queue('mail', 'first')
      await queue('phone', 'other')
      for (let hour = 0; hour < 26; hour++) {
        await startNode(['mail'])()
        clock.advance(hourMs)
      }
      expect([dropped, sent, await store.read.alerts.listNotices()]).toEqual([1, [], []])
    })

    test('of a node that died while it sent is sent by another', async () => {
      await queue('mail', 'first')
      const [notice] = await store.read.alerts.listNotices()
      if (!notice) throw new Error('no notice')
      await store.write((tx) => tx.alerts.leaseNotice(notice, clock.now(), clock.now() + minuteMs))
      await startNode()()
      expect(sent).toEqual([])
      clock.advance(minuteMs)
      await startNode()()
      expect(sent).toHaveLength(1)
    })

    test('that tests a destination overtakes those that fail, and is never sent late', async () => {
      failing.add('mail')
      await queue('mail', 'first')
      await startNode()()
      failing.clear()
      await queue('mail', 'a test', 'test')
      await startNode()()
      expect(sent.map(({ message }) => message)).toEqual(['a test'])
      await queue('phone', 'a test', 'test')
      clock.advance(2 * minuteMs)
      await startNode()()
      expect(sent.map(({ message }) => message)).toEqual(['a test', 'first'])
      expect(await store.read.alerts.listNotices()).toEqual([])
    })
  })
})

describe('a halved conversion', () => {
  const today = 20_000
  const week = (verified: number) =>
    Array.from({ length: 7 }, (_, index) => ({ country: 'NL', day: today - 1 - index, sent: 100, verified }))

  test('is less than half of the week before, with enough messages', () => {
    const find = (sent: number, verified: number) =>
      findHalvedConversions([...week(60), { country: 'NL', day: today, sent, verified }], today)
    expect(find(100, 29)).toEqual([{ country: 'NL', day: today, share: 0.29, usualShare: 0.6 }])
    expect(find(100, 30)).toEqual([])
    expect(find(49, 0)).toEqual([])
    expect(findHalvedConversions([{ country: 'NL', day: today, sent: 100, verified: 0 }], today)).toEqual([])
  })

  test('lasts over midnight, until the new day has enough messages', () => {
    const bad = { country: 'NL', day: today, sent: 100, verified: 10 }
    const next = (sent: number, verified: number) =>
      findHalvedConversions([...week(60), bad, { country: 'NL', day: today + 1, sent, verified }], today + 1)
    expect(next(0, 0)).toHaveLength(1)
    expect(next(49, 49)).toHaveLength(1)
    expect(next(50, 30)).toEqual([])
  })
})
