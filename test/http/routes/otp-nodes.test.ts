import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Plan } from '../../../src/domain/model/plans.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestPostgres } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff, stranger } from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'
import { guardOffEnv, createOtpClient, countByOutcome } from '../../helpers/otp-client.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import { createTestService, type TestResponse } from '../../helpers/service.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL'] ?? ''
const rounds = 10
/** Deadlocks are rarer than lost updates. */
const deadlockRounds = 120

const newPhone = (
  (count) => () =>
    `+1415555${1000 + count++}`
)(0)

describe.skipIf(url === '')('two nodes with a pool each on one PostgreSQL server:', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let second: Database
  beforeAll(async () => {
    opened = await openTestPostgres(url)
    second = opened.openNode()
  })
  afterAll(() => opened.dispose())

  /** Calls the same application through both nodes in turn. */
  async function startNodes(rates: Partial<Plan> = {}, env: Record<string, string> = guardOffEnv) {
    const plans = { free: { ...unlimitedPlan, ...rates } }
    const services = [
      await createTestService({ plans, env, database: opened.database }),
      await createTestService({ plans, env, database: second }),
    ] as const
    const nodes = [createOtpClient(services[0]), createOtpClient(services[1])] as const
    const developer = await services[0].createDeveloper()
    return {
      services,
      newApplication: () => services[0].createApplication(developer),
      callConcurrently: <T>(count: number, call: (node: (typeof nodes)[0], index: number) => Promise<T>) =>
        Promise.all(Array.from({ length: count }, (_, index) => call(nodes[index % 2 === 0 ? 0 : 1], index))),
      otp: nodes[0],
      async stop() {
        for (const service of services) await service.dispose()
      },
    }
  }

  test('50 sends create exactly five requests', async () => {
    const { callConcurrently, newApplication, stop } = await startNodes({ sendPerMinute: 5 })
    for (let round = 0; round < rounds; round++) {
      const application = await newApplication()
      const responses = await callConcurrently(50, (node) => node.send(application, { phone: newPhone() }))
      expect(countByOutcome(responses)).toEqual({ '201': 5, '429 RATE_LIMITED APP_RATE': 45 })
    }
    await stop()
  }, 300_000)

  // Each node has an application to itself, so that nothing but the phone makes them wait for each other.
  test('50 sends of two applications to a new phone keep its budget', async () => {
    const { callConcurrently, newApplication, stop } = await startNodes(
      {},
      {
        ...guardOffEnv,
        OTPD_PHONE_SEND_BUDGET: 'enforce',
      },
    )
    const applications = [await newApplication(), await newApplication()] as const
    for (let round = 0; round < rounds; round++) {
      const phone = newPhone()
      const responses = await callConcurrently(50, (node, index) =>
        node.send(applications[index % 2 === 0 ? 0 : 1], { phone }),
      )
      expect(countByOutcome(responses)).toEqual({ '201': 5, '429 RATE_LIMITED PHONE_SEND_BUDGET': 45 })
    }
    await stop()
  }, 300_000)

  test('sends to the same new phones in opposite orders cause no deadlock', async () => {
    const { callConcurrently, newApplication, stop } = await startNodes()
    const applications = [await newApplication(), await newApplication()] as const
    const name = new URL(opened.url).pathname.slice(1)
    await using server = new Bun.SQL(url, { max: 1 })
    // PostgreSQL's own count, of all but the last second.
    const countDeadlocks = async () => {
      const [row] = await server`select deadlocks::int as count from pg_stat_database where datname = ${name}`
      return Number(row.count)
    }
    const before = await countDeadlocks()
    for (let round = 0; round < deadlockRounds; round++) {
      const phones = Array.from({ length: 20 }, newPhone)
      const responses = await callConcurrently(40, (node, index) => {
        const place = index >> 1
        return index % 2 === 0
          ? node.send(applications[0], { phone: phones[place] })
          : node.send(applications[1], { phone: phones.at(-1 - place) })
      })
      expect(countByOutcome(responses)).toEqual({ '201': 40 })
    }
    expect(await countDeadlocks()).toBe(before)
    await stop()
  }, 300_000)

  test('64 sends of three nodes to one prefix take exactly its allowance', async () => {
    const stores = [opened.database, second, opened.openNode()].map((database) =>
      createStore(database, { keys: testKeys }),
    )
    for (let round = 0; round < rounds / 8; round++) {
      const nodes = stores.map((store) => createGuardFixture(store, guardOff))
      const message = { developerId: `dev_${round}`, phone: '+31611110001' }
      const verdicts = await Promise.all(
        Array.from({ length: 64 }, (_, n) => {
          const node = nodes[n % 3]
          return node?.evaluate(node.createRequest(message))
        }),
      )
      // 30, as those in flight count a fifth up to 30.
      expect(verdicts.filter((verdict) => verdict?.blocked === false)).toHaveLength(54)
    }
  }, 300_000)

  test('48 sends of three nodes with one solved challenge pass once', async () => {
    const stores = [opened.database, second, opened.openNode()].map((database) =>
      createStore(database, { keys: testKeys }),
    )
    const settings = { ...guardOff, challenge: { kind: 'altcha' } as const }
    for (let round = 0; round < rounds / 8; round++) {
      const nodes = stores.map((store) => createGuardFixture(store, settings))
      const sender = { ...stranger, contexts: [`device_${round}`] }
      const message = { developerId: `dev_challenge_${round}` }
      const spent = nodes[0]
      for (let n = 0; n < 5; n++) await spent?.evaluate(spent.createRequest(message), sender)
      const once = `challenge ${round}`
      const verdicts = await Promise.all(
        Array.from({ length: 48 }, (_, n) => {
          const node = nodes[n % 3]
          return node?.evaluate(
            node.createRequest({ ...message, challenge: { outcome: 'passed', once } }),
            sender,
          )
        }),
      )
      expect(verdicts.filter((verdict) => verdict?.blocked === false)).toHaveLength(1)
      expect(verdicts.filter((verdict) => verdict?.challenge === 'needed')).toHaveLength(47)
    }
  }, 300_000)

  test('of 50 verifications, the right code succeeds once and the wrong one is compared five times', async () => {
    const { callConcurrently, newApplication, otp, stop } = await startNodes()
    const application = await newApplication()
    for (let round = 0; round < rounds; round++) {
      const right = await otp.sendOrThrow(application, { phone: newPhone() })
      const code = await otp.getCode(right.requestId)
      const successes = await callConcurrently(50, (node) => node.verify(application, right.requestId, code))
      expect(countByOutcome(successes)).toEqual({ '200': 1, '409 ALREADY_VERIFIED': 49 })
      const wrong = await otp.sendOrThrow(application, { phone: newPhone() })
      const guess = await otp.getWrongCode(wrong.requestId)
      const failures = await callConcurrently(50, (node) => node.verify(application, wrong.requestId, guess))
      expect(countByOutcome(failures)).toEqual({ '400 INVALID_CODE': 5, '410 ATTEMPTS_EXHAUSTED': 45 })
    }
    await stop()
  }, 300_000)

  test('concurrent operations of every kind cause no deadlock and no 5xx', async () => {
    const { services, callConcurrently, newApplication, otp, stop } = await startNodes({}, {})
    const applications = [await newApplication(), await newApplication(), await newApplication()] as const
    for (let round = 0; round < rounds; round++) {
      const phone = newPhone()
      // Expired when the calls arrive: found by the sweepers of both nodes and by verifications.
      const expiring = await Promise.all(
        applications.map((as) => otp.sendOrThrow(as, { phone, ttlSeconds: 60 })),
      )
      for (const { clock } of services) clock.advance(60_000)
      const fresh = await Promise.all(applications.map((as) => otp.sendOrThrow(as, { phone })))
      const responses = callConcurrently(60, async (node, index): Promise<TestResponse<unknown>> => {
        const as = applications[index % 3] ?? applications[0]
        const requestId = (index % 7 === 0 ? expiring : fresh)[index % 3]?.requestId ?? ''
        if (index % 5 === 0) return node.send(as, { phone })
        if (index % 5 === 1) return node.cancel(as, requestId)
        return index % 5 === 2 ? node.verifyRightCode(as, requestId) : node.verifyWrongCode(as, requestId)
      })
      await Promise.all([responses, ...services.map(({ services }) => services.otp.expireRequests(3))])
      const failed = (await responses).filter(({ status }) => status >= 500)
      expect(failed.map(({ text }) => text)).toEqual([])
    }
    await stop()
  }, 300_000)
})
