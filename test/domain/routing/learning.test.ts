import { beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import type { DeliveryTry } from '../../../src/domain/model/delivery.ts'
import { knownSenderLine } from '../../../src/domain/model/request-history.ts'
import { formatTry } from '../../../src/domain/model/try-lines.ts'
import type { OtpRequest } from '../../../src/domain/model/request.ts'
import type { RouteCell } from '../../../src/domain/model/route-choice.ts'
import { createRouteLearning } from '../../../src/domain/routing/learning.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, minuteMs, secondMs } from '../../../src/shared/durations.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'

setDefaultTimeout(30_000)

describeEachDatabase('nodes that learn from each other', (database) => {
  let clock: ReturnType<typeof testClock>
  /** Providers of their own for each test, as all use the same database. */
  let [a, b] = ['a', 'b']
  let tests = 0
  beforeEach(() => {
    clock = testClock()
    tests++
    a = `a${tests}`
    b = `b${tests}`
  })

  async function startNode() {
    const store = createStore(database(), { keys: testKeys, clock })
    const learning = createRouteLearning({ store, clock, isShared: true, randomNumber: () => 0.99 })
    await learning.start()
    return learning
  }
  type Node = Awaited<ReturnType<typeof startNode>>

  const cell = (provider: string): RouteCell => ({ provider, channel: 'sms', country: 'NL' })
  const tryOf = (provider: string, at: number): DeliveryTry => ({
    at,
    channel: 'sms',
    provider,
    messageId: 'm1',
    outcome: 'accepted',
    error: null,
    reply: null,
    latencyMs: 5,
  })
  /** A request with a message through each of the providers, in order. */
  function requestOf(status: OtpRequest['status'], ...providers: string[]): OtpRequest {
    const request = createPendingRequest(clock.now(), { country: 'NL', status })
    const tries = providers.map((provider, index) => tryOf(provider, clock.now() + index * 30 * secondMs))
    return { ...request, history: tries.map((one) => formatTry(request, one)).join('') }
  }
  function end(node: Node, count: number, ...request: Parameters<typeof requestOf>) {
    for (let index = 0; index < count; index++) node.recordEnd(requestOf(...request))
  }
  const firstChoice = (node: Node) => {
    const candidates = [a, b].map((provider) => ({
      provider,
      price: 1,
      isOpen: false,
      wasTried: false,
    }))
    const question = { strategy: 'conversion', channel: 'sms', country: 'NL', candidates } as const
    return node.choose(question).considered[0]?.provider
  }

  test('choose by what the others have counted, also after a start', async () => {
    const [one, other] = [await startNode(), await startNode()]
    end(one, 60, 'expired', a)
    end(other, 60, 'verified', b)
    expect([firstChoice(one), firstChoice(other)]).toEqual([b, b])
    await one.share()
    await other.share()
    await one.share()
    for (const node of [one, other, await startNode()]) {
      expect(node.estimate(cell(a))).toMatchObject({ samples: 60, scope: 'country' })
      expect(node.estimate(cell(b))).toMatchObject({ samples: 60, scope: 'country' })
      expect(firstChoice(node)).toBe(b)
    }
  })

  test('choose by known senders where there are enough, also after a start', async () => {
    const node = await startNode()
    for (const provider of [a, b]) {
      const request = requestOf('verified', provider)
      const known = { ...request, country: 'BE', history: `${knownSenderLine}${request.history}` }
      for (let index = 0; index < 60; index++) node.recordEnd(known)
    }
    for (let index = 0; index < 600; index++) node.recordEnd({ ...requestOf('expired', a), country: 'BE' })
    await node.share()
    for (const one of [node, await startNode()]) {
      const [first, second] = [a, b].map((provider) => one.estimate({ ...cell(provider), country: 'BE' }))
      expect(first).toMatchObject({ samples: 60, scope: 'country' })
      expect(first).toEqual(second)
    }
  })

  test('add up what they count at the same time', async () => {
    const nodes = await Promise.all(Array.from({ length: 4 }, startNode))
    for (let round = 0; round < 5; round++) {
      for (const node of nodes) end(node, 5, 'verified', a)
      await Promise.all(nodes.map((node) => node.share()))
    }
    for (const node of nodes) {
      await node.share()
      expect(node.estimate(cell(a)).samples).toBeCloseTo(100, 1)
    }
  })

  test('see a silent provider at once, and its next verified code', async () => {
    const [one, other] = [await startNode(), await startNode()]
    end(one, 100, 'verified', a)
    await one.share()
    clock.advance(minuteMs)
    const request = createPendingRequest(clock.now(), { country: 'NL' })
    for (let index = 0; index < 20; index++) one.recordSent(request, cell(a), clock.now())
    clock.advance(minuteMs)
    await other.share()
    expect(other.estimate(cell(a)).isSilent).toBe(false)
    expect(one.estimate(cell(a)).isSilent).toBe(true)
    await one.share()
    await other.share()
    expect(other.estimate(cell(a)).isSilent).toBe(true)
    end(other, 1, 'verified', a)
    await other.share()
    await one.share()
    expect(one.estimate(cell(a)).isSilent).toBe(false)
  })

  test('credit the newest message of a code, and count only known outcomes', async () => {
    const node = await startNode()
    end(node, 50, 'verified', a, b)
    end(node, 50, 'canceled', b)
    end(node, 50, 'failed', b)
    const [first, newest] = [node.estimate(cell(a)), node.estimate(cell(b))]
    expect([first.samples, newest.samples]).toEqual([50, 50])
    expect(first.conversion).toBeLessThan(0.05)
    expect(newest.conversion).toBeGreaterThan(0.95)
  })

  test('forget counts of a month ago at a start', async () => {
    const node = await startNode()
    end(node, 10, 'verified', a)
    await node.share()
    clock.advance(31 * dayMs)
    await startNode()
    expect(await database().read.select().from(database().tables.routeStatistics)).toEqual([])
  })
})
