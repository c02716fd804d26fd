import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createCallTurns } from '../../src/http/call-turns.ts'
import { createTestService, type TestDeveloper, type TestService } from '../helpers/service.ts'
import { twilioHeaders } from '../helpers/twilio-headers.ts'
import { systemWorld } from '../../src/world/system.ts'

/** Makes 60 calls at once, and expects that the event loop has turns for others between them. */
async function expectTurns(call: () => Promise<{ status: number }>, countHandled: () => number) {
  const burst: Array<Promise<{ status: number }>> = []
  for (let count = 0; count < 60; count++) {
    burst.push(call())
    // One after the other, as the server handles what has arrived on connections.
    for (let steps = 0; steps < 200; steps++) await Promise.resolve()
  }
  expect(countHandled()).toBeLessThanOrEqual(3)
  await systemWorld.timers.nextTurn()
  await systemWorld.timers.nextTurn()
  expect(countHandled()).toBeLessThanOrEqual(9)
  await Promise.all(burst)
  expect(countHandled()).toBe(60)
}

describe('calls of developers', () => {
  let service: TestService
  let ada: TestDeveloper
  let eve: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({
      env: { OTPD_CONSOLE_PER_MINUTE: '0', OTPD_COMPAT: 'twilio-verify' },
    })
    ada = await service.createDeveloper()
    eve = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  test('are handled three at a time for each developer, also those that fail', async () => {
    const { projects } = service.services
    const { get } = projects
    const running = new Map<string, number>()
    const most = new Map<string, number>()
    const handled: string[] = []
    projects.get = async (developer, id) => {
      const count = (running.get(developer.id) ?? 0) + 1
      running.set(developer.id, count)
      most.set(developer.id, Math.max(count, most.get(developer.id) ?? 0))
      handled.push(id)
      await Bun.sleep(5)
      running.set(developer.id, (running.get(developer.id) ?? 0) - 1)
      return get(developer, id)
    }
    const call = (as: TestDeveloper, id: string) => service.request('GET', `/v1/projects/${id}`, { as })
    try {
      const ids = Array.from({ length: 20 }, (_, i) => `prj_${i}`)
      const burst = Promise.all(ids.map((id) => call(ada, id)))
      await call(eve, 'prj_of_eve')
      const before = handled.length
      expect((await burst).map(({ status }) => status)).toEqual(ids.map(() => 404))

      expect(most.get(ada.developer.id)).toBe(3)
      expect(before).toBeLessThan(ids.length)
    } finally {
      projects.get = get
    }
  })

  test('are at most three in a turn of the event loop', async () => {
    const { projects } = service.services
    const { get } = projects
    let handled = 0
    // Waits for nothing, as the reads of SQLite.
    projects.get = async (developer, id) => {
      handled++
      return get(developer, id)
    }
    try {
      await expectTurns(
        () => service.request('GET', '/v1/projects/prj_1', { as: ada }),
        () => handled,
      )
    } finally {
      projects.get = get
    }
  })

  test('are at most three in a turn also through the façade of Twilio Verify', async () => {
    const { otp } = service.services
    const { list } = otp
    let handled = 0
    otp.list = async (...query) => {
      handled++
      return list(...query)
    }
    const headers = twilioHeaders(await service.createApplication(eve))
    try {
      await expectTurns(
        () => service.request('GET', '/v2/Attempts', { headers }),
        () => handled,
      )
    } finally {
      otp.list = list
    }
  })

  test('are refused if their login ended while they waited', async () => {
    const { projects, apiTokens } = service.services
    const { get } = projects
    const held = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    let running = 0
    projects.get = async (developer, id) => {
      if (++running === 3) reached.resolve()
      await held.promise
      return get(developer, id)
    }
    const body = { name: 'ci', scopes: ['write'], expiresAt: null }
    const { data } = await service.request<{ id: string; token: string }>('POST', '/v1/tokens', {
      as: ada,
      body,
    })
    try {
      const slow = [1, 2, 3].map(() => service.request('GET', '/v1/projects/prj_1', { as: ada }))
      await reached.promise
      const as = { headers: { authorization: `Bearer ${data.token}` } }
      const waiting = service.request('POST', '/v1/projects', { as, body: { name: 'late' } })
      await Bun.sleep(20)
      await apiTokens.revoke(ada.developer, data.id)
      held.resolve()
      expect((await waiting).status).toBe(401)
      await Promise.all(slow)
    } finally {
      projects.get = get
    }
  })
})

describe('a turn', () => {
  const request = () => new Request('http://localhost/')

  test('ends after a second, for a call that waits for something else', async () => {
    const timeouts: Array<() => void> = []
    const timers = {
      ...systemWorld.timers,
      setTimeout(run: () => void) {
        timeouts.push(run)
        return systemWorld.timers.setTimeout(() => {}, 0)
      },
    }
    const { begin, end } = createCallTurns({ timers })
    const slow = [request(), request(), request()]
    for (const one of slow) await begin(one, 'dev')
    let hasBegun = false
    const next = request()
    const begun = begin(next, 'dev').then(() => (hasBegun = true))
    await begin(request(), 'another')
    expect(hasBegun).toBe(false)

    timeouts[0]?.()
    await begun
    // It has ended already, and must not let two go on.
    end(slow[0] as Request)
    const others: string[] = []
    for (const name of ['first', 'second']) void begin(request(), 'dev').then(() => others.push(name))
    await Bun.sleep(0)
    expect(others).toEqual([])
    end(next)
    await Bun.sleep(0)
    expect(others).toEqual(['first'])
  })
})
