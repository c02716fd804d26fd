import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { listen, type Listener } from '../../src/http/listener.ts'
import type { CompletedRequest } from '../../src/http/request-log.ts'
import { connect } from '../../src/store/sqlite/database.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import { exchangeRaw } from '../helpers/raw-http.ts'
import { getRequest, startRawService, type RawService } from '../helpers/raw-service.ts'
import { runReconnectingClients } from '../helpers/reconnecting-clients.ts'
import { createGate } from '../helpers/webhook-receiver.ts'

let raw: RawService
let bugs: unknown[] = []

beforeAll(async () => void (raw = await startRawService()))
beforeEach(() => {
  bugs = []
  raw.reset()
})
afterAll(() => raw.dispose())

const parsePort = ({ url }: Listener) => Number(new URL(url).port)

describe('the listener', () => {
  const needs = {
    newId: () => 'req_00000000000000000000000000',
    onBug: (error: unknown) => void bugs.push(error),
  }

  test('reports the address of the client, also for a rewritten request with a short Host', async () => {
    const app = new Elysia().get(
      '/',
      ({ request, server }) => server?.requestIP(request)?.address ?? 'unknown',
    )
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    for (const host of ['localhost', 'x']) {
      const { responses } = await exchangeRaw(parsePort(own), [getRequest('/', `Host: ${host}`)])
      expect(responses[0]?.body).toBe('127.0.0.1')
    }
    await own.stop(0)
  })

  test('shows a request what another process committed before it, in the same turn of the event loop', async () => {
    const { database, path, dispose } = await openTestSqlite()
    const other = connect(path, 1000)
    let served = 0
    let servedInTurns: number[] = []
    const app = new Elysia().get('/', async () => {
      const known = await database.read.select().from(database.tables.guardUsage)
      // Ends this turn only after the request behind it was read.
      setImmediate(() => servedInTurns.push(served))
      other.run(`insert into guard_usage values ('${served++}', '', 0, 0)`)
      return `${known.length}`
    })
    const onArrival = database.changes?.lookForForeign
    const own = listen({ host: '127.0.0.1', port: 0 }, app, { ...needs, onArrival })
    const request = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
    // A busy machine may deliver the two requests in two turns.
    for (let tries = 0; tries < 50 && servedInTurns[0] !== served; tries++) {
      const before = served
      servedInTurns = []
      const { responses } = await exchangeRaw(parsePort(own), [request + request], 2)
      expect(responses.map(({ body }) => body)).toEqual([`${before}`, `${before + 1}`])
      await new Promise(setImmediate)
    }
    expect(servedInTurns).toEqual([served, served])
    await own.stop(0)
    other.close()
    await dispose()
  })

  test('lets timers run while clients connect again after each response', async () => {
    let ticks = 0
    let served = 0
    const app = new Elysia().get('/', () => {
      if (served++ === 0) ticks = 0
      const end = performance.now() + 10
      while (performance.now() < end);
      return 'served'
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const timer = setInterval(() => ticks++, 10)
    await runReconnectingClients(parsePort(own), '/')
    clearInterval(timer)
    // About 13 responses a turn. Without turns there are none until the clients have ended.
    expect(ticks).toBeGreaterThan(10)
    await own.stop(0)
  }, 60_000)

  test('responds INTERNAL if the error handler of the application throws', async () => {
    const app = new Elysia()
      .onError(() => {
        throw new Error('a secret')
      })
      .get('/', () => 'never')
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const { responses } = await exchangeRaw(parsePort(own), [getRequest('/nothing', 'Host: localhost')])
    const [response] = responses
    if (!response) throw new Error('no answer')
    raw.expectError(response, 500, {
      code: 'INTERNAL',
      message:
        'The server failed unexpectedly. Retry; if it fails again, report the traceId to the operator.',
    })
    expect(bugs).toHaveLength(1)
    await own.stop(0)
  })

  test('reports a request that takes effect but is not answered, because another one follows on its connection', async () => {
    const [started, gate, reported] = [createGate(), createGate(), createGate()]
    const calls: CompletedRequest[] = []
    const app = new Elysia().post('/', async () => {
      started.open()
      await gate.opened
      return 'done'
    })
    const onResponse = (completed: CompletedRequest) => {
      calls.push(completed)
      reported.open()
    }
    const own = listen({ host: '127.0.0.1', port: 0 }, app, { ...needs, onResponse })
    const post = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n'
    const pipelined = await exchangeRaw(parsePort(own), [post, started.opened, post])
    gate.open()
    await reported.opened
    expect(pipelined).toEqual({ responses: [], closed: true })
    expect(calls).toMatchObject([{ status: 200, isUnanswered: true }])
    await exchangeRaw(parsePort(own), [post])
    expect(calls[1]).not.toHaveProperty('isUnanswered')
    await own.stop(0)
  })

  test('finishes requests in flight when it stops, and accepts no new ones', async () => {
    const [started, gate] = [createGate(), createGate()]
    const app = new Elysia().get('/', async () => {
      started.open()
      await gate.opened
      return 'done'
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const response = exchangeRaw(parsePort(own), [getRequest('/', 'Host: localhost')])
    await started.opened
    const stopped = own.stop(60_000)
    await expect(exchangeRaw(parsePort(own), [getRequest('/', 'Host: localhost')])).rejects.toThrow()
    gate.open()
    expect((await response).responses).toMatchObject([{ status: 200, body: 'done' }])
    await stopped
  })

  test('sends Connection: close while it drains, and closes after the response', async () => {
    const own = listen({ host: '127.0.0.1', port: 0 }, new Elysia().get('/', 'here'), needs)
    const call = getRequest('/', 'Host: localhost')
    const before = await exchangeRaw(parsePort(own), [call])
    expect(before.responses[0]?.headers.get('connection')).toBeUndefined()
    const announced = own.beginDrain(0)
    const { responses, closed } = await exchangeRaw(parsePort(own), [call], 2)
    expect(responses).toMatchObject([{ status: 200, body: 'here' }])
    expect(responses[0]?.headers.get('connection')).toBe('close')
    expect(closed).toBe(true)
    await announced
    // So long that a load balancer notices, although nothing arrives.
    const startedAt = performance.now()
    await own.beginDrain(100)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99)
    await own.stop(0)
  })

  test('keeps draining while a request is in flight', async () => {
    const started = createGate()
    const order: string[] = []
    const app = new Elysia().get('/', async () => {
      started.open()
      // Longer than the quiet time that ends the drain, shorter than its maximum.
      await new Promise((resolve) => setTimeout(resolve, 200))
      return 'here'
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const call = getRequest('/', 'Host: localhost')
    const slowResponse = exchangeRaw(parsePort(own), [call], 1).then(() => order.push('answered'))
    await started.opened
    await Promise.all([slowResponse, own.beginDrain(0).then(() => order.push('quiet'))])
    expect(order).toEqual(['answered', 'quiet'])
    await own.stop(0)
  })

  test('aborts requests that do not finish in time', async () => {
    const started = createGate()
    const app = new Elysia().get('/', () => {
      started.open()
      return new Promise<string>(() => {})
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const response = exchangeRaw(parsePort(own), [getRequest('/', 'Host: localhost')])
    await started.opened
    await own.stop(0)
    expect(await response).toEqual({ responses: [], closed: true })
  })

  test('logs the route pattern of each request, never its path', async () => {
    await raw.request(getRequest('/v1/users/%2B14155550100?x=1', 'Host: localhost'))
    await raw.request(getRequest('/v1/otp/14155550100/', 'Host: x'))
    await raw.request(getRequest('/v1/otp/14155550100', 'Host: x'))
    await raw.request(getRequest('/v1/projects', 'Host: x'))
    await raw.request(getRequest('/+14155550100', 'Host: localhost'))
    await raw.request('POST /v1/otp/verify/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(raw.calls).toMatchObject([
      { method: 'GET', route: '/v1/users/:phoneNumber', status: 401 },
      { method: 'GET', route: '/v1/otp/:id', status: 308 },
      { method: 'GET', route: '/v1/otp/:id', status: 401 },
      { method: 'GET', route: '/v1/projects', status: 401 },
      { method: 'GET', route: null, status: 404 },
      { method: 'POST', route: '/v1/otp/verify', status: 404 },
    ])
    for (const call of raw.calls) {
      expect(JSON.stringify(call)).not.toContain('4155550100')
      expect(call.traceId).toMatch(/^req_/)
      expect(call.durationMs).toBeGreaterThanOrEqual(0)
    }
  })
})
