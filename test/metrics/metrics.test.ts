import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { get } from 'node:http'
import type { Store } from '../../src/domain/store/store.ts'
import { ServiceError } from '../../src/domain/model/errors.ts'
import { createApp } from '../../src/http/app.ts'
import { listen, type Listener } from '../../src/http/listener.ts'
import {
  createMetrics,
  serveMetrics,
  type Backlog,
  type Backups,
  type Metrics,
} from '../../src/metrics/metrics.ts'
import { withLoginMetrics } from '../../src/server/metrics.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { parseExposition, type Sample } from '../helpers/prometheus-exposition.ts'
import { runReconnectingClients } from '../helpers/reconnecting-clients.ts'
import { createOtpClient } from '../helpers/otp-client.ts'
import { createTestService, type TestService } from '../helpers/service.ts'
import { createWebhookFixture, unsharedPermits } from '../domain/webhooks/fixture.ts'

let backlog: Backlog | Error = { pending: 0, oldestAt: null }
const fresh = (backups?: Backups) =>
  createMetrics({
    version: '1.2.3',
    ...(backups && { backups }),
    now: () => 1_000_000,
    backlog: () => (backlog instanceof Error ? Promise.reject(backlog) : Promise.resolve(backlog)),
  })

/** A store whose writes end with the promise. */
const slowStore = (promise: Promise<undefined>) => ({ write: () => promise }) as unknown as Store

