import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { logStart, streamsPerDeveloperMax } from '../../../src/domain/log/stream.ts'
import { createApp } from '../../../src/http/app.ts'
import { listen } from '../../../src/http/listener.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { readEventStream } from '../../helpers/event-stream.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { testWorld } from '../../helpers/world.ts'

let shared: TestService
/** The shared one, unless a test ends it or needs another database. */
let service: TestService
let ada: TestDeveloper
let web: TestApplication
/** A new phone per send, because the budget of one phone would add log entries. */
let phones = 0
/** Streams that tests left open. */
let openStreams: Array<ReturnType<typeof readEventStream>>

beforeAll(async () => {
  shared = await createTestService({ env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' } })
})
afterAll(() => shared.dispose())

beforeEach(async () => {
  openStreams = []
  await beginOn(shared)
})
afterEach(async () => {
  for (const stream of openStreams) await stream.cancel()
  if (service !== shared) await service.dispose()
})

/** Creates a developer without log entries, and an application. */
async function beginOn(created: TestService) {
  service = created
  ada = await service.createDeveloper()
  web = await service.createApplication(ada, { environment: 'test' })
}

const call = (
  query = '',
  headers: Record<string, string> = {},
  app: Pick<typeof service.app, 'handle'> = service.app,
) =>
  app.handle(
    new Request(`http://otpd.test/v1/logs/stream${query}`, { headers: { ...ada.headers, ...headers } }),
  )

async function open(
  query = '',
  headers: Record<string, string> = {},
  app?: Pick<typeof service.app, 'handle'>,
) {
  const response = await call(query, headers, app)
  expect(response.status).toBe(200)
  const stream = readEventStream(response.body)
  openStreams.push(stream)
  return stream
}

async function send(application = web) {
  const body = { phone: `+1415${5550000 + phones++}` }
  const { data } = await service.request<{ requestId: string; code: string }>('POST', '/v1/otp/send', {
    as: application,
    body,
  })
  service.services.logStreams.wake()
  return data
}

const verify = (requestId: string, code: string) =>
  service.request('POST', '/v1/otp/verify', { as: web, body: { requestId, code } })

type Entry = { id: string; type: string }
const listLog = async (query = '?limit=200') =>
  (await service.request<Entry[]>('GET', `/v1/logs${query}`, { as: ada })).data
const listIds = (entries: Entry[]) => entries.map(({ id }) => id)

describe('a stream', () => {
  test('starts with new entries, in the format of the log', async () => {
    await send()
    const [before] = await listLog()
    const stream = await open()
    expect(await stream.next()).toEqual({ id: before?.id ?? '' })
    const { requestId } = await send()
    const [, entry] = await listLog()
    expect(entry).toMatchObject({ type: 'otp.sent', requestId, appId: web.id })
    expect(await stream.next()).toEqual({ id: entry?.id ?? '', data: JSON.stringify(entry) })
  })

  test.skipIf(process.platform !== 'linux')('sends no entry that a power cut could take back', async () => {
    const gate = { open: Promise.withResolvers<void>(), isHeld: false }
    const flush = () => (gate.isHeld ? gate.open.promise : Promise.resolve())
    const opened = await openTestSqlite({ world: { ...testWorld, flush } })
    await beginOn(await createTestService({ database: opened.database }))
    const stream = await open()
    expect(await stream.next()).toEqual({ id: logStart })
    gate.isHeld = true
    const sent = send()
    // Once it is committed, a list shows it, although it is not flushed.
    let [entry] = await listLog()
    while (!entry) {
      await Bun.sleep(1)
      ;[entry] = await listLog()
    }
    service.services.logStreams.wake()
    const next = stream.next()
    expect(await Promise.race([next, Bun.sleep(50).then(() => 'nothing')])).toBe('nothing')
    gate.open.resolve()
    await sent
    expect(await next).toMatchObject({ id: entry?.id ?? '' })
    await stream.cancel()
    openStreams = []
    await service.dispose()
    await opened.dispose()
    service = shared
  })

  test('has the headers of an event stream and of every response', async () => {
    const response = await call()
    await response.body?.cancel()
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^req_/),
    })
  })

  test('on an empty log sends a position before the first entry', async () => {
    const stream = await open()
    expect(await stream.next()).toEqual({ id: logStart })
    await stream.cancel()
    await send()
    const resumed = await open('', { 'last-event-id': logStart })
    expect(await resumed.nextEntryIds(1)).toEqual(listIds(await listLog()))
  })

  test('resumes after an entry, through stored pages into new entries', async () => {
    for (let count = 0; count < 5; count++) await send()
    const [first] = await listLog()
    const stream = await open(`?after=${first?.id}`)
    expect(await stream.nextEntryIds(4)).toEqual(listIds((await listLog()).slice(1)))
    await send()
    expect(await stream.nextEntryIds(1)).toEqual(listIds((await listLog()).slice(-1)))
  })

  test('resumes after an entry that retention has deleted since: a quiet log may have no other', async () => {
    await beginOn(await createTestService())
    await send()
    const [deleted = ''] = listIds(await listLog())
    while (await service.store.write((tx) => tx.events.deleteOldest(service.clock.now() + 1, 1_000)));
    expect(await listLog()).toEqual([])
    const stream = await open('', { 'last-event-id': deleted })
    expect(await stream.next()).toEqual({ id: deleted })
    await send()
    const ids = listIds(await listLog())
    expect(ids).toHaveLength(1)
    expect(await stream.nextEntryIds(1)).toEqual(ids)
    expect(listIds(await listLog(`?after=${deleted}`))).toEqual(ids)
  })

  test('of a long log sends every entry once and in order', async () => {
    for (let count = 0; count < 250; count++) await send()
    const stream = await open(`?after=${logStart}`)
    const seen = await stream.nextEntryIds(250)
    const recent = listIds(await listLog())
    expect(seen.slice(-200)).toEqual(recent)
    expect(new Set(seen).size).toBe(250)
  })

  test('of one environment leaves out the other', async () => {
    const shop = await service.createApplication(ada, { environment: 'live' })
    const live = await open('?environment=live')
    const test = await open(`?environment=test&after=${logStart}`)
    for (const application of [web, shop, web, shop]) await send(application)
    const ids = listIds(await listLog())
    expect(await live.nextEntryIds(2)).toEqual([ids[1] ?? '', ids[3] ?? ''])
    expect(await test.nextEntryIds(2)).toEqual([ids[0] ?? '', ids[2] ?? ''])
  })

  test('prefers Last-Event-ID to after, because browsers repeat the URL', async () => {
    for (let count = 0; count < 3; count++) await send()
    const [first, second, third] = listIds(await listLog())
    const stream = await open(`?after=${first}`, { 'last-event-id': second ?? '' })
    expect(await stream.nextEntryIds(1)).toEqual([third ?? ''])
  })

  test('sends nothing of another developer', async () => {
    const eve = await service.createDeveloper()
    const stream = await open()
    await send(await service.createApplication(eve, { environment: 'test' }))
    await send()
    expect(await stream.nextEntryIds(1)).toEqual(listIds(await listLog()))
  })
})

