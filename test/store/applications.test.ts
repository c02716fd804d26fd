import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeEachDatabase } from '../helpers/databases.ts'
import { readRows } from '../helpers/read-rows.ts'
import { createTestService, type TestDeveloper, type TestService } from '../helpers/service.ts'

type Listed = Array<{ id: string; appId: string; type: string }>

describeEachDatabase('applications', (database) => {
  let service: TestService
  let owner: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({ database: database() })
    owner = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  const list = async (path: string) => (await service.request<Listed>('GET', path, { as: owner })).data
  const listRows = async (table: 'webhookEndpoints' | 'webhookDeliveries') =>
    (await database().read.select().from(database().tables[table])).length

  test('a deletion removes webhooks and undelivered events, and keeps requests, log and counters', async () => {
    const deletedApplication = await service.createApplication(owner, { environment: 'test' })
    const keptApplication = await service.createApplication(owner, { environment: 'test' })
    for (const application of [deletedApplication, keptApplication]) {
      const endpoint = { appId: application.id, url: 'https://hooks.example/otpd', events: ['*'] }
      expect((await service.request('POST', '/v1/webhooks', { as: owner, body: endpoint })).status).toBe(201)
      const sent = await service.request('POST', '/v1/otp/send', {
        as: application,
        body: { phone: '+14155550100' },
      })
      expect(sent.status).toBe(201)
    }
    const deliveriesOfEach = (await listRows('webhookDeliveries')) / 2
    expect(deliveriesOfEach).toBeGreaterThan(0)
    const requests = await list('/v1/otp')
    const log = await list('/v1/logs')
    const counts = await service.request('GET', '/v1/analytics/timeseries', { as: owner })
    expect(requests).toHaveLength(2)

    const path = `/v1/applications/${deletedApplication.id}`
    expect((await service.request('DELETE', path, { as: owner })).status).toBe(200)

    expect((await list('/v1/webhooks')).map(({ appId }) => appId)).toEqual([keptApplication.id])
    expect(await listRows('webhookEndpoints')).toBe(1)
    expect(await listRows('webhookDeliveries')).toBe(deliveriesOfEach)
    expect(await list('/v1/otp')).toEqual(requests)
    expect(await list(`/v1/otp?appId=${deletedApplication.id}`)).toEqual(
      requests.filter(({ appId }) => appId === deletedApplication.id),
    )
    expect(await list('/v1/logs')).toEqual(log)
    expect(await list(`/v1/logs?appId=${deletedApplication.id}`)).not.toEqual([])
    const after = await service.request('GET', '/v1/analytics/timeseries', { as: owner })
    expect(after.data).toEqual(counts.data)
    const summary = await service.request('GET', '/v1/analytics/summary', { as: owner })
    expect(summary.data).toMatchObject({ applications: 1, otpRequests: 2 })
  })

  test("the lookup of a key returns the developer's plan", async () => {
    const developer = await service.createDeveloper('business')
    const { id, apiKey, projectId } = await service.createApplication(developer)
    const [found, ...otherMatches] = await service.store.read.applications.findByApiKeyPreview(
      apiKey.slice(-48, -44) + apiKey.slice(-4),
    )
    expect(otherMatches).toEqual([])
    expect(found).toMatchObject({
      id,
      projectId,
      developerId: developer.developer.id,
      environment: 'live',
      status: 'active',
      otpTtlSeconds: 300,
      credentialsVersion: 1,
      plan: 'business',
      developerStatus: 'active',
    })
  })

  test('rotating the key or secret makes earlier checks stale, rotating the webhook secret does not', async () => {
    const { id, ...credentials } = await service.createApplication(owner)
    const { applications, appAuth } = service.services
    const { configurationVersion: _, ...caller } = await appAuth.authenticate(credentials)
    const recheck = (credentialsVersion: number) =>
      readRows(service.store, { application: caller }, (rows) =>
        rows.credentialState({ ...caller, credentialsVersion }),
      )
    expect(await recheck(1)).toBe('ok')
    await applications.rotate(owner.developer, id, 'webhook_secret')
    expect(await recheck(1)).toBe('ok')
    await applications.rotate(owner.developer, id, 'secret')
    expect([await recheck(1), await recheck(2)]).toEqual(['stale', 'ok'])
    await applications.rotate(owner.developer, id, 'api')
    expect([await recheck(2), await recheck(3)]).toEqual(['stale', 'ok'])
    await applications.update(owner.developer, id, { status: 'disabled' })
    expect([await recheck(2), await recheck(3)]).toEqual(['stale', 'disabled'])
    await applications.update(owner.developer, id, { status: 'active' })
    const now = service.clock.now()
    const disabled = { status: 'disabled' } as const
    await service.store.write((tx) => tx.developers.update(owner.developer.id, disabled, now))
    expect(await recheck(3)).toBe('not_allowed')
    await applications.delete(owner.developer, id)
    expect(await recheck(3)).toBe('stale')
  })
})