/** Finds the value of a series; undefined if there is no such series. */
const findValue = (samples: Sample[], name: string, labels: Record<string, string> = {}) =>
  samples.find(
    (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
  )?.value

const read = async (metrics: Metrics) => parseExposition(await metrics.render())

const fetchStatus = (url: string, host: string) =>
  new Promise((resolve, reject) => {
    get(url, { headers: { host } }, (response) => resolve(response.resume().statusCode)).on('error', reject)
  })

describe('the metrics', () => {
  test('use the text format, with help, type and conventional names', async () => {
    const metrics = fresh()
    metrics.observeRequest({ method: 'GET', route: '/v1/health', status: 200, durationMs: 3 })
    metrics.observeProviderSend('main', 'accepted', 120)
    metrics.recordGuardAlert('NL')
    const samples = await read(metrics)
    expect(samples.length).toBeGreaterThan(20)
    expect(metrics.contentType).toStartWith('text/plain; version=0.0.4')
    for (const { family, type } of samples) {
      expect(family).toMatch(/^(otpd|http|process)_[a-z_]+$/)
      if (type === 'counter') expect(family).toEndWith('_total')
      else expect(family).not.toEndWith('_total')
    }
    expect(findValue(samples, 'otpd_guard_alerts_total', { country: 'NL' })).toBe(1)
    expect(findValue(samples, 'otpd_build_info', { version: '1.2.3' })).toBe(1)
    expect(findValue(samples, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(findValue(samples, 'process_cpu_seconds_total')).toBeGreaterThan(0)
  })

  test('tell time and size of the last backup, and how many of the schedule failed', async () => {
    let last: ReturnType<Backups['last']> = null
    const value = async (metrics: Metrics, name: string) =>
      findValue(await read(metrics), `otpd_backup_${name}`)
    const metrics = fresh({ last: () => last, areScheduled: true })
    expect(await value(metrics, 'last_success_timestamp_seconds')).toBe(0)
    last = { at: 1_795_000_000_500, bytes: 7_100_000 }
    metrics.recordBackupFailure()
    expect(await value(metrics, 'last_success_timestamp_seconds')).toBe(1_795_000_000.5)
    expect(await value(metrics, 'last_bytes')).toBe(7_100_000)
    expect(await value(metrics, 'failures_total')).toBe(1)
    // Without a schedule an alert on the age must not fire; on PostgreSQL there is nothing to watch.
    const manual = fresh({ last: () => null, areScheduled: false })
    expect(await value(manual, 'last_success_timestamp_seconds')).toBeNaN()
    expect(await value(fresh(), 'failures_total')).toBeUndefined()
  })

  test('count requests by route and status in buckets, and unknown methods as one', async () => {
    const metrics = fresh()
    for (const durationMs of [1, 30, 30, 20_000])
      metrics.observeRequest({ method: 'GET', route: '/v1/otp/:id', status: 200, durationMs })
    metrics.observeRequest({ method: 'GET', route: '/v1/projects/', status: 200, durationMs: 1 })
    metrics.observeRequest({ method: 'BREW', route: null, status: 404, durationMs: 1 })
    const samples = await read(metrics)
    expect(
      findValue(samples, 'http_server_request_duration_seconds_count', { http_route: '/v1/projects' }),
    ).toBe(1)
    const name = 'http_server_request_duration_seconds'
    const labels = { http_route: '/v1/otp/{id}', http_response_status_code: '200' }
    expect(findValue(samples, `${name}_count`, labels)).toBe(4)
    expect(findValue(samples, `${name}_sum`, labels)).toBeCloseTo(20.061)
    const inBuckets = ['0.005', '0.025', '0.05', '10', '+Inf'].map((le) =>
      findValue(samples, `${name}_bucket`, { ...labels, le }),
    )
    expect(inBuckets).toEqual([1, 1, 3, 3, 4])
    expect(findValue(samples, `${name}_count`, { http_request_method: '_OTHER', http_route: 'none' })).toBe(1)
  })

  test('tell which circuits are open, and how long the queues are', async () => {
    const metrics = fresh()
    let isOpen = true
    metrics.recordCircuitOpened('main')
    metrics.watchDelivery({
      circuits: () => [{ name: 'main', isOpen }],
      pendingMessages: () => Promise.resolve(3),
    })
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const write = metrics.instrumentWrites(slowStore(promise)).write(async () => {})
    const lengths = async () => {
      const samples = await read(metrics)
      return [
        ...['writes', 'logins', 'webhooks', 'messages'].map((queue) =>
          findValue(samples, 'otpd_queue_length', { queue }),
        ),
        findValue(samples, 'otpd_provider_circuit_open', { provider: 'main' }),
        findValue(samples, 'otpd_provider_circuit_opened_total', { provider: 'main' }),
      ]
    }
    expect(await lengths()).toEqual([1, 0, 0, 3, 1, 1])
    resolve(undefined)
    await write
    isOpen = false
    expect(await lengths()).toEqual([0, 0, 0, 3, 0, 1])
  })

  test('report the webhook backlog, read again for each scrape', async () => {
    const metrics = fresh()
    backlog = { pending: 7, oldestAt: 940_000 }
    let samples = await read(metrics)
    expect(findValue(samples, 'otpd_webhook_pending')).toBe(7)
    expect(findValue(samples, 'otpd_webhook_oldest_pending_seconds')).toBe(60)
    backlog = { pending: 0, oldestAt: null }
    samples = await read(metrics)
    expect(findValue(samples, 'otpd_webhook_pending')).toBe(0)
    expect(findValue(samples, 'otpd_webhook_oldest_pending_seconds')).toBe(0)
  })

  test('are read also while the database is away, without what it would say', async () => {
    const metrics = fresh()
    metrics.watchDelivery({ circuits: () => [], pendingMessages: () => Promise.reject(new Error('away')) })
    metrics.observeRequest({ method: 'GET', route: '/v1/otp', status: 503, durationMs: 3 })
    backlog = new Error('away')
    const samples = await read(metrics)
    backlog = { pending: 0, oldestAt: null }
    const count = 'http_server_request_duration_seconds_count'
    expect(findValue(samples, count, { http_response_status_code: '503' })).toBe(1)
    expect(findValue(samples, 'otpd_webhook_pending')).toBeNaN()
    expect(findValue(samples, 'otpd_webhook_oldest_pending_seconds')).toBeNaN()
    expect(findValue(samples, 'otpd_queue_length', { queue: 'messages' })).toBeNaN()
  })

  test('are served at one path of a separate address, and a failed scrape hides the cause', async () => {
    const errors: unknown[] = []
    let circuits = (): [] => []
    const metrics = fresh()
    metrics.watchDelivery({ circuits: () => circuits(), pendingMessages: () => Promise.resolve(0) })
    const served = serveMetrics({ host: '127.0.0.1', port: 0 }, metrics, (error) => void errors.push(error))
    const origin = new URL(served.url).origin
    const response = await fetch(served.url)
    expect(response.status).toBe(200)
    expect(parseExposition(await response.text()).length).toBeGreaterThan(5)
    expect((await fetch(`${origin}/`)).status).toBe(404)
    expect((await fetch(`${origin}/v1/health`)).status).toBe(404)
    expect((await fetch(served.url, { method: 'POST' })).status).toBe(405)
    expect(await fetchStatus(served.url, 'no host [')).toBe(404)
    expect(errors).toEqual([])
    circuits = () => {
      throw new Error('a secret')
    }
    const failed = await fetch(served.url)
    expect([failed.status, await failed.text()]).toEqual([500, 'Internal error\n'])
    expect(errors).toEqual([new Error('a secret')])
    expect(() =>
      serveMetrics({ host: '127.0.0.1', port: Number(new URL(served.url).port) }, fresh(), () => {}),
    ).toThrow()
    await served.stop()
  })

  test('let timers run while clients connect again after each scrape', async () => {
    let ticks = 0
    let served = 0
    const slow = {
      contentType: 'text/plain',
      async render() {
        if (served++ === 0) ticks = 0
        const end = performance.now() + 10
        while (performance.now() < end);
        return ''
      },
    }
    const own = serveMetrics({ host: '127.0.0.1', port: 0 }, slow, () => {})
    const timer = setInterval(() => ticks++, 10)
    await runReconnectingClients(Number(new URL(own.url).port), '/metrics')
    clearInterval(timer)
    // About 13 scrapes a turn. Without turns there are none until the clients have ended.
    expect(ticks).toBeGreaterThan(10)
    await own.stop()
  }, 60_000)
})

describe('a server with metrics', () => {
  let service: TestService
  let listener: Listener
  let metrics: Metrics
  beforeAll(async () => {
    service = await createTestService()
    metrics = fresh()
    const app = createApp({
      ...service.services,
      ...withLoginMetrics(metrics, service.services.builtIn),
      readiness: () => Promise.resolve('ready' as const),
      onBug: (error) => {
        throw error
      },
    })
    const { newId } = service.services
    listener = listen({ host: '127.0.0.1', port: 0 }, app, {
      newId,
      onBug: () => {},
      onResponse: metrics.observeRequest,
    })
  })
  afterAll(async () => {
    await listener.stop(0)
    await service.dispose()
  })

  test('counts sends and verifications by outcome, rate limits and rejected logins, without personal data', async () => {
    const ada = await service.createDeveloper()
    const app = await service.createApplication(ada)
    const otp = createOtpClient(service)
    const post = (path: string, headers: Record<string, string>, body: object) =>
      fetch(`${listener.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const phone = '+14155550401'
    const sent = (await (await post('/v1/otp/send', app.headers, { phone })).json()) as {
      data: { requestId: string }
    }
    const { requestId } = sent.data
    const wrong = await otp.getWrongCode(requestId)
    expect((await post('/v1/otp/verify', app.headers, { requestId, code: wrong })).status).toBe(400)
    const right = { requestId, code: await otp.getCode(requestId) }
    expect((await post('/v1/otp/verify', app.headers, right)).status).toBe(200)
    expect((await post('/v1/otp/verify', app.headers, right)).status).toBe(409)
    for (let i = 0; i < 5; i++) await post('/v1/otp/send', app.headers, { phone })
    expect((await post('/v1/otp/send', { ...app.headers, 'x-api-key': 'nonsense' }, { phone })).status).toBe(
      401,
    )
    await fetch(`${listener.url}/v1/users/${encodeURIComponent(phone)}`, { headers: ada.headers })
    await fetch(`${listener.url}/v1/projects`, { headers: { authorization: 'Bearer nonsense' } })
    const form = { grant_type: 'password', username: 'nobody@example.com', password: 'correct horse battery' }
    const login = () =>
      fetch(`${listener.url}/v1/auth/token`, { method: 'POST', body: new URLSearchParams(form) })
    for (let i = 0; i < 6; i++) await login()

    const text = await metrics.render()
    const samples = parseExposition(text)
    const count = (name: string, labels: Record<string, string>) => findValue(samples, name, labels)
    expect(count('otpd_otp_sends_total', { outcome: 'sent' })).toBe(5)
    expect(count('otpd_otp_sends_total', { outcome: 'app_rate' })).toBe(1)
    expect(count('otpd_otp_sends_total', { outcome: 'unauthenticated' })).toBe(1)
    expect(count('otpd_otp_verifications_total', { outcome: 'verified' })).toBe(1)
    expect(count('otpd_otp_verifications_total', { outcome: 'invalid_code' })).toBe(1)
    expect(count('otpd_otp_verifications_total', { outcome: 'already_verified' })).toBe(1)
    expect(count('otpd_rate_limited_total', { policy: 'app_rate' })).toBe(1)
    expect(count('otpd_auth_failures_total', { kind: 'application', reason: 'unauthenticated' })).toBe(1)
    expect(count('otpd_auth_failures_total', { kind: 'console', reason: 'token_invalid' })).toBe(1)
    expect(count('otpd_auth_failures_total', { kind: 'login', reason: 'invalid_grant' })).toBe(5)
    expect(count('otpd_auth_failures_total', { kind: 'login', reason: 'login_attempts' })).toBe(1)
    const users = { http_route: '/v1/users/{phoneNumber}', http_response_status_code: '200' }
    expect(count('http_server_request_duration_seconds_count', users)).toBe(1)
    const sends = { http_route: '/v1/otp/send', http_response_status_code: '201' }
    expect(count('http_server_request_duration_seconds_count', sends)).toBe(5)
    for (const trace of [
      phone,
      phone.slice(1),
      'example.com',
      app.clientId,
      app.id,
      requestId,
      ada.developer.id,
      'nonsense',
    ])
      expect(text).not.toContain(trace)
  })

  test('counts webhook and message delivery attempts', async () => {
    const response = {
      statusCode: 500,
      error: 'bad_status',
      request: null,
      durationMs: 1,
      body: null,
      retryAfterMs: null,
    } as const
    const message = { url: 'https://hooks.example/a' }
    const send = metrics.instrumentWebhooks(() => Promise.resolve(response))
    // The counter ignores the message, so a partial one is enough.
    await send(message as Parameters<typeof send>[0])
    metrics.observeProviderSend('main', 'uncertain', 8000)
    metrics.recordRefusal(new ServiceError('DESTINATION_BLOCKED', ''), '/v1/otp/send')
    metrics.recordRefusal(new ServiceError('CHALLENGE_REQUIRED', ''), '/v1/otp/send')
    metrics.recordChallenge('unavailable')
    // The path is also served with a trailing slash.
    metrics.recordRefusal(new ServiceError('OTP_EXPIRED', ''), '/v1/otp/verify/')
    const samples = await read(metrics)
    expect(findValue(samples, 'otpd_webhook_attempts_total', { outcome: 'bad_status' })).toBe(1)
    const sendLabels = { provider: 'main', outcome: 'uncertain' }
    expect(findValue(samples, 'otpd_delivery_duration_seconds_count', sendLabels)).toBe(1)
    expect(findValue(samples, 'otpd_otp_sends_total', { outcome: 'destination_blocked' })).toBe(1)
    expect(findValue(samples, 'otpd_otp_sends_total', { outcome: 'challenge_required' })).toBe(1)
    expect(findValue(samples, 'otpd_challenge_checks_total', { outcome: 'unavailable' })).toBe(1)
    expect(findValue(samples, 'otpd_otp_verifications_total', { outcome: 'otp_expired' })).toBe(1)
  })
})

describeEachDatabase('the backlog', (database) => {
  test('counts unleased deliveries up to a limit and finds the oldest', async () => {
    const fixture = await createWebhookFixture(database())
    const { webhookOutbox } = fixture.store.read
    expect(await webhookOutbox.backlog(10)).toEqual({ pending: 0, oldestAt: null })
    const app = await fixture.createApplication()
    const endpoint = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/')
    const since = fixture.clock.now()
    for (let i = 0; i < 5; i++) {
      await fixture.record(app.id)
      fixture.clock.advance(1000)
    }
    expect(await webhookOutbox.backlog(10)).toEqual({ pending: 5, oldestAt: since })
    expect(await webhookOutbox.backlog(3)).toMatchObject({ pending: 3 })
    const now = fixture.clock.now()
    await fixture.store.write((tx) =>
      tx.webhookOutbox.claim({ owner: 'o', now, leaseUntil: now + 1000, permits: unsharedPermits(2) }),
    )
    expect(await webhookOutbox.backlog(10)).toMatchObject({ pending: 3 })
    await fixture.endpoints.delete(fixture.developer, endpoint)
    expect(await webhookOutbox.backlog(10)).toEqual({ pending: 0, oldestAt: null })
  })
})
