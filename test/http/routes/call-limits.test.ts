import { afterAll, describe, expect, test } from 'bun:test'
import { countByOutcome, createOtpClient, phone } from '../../helpers/otp-client.ts'
import { createTestService, type TestApplication, type TestDeveloper } from '../../helpers/service.ts'

const limits = { projects: 100, applications: 100, sendPerMinute: 0, verifyPerMinute: 0 }
const plans = {
  free: { ...limits, consolePerMinute: 600, lookupsPerMinute: 60 },
  large: { ...limits, consolePerMinute: 0, lookupsPerMinute: 0 },
}

const service = await createTestService({ plans, env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1' } })
const otp = createOtpClient(service)
afterAll(() => service.dispose())

const rateHeaders = ({ headers }: { headers: Headers }) => [
  headers.get('ratelimit-policy'),
  headers.get('ratelimit'),
  headers.get('retry-after'),
]
const listProjects = (as: TestDeveloper) => service.request('GET', '/v1/projects', { as })
const repeat = <T>(count: number, call: () => Promise<T>) => Promise.all(Array.from({ length: count }, call))

describe('console routes', () => {
  test('admit 600 calls a minute of a developer, over all routes, and say so', async () => {
    const developer = await service.createDeveloper()
    const first = await listProjects(developer)
    expect(rateHeaders(first)).toEqual(['"console";q=600;w=60', '"console";r=599;t=60', null])
    const others = [
      () => service.request('GET', '/v1/otp', { as: developer }),
      () => service.request('PATCH', '/v1/developer/me', { as: developer, body: {} }),
      () => service.request('GET', '/v1/otp/otp_none', { as: developer }),
      () => service.request('GET', '/v1/users/%2B14155550100', { as: developer }),
    ]
    for (const call of others) expect(rateHeaders(await call())[0]).toBe('"console";q=600;w=60')
    const responses = await repeat(700, () => listProjects(developer))
    expect(countByOutcome(responses)).toEqual({ '200': 595, '429 RATE_LIMITED CONSOLE_RATE': 105 })
    const refused = await listProjects(developer)
    expect(refused.error).toMatchObject({
      reason: 'CONSOLE_RATE',
      metadata: { policy: 'console', limit: 600, windowSeconds: 60 },
    })
    expect(rateHeaders(refused)).toEqual(['"console";q=600;w=60', '"console";r=0;t=60', '60'])
    expect((await listProjects(await service.createDeveloper())).status).toBe(200)
    service.clock.advance(60_000)
    expect((await listProjects(developer)).status).toBe(200)
  })

  test('count a stream once', async () => {
    const developer = await service.createDeveloper()
    const stream = await service.app.handle(
      new Request('http://otpd.test/v1/logs/stream', { headers: developer.headers }),
    )
    const reader = stream.body?.getReader()
    await reader?.read()
    const responses = await repeat(600, () => listProjects(developer))
    expect(countByOutcome(responses)).toEqual({ '200': 599, '429 RATE_LIMITED CONSOLE_RATE': 1 })
    await reader?.cancel()
  })

  test('leave the owner those that end a stolen API token', async () => {
    const developer = await service.createDeveloper()
    const body = { name: 'dashboard', scopes: ['otp:read'] }
    const stolen = await service.request<{ id: string; token: string }>('POST', '/v1/tokens', {
      as: developer,
      body,
    })
    const headers = { authorization: `Bearer ${stolen.data.token}` }
    const attack = [
      () => service.request('GET', '/v1/users', { headers }),
      () => service.request('DELETE', `/v1/tokens/${stolen.data.id}`, { headers }),
    ]
    for (const call of attack) await repeat(600, call)
    for (const call of attack) expect((await call()).error).toMatchObject({ reason: 'CONSOLE_RATE' })
    expect((await listProjects(developer)).status).toBe(429)

    const listed = await service.request('GET', '/v1/tokens', { as: developer })
    expect(rateHeaders(listed)).toEqual(['"console";q=600;w=60', '"console";r=598;t=60', null])
    expect((await service.request('DELETE', `/v1/tokens/${stolen.data.id}`, { as: developer })).status).toBe(
      200,
    )
    const responses = await repeat(700, () => service.request('GET', '/v1/tokens', { as: developer }))
    expect(countByOutcome(responses)).toEqual({ '200': 597, '429 RATE_LIMITED CONSOLE_RATE': 103 })
  })

  test('do not count refused tokens, and have no limit with 0', async () => {
    const developer = await service.createDeveloper('large')
    expect(countByOutcome(await repeat(1200, () => listProjects(developer)))).toEqual({ '200': 1200 })
    expect(rateHeaders(await listProjects(developer))).toEqual([null, null, null])
    expect((await service.request('GET', '/v1/projects')).status).toBe(401)
  })
})

test('histories of requests count as look-ups of the application, and not against its developer', async () => {
  const developer = await service.createDeveloper()
  const application = await service.createApplication(developer)
  const { data } = await otp.send(application, { phone })
  const read = (as: TestApplication | TestDeveloper) =>
    service.request('GET', `/v1/otp/${data.requestId}/events`, { as })
  expect(rateHeaders(await read(application))).toEqual(['"lookups";q=60;w=60', '"lookups";r=59;t=60', null])
  const responses = await repeat(100, () => read(application))
  expect(countByOutcome(responses)).toEqual({ '200': 59, '429 RATE_LIMITED LOOKUP_RATE': 41 })
  expect((await read(application)).error?.message).toContain(
    'This application may make 60 look-ups per minute',
  )
  expect(rateHeaders(await read(developer))[0]).toBe('"console";q=600;w=60')
})

describe('look-ups with an API key alone', () => {
  const lookUp = ({ apiKey }: TestApplication) =>
    service.request('GET', `/v1/users/${encodeURIComponent(phone)}`, { headers: { 'x-api-key': apiKey } })

  test('are 60 a minute per key', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    const responses = await repeat(2000, () => lookUp(application))
    expect(countByOutcome(responses)).toEqual({ '404 NOT_FOUND': 60, '429 RATE_LIMITED LOOKUP_RATE': 1940 })
    const refused = await lookUp(application)
    expect(refused.error).toMatchObject({ reason: 'LOOKUP_RATE' })
    expect(rateHeaders(refused)).toEqual(['"lookups";q=60;w=60', '"lookups";r=0;t=60', '60'])
    // Neither another key nor the developer's own calls are refused.
    expect((await lookUp(await service.createApplication(developer))).status).toBe(404)
    expect((await listProjects(developer)).status).toBe(200)
    expect((await otp.send(application)).status).toBe(201)
  })
})

describe('redeliveries and recoveries', () => {
  test('are 60 a minute of a developer, together', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer, { environment: 'test' })
    const endpoint = await service.request<{ id: string }>('POST', '/v1/webhooks', {
      as: developer,
      body: { appId: application.id, url: 'http://127.0.0.1:9/', events: ['*'] },
    })
    await otp.sendOrThrow(application, { phone })
    const path = `/v1/webhooks/${endpoint.data.id}`
    const deliveries = await service.request<Array<{ id: string }>>('GET', `${path}/deliveries`, {
      as: developer,
    })
    const body = { since: '2026-11-20T12:00:00Z' }
    const recover = () => service.request('POST', `${path}/recover`, { as: developer, body })
    const redeliver = () =>
      service.request('POST', `${path}/deliveries/${deliveries.data[0]?.id}/redeliver`, { as: developer })
    const responses = await Promise.all([...(await repeat(40, recover)), ...(await repeat(40, redeliver))])
    expect(countByOutcome(responses)).toEqual({ '200': 60, '429 RATE_LIMITED WEBHOOK_REDELIVERIES': 20 })
    const refused = await recover()
    expect(refused.error).toMatchObject({ reason: 'WEBHOOK_REDELIVERIES' })
    expect(rateHeaders(refused)).toEqual([
      '"webhook-redeliver";q=60;w=60',
      '"webhook-redeliver";r=0;t=60',
      '60',
    ])
  })
})
