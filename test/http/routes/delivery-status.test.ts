import { afterAll, beforeAll, expect, test } from 'bun:test'
import { noGuardChanges } from '../../../src/domain/store/guard.ts'
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
    const open = { circuit: 'open', failure: 'provider_down', retryAt: new Date(now + 9000).toISOString() }
    expect(await get('/v1/providers')).toMatchObject([open])
    // Nothing shows that it works again, until a message passes.
    service.clock.advance(9000)
    expect(await get('/v1/providers')).toMatchObject([open])
    for (const node of ['one', 'two'])
      await service.store.write((tx) => tx.providerCircuits.remove({ node, name: 'main' }))
    expect(await get('/v1/providers')).toMatchObject([closed])
  })

  test("lists the developer's newest messages that a provider refused", async () => {
    const sender = await service.createDeveloper()
    const application = await service.createApplication(sender)
    gateway.refuseAll(500, 0)
    for (let index = 0; index < 4; index++)
      await service.request('POST', '/v1/otp/send', {
        as: application,
        body: { phone: `+3161234567${index}` },
      })
    gateway.acceptAll()
    type Listed = Array<{ recentRefusals: unknown[] }>
    const [main] = await get<Listed>('/v1/providers', sender)
    expect(main?.recentRefusals).toHaveLength(4)
    expect(main?.recentRefusals[0]).toEqual({
      requestId: expect.stringMatching(/^otp_/),
      at: new Date(service.clock.now()).toISOString(),
      channel: 'sms',
      outcome: 'refused',
      error: 'provider_down',
      providerReply: null,
    })
    const [others] = await get<Listed>('/v1/providers')
    expect(others?.recentRefusals).toEqual([])
  })

  test('shows the rules of the guard in effect, and alerts of the developer alone', async () => {
    const now = service.clock.now()
    const other = await service.createDeveloper()
    const [hour, day] = [Math.floor(now / 3_600_000), Math.floor(now / 86_400_000)]
    const alerted = { alertedAt: now, until: day + 2 }
    await service.store.write((tx) =>
      tx.guard.apply({
        ...noGuardChanges(),
        rows: new Map([
          [
            `${developer.developer.id} DE`,
            { windows: { unverified: [hour, 70], evidence: [day, 3], drawn: [hour, 10] }, ...alerted },
          ],
          [`${developer.developer.id} NL relay`, { windows: { unverified: [hour, 300] }, ...alerted }],
          [
            `${developer.developer.id} NL relay history`,
            { windows: { hours: [hour, 300] }, alertedAt: 0, until: day + 2 },
          ],
          [`${developer.developer.id} pool`, { windows: { unverified: [hour, 10] }, ...alerted }],
          [`${developer.developer.id} relays`, { windows: { unverified: [hour, 300] }, ...alerted }],
        ]),
      }),
    )
    const until = new Date(now + 3_600_000).toISOString()
    const alerts = [
      { country: 'DE', until },
      { country: 'NL', until },
      { country: 'pool', until },
      { country: 'relays', until },
    ]
    expect(await get('/v1/guard')).toMatchObject({
      allowances: [{ country: 'DE', verifiedPhones: 3, allowance: 160, unverified: 70, fromPool: 10 }],
      relays: [{ country: 'NL', allowance: 300, unverified: 300 }],
      pool: { allowance: 300, unverified: 10 },
    })
    expect(await get('/v1/guard', other)).toMatchObject({ allowances: [], pool: { unverified: 0 } })
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
