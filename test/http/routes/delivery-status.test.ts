import { afterAll, beforeAll, expect, test } from 'bun:test'
import { unusedCountry } from '../../../src/domain/model/guard.ts'
import { createTwilioSettings, startGateway } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'

const gateway = startGateway()
afterAll(() => gateway.stop())

describeEachDatabase('the state of delivery', (database) => {
  let service: TestService
  let developer: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      env: { OTPD_GUARD_MODE: 'monitor', OTPD_GUARD_DENIED_COUNTRIES: 'cu' },
      delivery: { providers: [createTwilioSettings('main', gateway.url)], routes: [] },
    })
    developer = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  const get = async <T>(path: string, as = developer) => (await service.request<T>('GET', path, { as })).data

  test('names each provider with its circuit, and none of its settings', async () => {
    const closed = { name: 'main', channels: ['sms'], circuit: 'closed', failure: null, retryAt: null }
    const { text } = await service.request('GET', '/v1/providers', { as: developer })
    expect(JSON.parse(text)).toMatchObject({ data: [closed] })
    expect(text).not.toContain(gateway.url)
    const now = service.clock.now()
    const circuit = (node: string, openUntil: number) =>
      service.store.write((tx) =>
        tx.providerCircuits.put({ node, name: 'main', failure: 'provider_down', openUntil }),
      )
    await circuit('one', now + 5000)
    await circuit('two', now + 9000)
    expect(await get('/v1/providers')).toMatchObject([
      { circuit: 'open', failure: 'provider_down', retryAt: new Date(now + 9000).toISOString() },
    ])
    service.clock.advance(9000)
    expect(await get('/v1/providers')).toMatchObject([closed])
  })

  test('shows the rules of the guard in effect, and alerts of the developer alone', async () => {
    const until = service.clock.now() + 1000
    const other = await service.createDeveloper()
    await service.store.write((tx) =>
      tx.guard.apply({
        countries: new Map([[`${developer.developer.id} DE`, { ...unusedCountry, alertUntil: until }]]),
        counts: new Map(),
        contexts: new Map(),
        decisions: new Map(),
      }),
    )
    const alerts = [{ country: 'DE', until: new Date(until).toISOString() }]
    expect(await get('/v1/guard')).toMatchObject({ mode: 'monitor', alerts })
    expect(await get('/v1/guard', other)).toMatchObject({ mode: 'monitor', alerts: [] })
    const { rules } = await get<{ rules: { rule: string; limit: string | null }[] }>('/v1/guard')
    expect(rules).toContainEqual({ rule: 'COUNTRY_NOT_ALLOWED', limit: 'all but CU' })
    expect(rules).toContainEqual({ rule: 'TOTAL_DAILY', limit: null })
  })

  test('needs a login', async () => {
    for (const path of ['/v1/providers', '/v1/guard'])
      expect((await service.request('GET', path)).status).toBe(401)
  })
})
