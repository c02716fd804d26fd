import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { createLeaderElection } from '../../src/domain/upkeep/leadership.ts'
import { createStore } from '../../src/store/store.ts'
import { openTestPostgres } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL']

describe.skipIf(url === undefined)('nodes on one PostgreSQL server, by its clock:', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let stores: Array<ReturnType<typeof createStore>>
  beforeAll(async () => {
    opened = await openTestPostgres(url ?? '')
    stores = [opened.database, opened.openNode()].map((database) => createStore(database, { keys: testKeys }))
  })
  afterAll(() => opened.dispose())
  beforeEach(() => write((tx) => tx.delete(leases())))

  const leases = () => opened.database.tables.leases
  const write = (
    body: (tx: Parameters<Parameters<typeof opened.database.write>[0]>[0]) => Promise<unknown>,
  ) => opened.database.write(body)
  /** Ends all leases, as if their time were over. */
  const expire = () => write((tx) => tx.update(leases()).set({ until: 0 }))

  function startNode(index: number, now = () => performance.now()) {
    const store = stores[index % 2]
    if (!store) throw new Error('no store')
    const election = createLeaderElection({
      store,
      clock: { now },
      owner: crypto.randomUUID(),
      node: `node-${index}`,
      onChange: () => {},
    })
    return { ...election, fenced: election.fence(store) }
  }

  test('exactly one of eight that want to lead at once does', async () => {
    const nodes = Array.from({ length: 8 }, (_, index) => startNode(index))
    for (let round = 0; round < 25; round++) {
      // Another one begins each time: the first mostly wins.
      const first = round % nodes.length
      await Promise.all([...nodes.slice(first), ...nodes.slice(0, first)].map((node) => node.renew()))
      expect(nodes.filter((node) => node.isLeader())).toHaveLength(1)
      await expire()
    }
    const [leader] = await opened.database.read.select().from(leases()).where(eq(leases().name, 'leader'))
    expect(leader?.epoch).toBeGreaterThan(3)
  }, 120_000)

  test('a leader that was paused in the middle of a chunk delays the next one until the chunk has ended', async () => {
    const [a, b] = [startNode(0), startNode(1)]
    const order: string[] = []
    await a.renew()
    await expire()
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const chunk = a.fenced.write(async () => {
      begun.resolve()
      await gate.promise
      order.push('chunk of a')
    })
    await begun.promise
    const takeover = b.renew().then(() => void order.push('lead of b'))
    // Time for a takeover that would not wait.
    await new Promise((resolve) => setTimeout(resolve, 200))
    gate.resolve()
    await Promise.all([chunk, takeover])
    expect(order).toEqual(['chunk of a', 'lead of b'])
    expect(b.isLeader()).toBe(true)
  })

  test('chunks of two that think they lead never overlap', async () => {
    // Clocks that stand still: neither notices that its lease is over.
    const nodes = [startNode(0, () => 0), startNode(1, () => 0)]
    let underWay = 0
    let most = 0
    let written = 0
    for (let round = 0; round < 12; round++) {
      await Promise.all(
        nodes.map(async (node) => {
          await node.renew()
          for (let chunk = 0; chunk < 3; chunk++) {
            await expire()
            await node.run(() =>
              node.fenced.write(async (tx) => {
                most = Math.max(most, ++underWay)
                await tx.retention.setCheckpoint('answers', `${round} ${chunk}`)
                await new Promise(setImmediate)
                underWay--
                written++
              }),
            )
          }
        }),
      )
    }
    expect(most).toBe(1)
    expect(written).toBeGreaterThan(10)
  }, 120_000)

  test('neither takes a lease early nor keeps it longer because its clock is wrong', async () => {
    const [a, b] = [startNode(0), startNode(1, () => performance.now() + 86_400_000)]
    await a.renew()
    await b.renew()
    expect([a.isLeader(), b.isLeader()]).toEqual([true, false])
    const [leader] = await opened.database.read.select().from(leases()).where(eq(leases().name, 'leader'))
    expect(Math.abs((leader?.until ?? 0) - 15_000 - Date.now())).toBeLessThan(5_000)
  })
})
