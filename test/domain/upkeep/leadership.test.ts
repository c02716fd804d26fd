import { beforeEach, expect, test } from 'bun:test'
import {
  createLeaderElection,
  LeadershipLostError,
  nodeLeaseMs,
  renewalMs,
} from '../../../src/domain/upkeep/leadership.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock, type TestClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

describeEachDatabase('the leader', (database) => {
  /** Clock of the database. */
  let clock: TestClock
  let store: Store
  beforeEach(async () => {
    clock = testClock()
    store = createStore(database(), { keys: testKeys, clock })
    await database().write(async (tx) => void (await tx.delete(database().tables.leases)))
  })

  /** @param own clock of the node, which may differ from the database's */
  function startNode(node: string, own = clock) {
    const changes: boolean[] = []
    const election = createLeaderElection({
      store,
      clock: own,
      owner: crypto.randomUUID(),
      node,
      onChange: (isLeader) => void changes.push(isLeader),
    })
    return { ...election, changes, fenced: election.fence(store) }
  }
  const note = (name: string) => (tx: Pick<Store['read'], 'retention'>) =>
    tx.retention.setCheckpoint('answers', name)
  const noted = () => store.read.retention.checkpoint('answers')

  test('is the first node, until its lease has run out', async () => {
    const [a, b] = [startNode('a'), startNode('b')]
    await a.renew()
    await b.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([true, false])
    clock.advance(nodeLeaseMs - 1)
    await b.renew()
    expect(b.isLeader()).toBe(false)
    clock.advance(1)
    await b.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([false, true])
    await a.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([false, true])
    expect([a.changes, b.changes]).toEqual([[true, false], [true]])
  })

  test('stays the leader while it renews, and gives the lead up when it ends', async () => {
    const [a, b] = [startNode('a'), startNode('b')]
    for (let i = 0; i < 10; i++) {
      await a.renew()
      await b.renew()
      clock.advance(renewalMs)
    }
    expect([a.isLeader(), b.isLeader()]).toEqual([true, false])
    await a.release()
    await b.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([false, true])
  })

  test('is not a node whose clock is ahead', async () => {
    const ahead = testClock(clock.now() + 3_600_000)
    const [a, b] = [startNode('a'), startNode('b', ahead)]
    await a.renew()
    await b.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([true, false])
  })

  test('that was paused writes nothing once another leads', async () => {
    // Its clock stands still: it does not know that time has passed.
    const [a, b] = [startNode('a', testClock()), startNode('b')]
    await a.renew()
    await a.fenced.write(note('by a'))
    clock.advance(nodeLeaseMs)
    await b.renew()
    await b.fenced.write(note('by b'))
    expect(a.isLeader()).toBe(true)
    expect(await a.fenced.write(note('by a')).catch((error: unknown) => error)).toBeInstanceOf(
      LeadershipLostError,
    )
    expect(await noted()).toBe('by b')
    expect([a.isLeader(), a.changes]).toEqual([false, [true, false]])
  })

  test('that was paused does not write as the leader that it has become again', async () => {
    const [a, b] = [startNode('a', testClock()), startNode('b')]
    await a.renew()
    clock.advance(nodeLeaseMs)
    await b.renew()
    clock.advance(nodeLeaseMs)
    // Begins under the first lease, and may commit under the third.
    const stale = a.fenced.write(note('stale')).catch((error: unknown) => error)
    const renewed = a.renew()
    expect(await stale).toBeInstanceOf(LeadershipLostError)
    await renewed
    await a.fenced.write(note('fresh'))
    expect(await noted()).toBe('fresh')
  })

  test('runs tasks; other nodes skip them, and a task that loses the lead ends quietly', async () => {
    const [a, b] = [startNode('a', testClock()), startNode('b')]
    await a.renew()
    const ran: string[] = []
    await a.run(async () => void ran.push('a'))
    await b.run(async () => void ran.push('b'))
    expect(ran).toEqual(['a'])
    clock.advance(nodeLeaseMs)
    await b.renew()
    await a.run(() => a.fenced.write(note('by a')))
    expect(a.run(() => Promise.reject(new Error('a bug')))).resolves.toBeUndefined()
    expect(b.run(() => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug')
  })

  test('forgets the circuits of nodes that were lost', async () => {
    const [a, b, c] = [startNode('a'), startNode('b'), startNode('c')]
    for (const node of [a, b, c]) await node.renew()
    const open = { failure: 'provider_down', openUntil: clock.now() + 300_000 } as const
    await store.write(async ({ providerCircuits }) => {
      for (const node of ['a', 'b', 'c']) await providerCircuits.put({ node, name: 'main', ...open })
    })
    clock.advance(renewalMs)
    await a.renew()
    await c.renew()
    clock.advance(nodeLeaseMs - renewalMs)
    // Not the leader.
    await c.renew()
    expect((await store.read.providerCircuits.list()).map(({ node }) => node)).toEqual(['a', 'b', 'c'])
    await a.renew()
    expect((await store.read.providerCircuits.list()).map(({ node }) => node)).toEqual(['a', 'c'])
  })
})
