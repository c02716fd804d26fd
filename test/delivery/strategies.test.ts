import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { formatPrice } from '../../src/domain/model/price.ts'
import type { Strategy } from '../../src/domain/model/route-choice.ts'
import { minuteMs } from '../../src/shared/durations.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { createTwilioSettings, startGateway, type Gateway } from './gateway.ts'

setDefaultTimeout(60_000)

const providers = ['dear', 'cheap'] as const
const prices = { dear: 9_000, cheap: 5_000 }

describeEachDatabase('a route with a strategy', (database, kind) => {
  let gateways: Record<(typeof providers)[number], Gateway>
  let service: TestService
  let application: TestApplication
  let phones = 0

  beforeEach(async () => {
    gateways = { dear: startGateway(), cheap: startGateway() }
    const store = createStore(database(), { keys: testKeys })
    await store.write(({ routeStatistics }) => routeStatistics.deleteOlder(Number.MAX_SAFE_INTEGER))
  })
  afterEach(async () => {
    await service.dispose()
    await Promise.all(providers.map((name) => gateways[name].stop()))
  })

  function delivery(strategy?: Strategy) {
    const route = { channel: 'sms', countries: [], prefixes: [], applications: [] } as const
    return {
      providers: providers.map((name) => ({
        ...createTwilioSettings(name, gateways[name].url),
        prices: { default: prices[name], countries: {}, prefixes: {} },
      })),
      routes: [{ ...route, providers, ...(strategy && { strategy }) }],
      currency: 'EUR',
    }
  }

  async function start(strategy?: Strategy, guardMode = 'off') {
    service = await createTestService({
      plans: unlimitedPlans,
      database: database(),
      delivery: delivery(strategy),
      messaging: { pollMs: 3_600_000 },
      env: { OTPD_PHONE_SEND_BUDGET: 'off', OTPD_GUARD_MODE: guardMode },
    })
    application = await service.createApplication(await service.createDeveloper())
  }
  const call = <T>(path: string, body: object) =>
    service.request<T>('POST', `/v1/otp/${path}`, { as: application, body })
  /** Sends a code. @returns the request, and the provider that has its message */
  async function send(clientIp?: string) {
    const phone = `+316123${String(++phones).padStart(5, '0')}`
    const { data } = await call<{ requestId: string; provider?: string }>('send', { phone, clientIp })
    return { requestId: data.requestId, provider: holderOf(phone), phone }
  }
  const holderOf = (phone: string) =>
    providers.filter((name) => gateways[name].messages.some(({ to }) => to === phone)).at(-1)
  const codeFor = (phone: string) =>
    providers.flatMap((name) => gateways[name].messages).findLast(({ to }) => to === phone)?.code
  async function sendAll(
    count: number,
    isArriving: (provider: string | undefined) => boolean,
    toClientIp: (index: number) => string | undefined = () => undefined,
  ) {
    const counts = { dear: 0, cheap: 0 }
    for (let index = 0; index < count; index++) {
      service.clock.advance(1_000)
      const { requestId, provider, phone } = await send(toClientIp(index))
      if (provider) counts[provider]++
      if (isArriving(provider)) await call('verify', { requestId, code: codeFor(phone) })
    }
    return counts
  }
  async function expire() {
    service.clock.advance(11 * minuteMs)
    await service.services.otp.expireRequests()
  }
  const timeline = async (requestId: string) => {
    const path = `/v1/otp/${requestId}/events`
    const { data } = await service.request<Array<Record<string, unknown>>>('GET', path, { as: application })
    return data
  }

  /** For what needs hundreds of messages: the choice asks no database, and the other tests read what it learns from of both. */
  const testOnce = (...parameters: Parameters<typeof test>) => kind === 'SQLite' && test(...parameters)

  testOnce(
    'sends through the one with the least cost per verified code, and learns that it does not arrive',
    async () => {
      await start('cost')
      const before = await sendAll(60, () => true)
      expect(before.cheap).toBeGreaterThan(40)
      // From now on, nothing arrives through the cheap one.
      await sendAll(60, (provider) => provider === 'dear')
      await expire()
      const after = await sendAll(60, (provider) => provider === 'dear')
      expect(after.dear).toBeGreaterThan(40)
    },
  )

  testOnce('is not misled by codes that attackers never enter', async () => {
    await start('cost', 'enforce')
    const customers = () => '203.0.113.9'
    await sendAll(110, () => true, customers)
    await sendAll(
      60,
      () => false,
      (index) => `198.51.${index}.9`,
    )
    await expire()
    const { learning } = service.services.messaging
    expect(
      learning.estimate({ provider: 'cheap', channel: 'sms', country: 'NL' }).conversion,
    ).toBeGreaterThan(0.9)
  })

  test('tries them in their order without one, and says nothing about a choice', async () => {
    for (const strategy of [undefined, 'order'] as const) {
      await start(strategy)
      expect(await sendAll(10, () => true)).toEqual({ dear: 10, cheap: 0 })
      const { requestId } = await send()
      for (const event of await timeline(requestId)) expect(event).not.toHaveProperty('choice')
      if (strategy === undefined) await service.dispose()
    }
  })

  test('explains the choice in the timeline, and prefers another provider for a resend', async () => {
    await start('cost')
    const { requestId, provider } = await send()
    const other = provider === 'cheap' ? 'dear' : 'cheap'
    service.clock.advance(31_000)
    expect((await call('resend', { requestId })).status).toBe(200)
    const choices = (await timeline(requestId)).flatMap((event) =>
      event['type'] === 'delivery.attempted'
        ? [{ provider: event['provider'], choice: event['choice'] }]
        : [],
    )
    const considered = (name: 'dear' | 'cheap') => ({
      provider: name,
      price: name === 'dear' ? '0.009' : '0.005',
      conversion: 75,
      samples: 0,
    })
    expect(choices).toMatchObject([
      { provider, choice: { strategy: 'cost', reason: provider === 'cheap' ? 'best' : 'explored' } },
      {
        provider: other,
        choice: { strategy: 'cost', considered: [considered(other), considered(provider ?? other)] },
      },
    ])
  })

  test('is shown by country, with what it saved against the first provider', async () => {
    await start()
    const developer = await service.createDeveloper()
    application = await service.createApplication(developer)
    const get = async (path: string, as = developer) =>
      (await service.request<Array<Record<string, unknown>>>('GET', path, { as })).data
    expect(await get('/v1/routes')).toEqual([])
    // Two of three messages of the first provider arrive: a verified code costs half as much again as a message.
    let messages = 0
    const before = await sendAll(45, () => ++messages % 3 !== 0)
    expect(before).toEqual({ dear: 45, cheap: 0 })
    expect(await get('/v1/routes')).toMatchObject([{ strategy: 'order', saved: null, sent: 45 }])
    await service.services.messaging.reload(delivery('cost'))
    const { cheap, dear } = await sendAll(60, () => true)
    const perVerified = ((45 + dear) * prices.dear) / (30 + dear)
    const saved = formatPrice(Math.round(cheap * perVerified) - cheap * prices.cheap)
    const [row, ...others] = await get('/v1/routes')
    expect(others).toEqual([])
    expect(row).toMatchObject({
      channel: 'sms',
      country: 'NL',
      strategy: 'cost',
      reason: 'best',
      firstProvider: 'dear',
      currency: 'EUR',
      sent: 105,
      saved,
      providers: [
        { provider: 'cheap', price: '0.005', samples: cheap, circuit: 'closed', silent: false },
        { provider: 'dear', price: '0.009' },
      ],
    })
    expect(await get('/v1/analytics/costs')).toMatchObject([
      { key: 'NL', provider: 'dear', sent: 45 + dear, verified: 30 + dear, saved: '0' },
      { key: 'NL', name: 'Netherlands', provider: 'cheap', sent: cheap, verified: cheap, saved },
    ])
    expect(await get('/v1/analytics/costs?range=7d&environment=test')).toEqual([])
    // Another developer sees the same estimates, and messages of its own.
    const other = await service.createDeveloper()
    expect(await get('/v1/routes', other)).toMatchObject([{ country: 'NL', sent: 0, saved: null }])
    expect(await get('/v1/analytics/costs', other)).toEqual([])
  })

  test('fails over to the next best, and leaves out a provider with an open circuit', async () => {
    await start('cost')
    gateways.cheap.refuseAll(503, 20_500)
    for (let index = 0; index < 12; index++) expect((await send()).provider).toBe('dear')
    const { requestId } = await send()
    const attempts = (await timeline(requestId)).filter(({ type }) => type === 'delivery.attempted')
    expect(attempts).toMatchObject([{ provider: 'dear', choice: { reason: 'others_open' } }])
  })
})