describe('filters', () => {
  test('by application', async () => {
    const ios = await service.createApplication(ada, { environment: 'test' })
    const stream = await open(`?appId=${ios.id}`)
    await send()
    await send(ios)
    expect(await stream.nextEntryIds(1)).toEqual(listIds(await listLog(`?appId=${ios.id}`)))
  })

  test('by types, in the stream and in the list', async () => {
    const stream = await open('?type=otp.verified,otp.attempt_failed')
    const { requestId, code } = await send()
    await verify(requestId, code === '000000' ? '000001' : '000000')
    await verify(requestId, code)
    service.services.logStreams.wake()
    const matchingEntries = await listLog('?type=otp.verified,otp.attempt_failed')
    expect(matchingEntries.map(({ type }) => type)).toEqual(['otp.attempt_failed', 'otp.verified'])
    expect(await stream.nextEntryIds(2)).toEqual(listIds(matchingEntries))
  })

  test('send the position after skipped entries, so that a resumed stream does not scan them again', async () => {
    const app = createApp({
      ...service.services,
      heartbeatMs: 5,
      readiness: () => Promise.resolve('ready' as const),
      onBug: (error) => {
        throw error
      },
    })
    const stream = await open('?type=otp.expired', {}, app)
    await stream.next()
    expect(await stream.next()).toEqual({ comment: 'heartbeat' })
    await send()
    const [newestEntry] = await listLog()
    let message = await stream.next()
    while (message?.comment !== undefined) message = await stream.next()
    expect(message).toEqual({ id: newestEntry?.id ?? '' })
    expect(await stream.next()).toEqual({ comment: 'heartbeat' })
  })
})

