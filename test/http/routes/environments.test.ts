import { afterEach, beforeEach, expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestCaller,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Row = { id: string; requestId: string; environment: string; type: string }

describeEachDatabase('environments', (database) => {
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let live: TestApplication
  let staging: TestApplication

  beforeEach(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    live = await service.createApplication(owner)
    staging = await service.createApplication(owner, { environment: 'test' })
  })
  afterEach(() => service.dispose())

  const get = async <T = Row[]>(path: string, as: TestCaller = owner) =>
    service.request<T>('GET', path, { as })
  const ids = async (path: string) => (await get(path)).data.map(({ id }) => id)
  const phone = (n: number) => `+1415555${2000 + n}`

  /** Sends in turns and verifies every other code. @returns the requests, newest first */
  async function use(count: number, applications = [live, staging]) {
    const sent: string[] = []
    for (let i = 0; i < count; i++) {
      service.clock.advance(1_000)
      const application = applications[i % applications.length] ?? live
      const { requestId } = await otp.sendOrThrow(application, { phone: phone(i) })
      if (i % 4 < 2) await otp.verifyRightCode(application, requestId)
      sent.unshift(requestId)
    }
    return sent
  }

  test('separate requests, also by status and with pages', async () => {
    const sent = await use(9)
    const [ofLive, ofTest] = [sent.filter((_, i) => i % 2 === 0), sent.filter((_, i) => i % 2 === 1)]
    expect(await ids('/v1/otp')).toEqual(sent)
    expect(await ids('/v1/otp?environment=live')).toEqual(ofLive)
    expect(await ids('/v1/otp?environment=test')).toEqual(ofTest)
    for (const status of ['verified', 'pending', 'expired']) {
      const listed = await Promise.all(
        ['live', 'test'].map((one) => ids(`/v1/otp?status=${status}&environment=${one}`)),
      )
      expect(listed.flat().toSorted()).toEqual((await ids(`/v1/otp?status=${status}`)).toSorted())
    }
    const first = await get('/v1/otp?environment=test&limit=3')
    const second = await get(`/v1/otp?environment=test&limit=3&cursor=${first.pagination?.nextCursor}`)
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ofTest)
    expect(await ids(`/v1/otp?environment=test&appId=${live.id}`)).toEqual([])
    expect(await ids(`/v1/otp?environment=live&appId=${live.id}`)).toEqual(ofLive)
    expect(await ids(`/v1/otp?environment=test&phone=${encodeURIComponent(phone(0))}`)).toEqual([])
    expect((await get('/v1/otp?environment=prod')).status).toBe(400)
  })

  test('separate expired requests that are not closed yet', async () => {
    const sent = await use(4)
    service.clock.advance(600_000)
    expect(await ids('/v1/otp?status=expired&environment=test')).toEqual([sent[0]] as string[])
    expect(await ids('/v1/otp?status=pending&environment=test')).toEqual([])
  })

  test('separate log entries, also by type and in both directions', async () => {
    await use(6)
    const all = (await get('/v1/logs?limit=200')).data
    for (const [environment, appId] of [
      ['live', live.id],
      ['test', staging.id],
    ]) {
      const own = await ids(`/v1/logs?limit=200&appId=${appId}`)
      expect(own.length).toBeGreaterThan(3)
      expect(await ids(`/v1/logs?limit=200&environment=${environment}`)).toEqual(own)
      expect(await ids(`/v1/logs?environment=${environment}&after=${own[0]}&limit=2`)).toEqual(
        own.slice(1, 3),
      )
      expect(await ids(`/v1/logs?environment=${environment}&type=otp.sent,otp.verified&limit=200`)).toEqual(
        own,
      )
      expect(await ids(`/v1/logs?environment=${environment}&appId=${appId}&limit=200`)).toEqual(own)
    }
    expect(await ids(`/v1/logs?environment=test&appId=${live.id}`)).toEqual([])
    expect(await ids(`/v1/logs?environment=test&requestId=${all[0]?.requestId}`)).toEqual([])
    expect((await ids(`/v1/logs?environment=live&requestId=${all[0]?.requestId}`)).length).toBe(2)
  })

  test('stay those of a deleted application', async () => {
    const sent = await use(3, [staging])
    await otp.sendOrThrow(live)
    const entries = await ids('/v1/logs?environment=test')
    expect((await service.request('DELETE', `/v1/applications/${staging.id}`, { as: owner })).status).toBe(
      200,
    )
    expect(await ids('/v1/otp?environment=test')).toEqual(sent)
    expect(await ids('/v1/logs?environment=test')).toEqual(entries)
  })

  test('have users of their own', async () => {
    for (const application of [live, staging])
      await otp.verifyRightCode(
        application,
        (await otp.sendOrThrow(application, { phone: phone(1) })).requestId,
      )
    const { requestId } = await otp.sendOrThrow(staging, { phone: phone(2) })
    await otp.verifyRightCode(staging, requestId)
    const environmentsOf = async (query: string) =>
      (await get(`/v1/users${query}`)).data.map(({ environment }) => environment)
    expect(await environmentsOf('')).toEqual(['test', 'test', 'live'])
    expect(await environmentsOf('?environment=live')).toEqual(['live'])
    expect(await environmentsOf('?environment=test')).toEqual(['test', 'test'])

    const find = async (n: number, query = '', as: TestCaller = owner) => {
      const path = `/v1/users/${encodeURIComponent(phone(n))}${query}`
      const { status, data } = await get<Row | undefined>(path, as)
      return status === 200 ? data?.environment : status
    }
    const keyOf = (application: TestApplication) => ({ headers: { 'x-api-key': application.apiKey } })
    expect([await find(1), await find(2)]).toEqual(['live', 'test'])
    expect([await find(1, '?environment=test'), await find(2, '?environment=live')]).toEqual(['test', 404])
    // An API key sees only its own environment.
    expect([await find(1, '', keyOf(live)), await find(1, '', keyOf(staging))]).toEqual(['live', 'test'])
    expect([await find(2, '', keyOf(live)), await find(2, '', keyOf(staging))]).toEqual([404, 'test'])
    expect(await find(1, '?environment=test', keyOf(live))).toBe(404)
  })

  test('have counts of their own', async () => {
    await use(6, [live, live, staging])
    const summary = async (query: string) =>
      (await get<Record<string, number>>(`/v1/analytics/summary${query}`)).data
    expect(await summary('')).toMatchObject({
      applications: 2,
      otpRequests: 6,
      otpVerified: 4,
      activeUsers: 4,
    })
    expect(await summary('?environment=live')).toEqual({
      applications: 1,
      otpRequests: 4,
      otpVerified: 3,
      successRate: 75,
      activeUsers: 3,
    })
    expect(await summary('?environment=test')).toMatchObject({
      otpRequests: 2,
      otpVerified: 1,
      activeUsers: 1,
    })
    const today = async (query: string) =>
      (
        await get<Array<{ sent: number; verified: number }>>(`/v1/analytics/timeseries?range=7d${query}`)
      ).data.at(-1)
    expect(await today('&environment=live')).toMatchObject({ sent: 4, verified: 3, failed: 0 })
    expect(await today('&environment=test')).toMatchObject({ sent: 2, verified: 1 })
    expect(await today(`&appId=${live.id}`)).toMatchObject({ sent: 4, verified: 3, failed: 0 })
    expect(await today(`&appId=${live.id}&environment=test`)).toMatchObject({ sent: 0, verified: 0 })
    const unknown = await service.request('GET', '/v1/analytics/timeseries?appId=app_1', { as: owner })
    expect(unknown.error.message).toBe('No application with this id.')
    // A user whose last verification moves to another day stays one user.
    service.clock.advance(24 * 3_600_000)
    const { requestId } = await otp.sendOrThrow(live, { phone: phone(0) })
    await otp.verifyRightCode(live, requestId)
    expect(await summary('?environment=live')).toMatchObject({ activeUsers: 3 })
  })
})