describe('a stream is rejected', () => {
  test('with an invalid type, position or limit', async () => {
    for (const [query, path] of [
      ['?type=otp.unheard', 'type'],
      ['?type=', 'type'],
      ['?type=otp.sent,', 'type'],
      ['?after=evt_01h455vb4pex5vsknk084sn02q', 'after'],
      ['?after=nothing', 'after'],
      ['?after=', 'after'],
      ['?limit=5', 'limit'],
    ]) {
      const { status, error } = await service.request('GET', `/v1/logs/stream${query}`, { as: ada })
      const rejected = [query, 400, [expect.objectContaining({ in: 'query', path })]]
      expect([query, status, error.details]).toEqual(rejected)
    }
  })

  test('with a position in the header, and the error names it', async () => {
    const { status, error } = await service.request('GET', `/v1/logs/stream?after=${logStart}`, {
      as: { headers: { ...ada.headers, 'last-event-id': 'nothing' } },
    })
    const detail = expect.objectContaining({ in: 'header', path: 'last-event-id' })
    expect([status, error.details]).toEqual([400, [detail]])
  })

  test('without a token, before any other check', async () => {
    const response = await service.request('GET', '/v1/logs/stream?type=otp.unheard')
    expect([response.status, response.error.reason]).toEqual([401, 'TOKEN_MISSING'])
  })

  test('beyond twenty per developer, until one is closed', async () => {
    const eve = await service.createDeveloper()
    for (let count = 0; count < streamsPerDeveloperMax; count++) await open()
    const expectRefusal = async () => {
      const { status, error, headers } = await service.request('GET', '/v1/logs/stream', { as: ada })
      expect([status, error.reason, headers.get('retry-after')]).toEqual([429, 'STREAM_LIMIT', '10'])
    }
    await expectRefusal()
    // Streams that their developer does not read delay no other's.
    const evesStream = await open('', eve.headers)
    for (let count = 0; count < 10; count++) await send()
    await send(await service.createApplication(eve, { environment: 'test' }))
    expect(await evesStream.nextEntryIds(1)).toHaveLength(1)
    await openStreams[0]?.cancel()
    await open()
    await expectRefusal()
  })

  test('with an invalid position, without using one of the twenty', async () => {
    for (let count = 0; count < 2 * streamsPerDeveloperMax; count++) {
      expect((await call('?after=nothing')).status).toBe(400)
    }
    await open()
  })
})

describe('a stream ends', () => {
  const readEnd = async (stream: ReturnType<typeof readEventStream>) => [
    await stream.next(),
    await stream.next(),
  ]

  test('when the server drains, and no other starts', async () => {
    await beginOn(await createTestService())
    const stream = await open()
    await stream.next()
    const end = readEnd(stream)
    service.services.logStreams.drain()
    expect(await end).toEqual([{ event: 'end', data: '{"reason":"draining"}' }, undefined])
    const refused = await service.request('GET', '/v1/logs/stream', { as: ada })
    expect([refused.status, refused.error.code]).toEqual([503, 'UNAVAILABLE'])
  })

  test('when its token expires', async () => {
    const stream = await open()
    await stream.next()
    const end = readEnd(stream)
    service.clock.advance(400 * 24 * 3600_000)
    service.services.logStreams.wake()
    expect(await end).toEqual([{ event: 'end', data: '{"reason":"token_expired"}' }, undefined])
  })

  test('when its token is revoked', async () => {
    const token = await service.request<{ id: string; token: string }>('POST', '/v1/tokens', {
      as: ada,
      body: { name: 'tail', scopes: ['read'] },
    })
    const stream = await open('', { authorization: `Bearer ${token.data.token}` })
    await stream.next()
    await service.request('DELETE', `/v1/tokens/${token.data.id}`, { as: ada })
    const end = readEnd(stream)
    service.services.logStreams.wake()
    expect(await end).toEqual([{ event: 'end', data: '{"reason":"token_revoked"}' }, undefined])
  })

  test('within ten seconds of its developer being disabled', async () => {
    const stream = await open()
    await stream.next()
    await service.store.write((tx) => tx.developers.update(ada.developer.id, { status: 'disabled' }, 0))
    const end = readEnd(stream)
    service.clock.advance(10_000)
    service.services.logStreams.wake()
    expect(await end).toEqual([{ event: 'end', data: '{"reason":"not_allowed"}' }, undefined])
  })
})

test('HEAD has the headers of a stream and opens none', async () => {
  for (let count = 0; count < 2 * streamsPerDeveloperMax; count++) {
    const response = await service.app.handle(
      new Request('http://otpd.test/v1/logs/stream', { method: 'HEAD', headers: ada.headers }),
    )
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ])
    expect(await response.text()).toBe('')
  }
})

test('HEAD names no length, as GET does', async () => {
  const listener = listen({ host: '127.0.0.1', port: 0 }, service.app, {
    newId: service.services.newId,
    onBug: () => {},
    onResponse: () => {},
  })
  // The same connection takes the second request: no body follows the first response.
  for (let count = 0; count < 2; count++) {
    const url = new URL('/v1/logs/stream', listener.url)
    const { status, headers } = await fetch(url, { method: 'HEAD', headers: ada.headers })
    expect([status, headers.get('content-length')]).toEqual([200, null])
  }
  await listener.stop(0)
})
