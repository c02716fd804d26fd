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

describeEachDatabase('a route with a strategy', (database) => {
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

  async function start(strategy?: Strategy) {
    const route = { channel: 'sms', countries: [], prefixes: [], applications: [] } as const
    service = await createTestService({
      plans: unlimitedPlans,
      database: database(),
      delivery: {
        providers: providers.map((name) => ({
          ...createTwilioSettings(name, gateways[name].url),
          prices: { default: prices[name], countries: {}, prefixes: {} },
        })),
        routes: [{ ...route, providers, ...(strategy && { strategy }) }],
        currency: 'EUR',
      },
      messaging: { pollMs: 3_600_000 },
      env: { OTPD_PHONE_SEND_BUDGET: 'off', OTPD_GUARD_MODE: 'off' },
    })
    application = await service.createApplication(await service.createDeveloper())
  }
  const call = <T>(path: string, body: object) =>
    service.request<T>('POST', `/v1/otp/${path}`, { as: application, body })
  /** Sends a code. @returns the request, and the provider that has its message */
  async function send() {
    const phone = `+316123${String(++phones).padStart(5, '0')}`
    const { data } = await call<{ requestId: string; provider?: string }>('send', { phone })
    return { requestId: data.requestId, provider: holderOf(phone), phone }
  }
  const holderOf = (phone: string) =>
    providers.filter((name) => gateways[name].messages.some(({ to }) => to === phone)).at(-1)
  const codeFor = (phone: string) =>
    providers.flatMap((name) => gateways[name].messages).findLast(({ to }) => to === phone)?.code
  async function sendAll(count: number, isArriving: (provider: string | undefined) => boolean) {
    const counts = { dear: 0, cheap: 0 }
    for (let index = 0; index < count; index++) {
      service.clock.advance(1_000)
      const { requestId, provider, phone } = await send()
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

  test('sends through the one with the least cost per verified code, and learns that it does not arrive', async () => {
    await start('cost')
    const before = await sendAll(60, () => true)
    expect(before.cheap).toBeGreaterThan(40)
    // From now on, nothing arrives through the cheap one.
    await sendAll(60, (provider) => provider === 'dear')
    await expire()
    const after = await sendAll(60, (provider) => provider === 'dear')
    expect(after.dear).toBeGreaterThan(40)
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
    await start('cost')
    const developer = await service.createDeveloper()
    application = await service.createApplication(developer)
    const get = async () =>
      (await service.request<Array<Record<string, unknown>>>('GET', '/v1/routes', { as: developer })).data
    expect(await get()).toEqual([])
    const { cheap } = await sendAll(60, () => true)
    const [row, ...others] = await get()
    expect(others).toEqual([])
    expect(row).toMatchObject({
      channel: 'sms',
      country: 'NL',
      strategy: 'cost',
      reason: 'best',
      firstProvider: 'dear',
      currency: 'EUR',
      sent: 60,
      saved: formatPrice(cheap * (prices.dear - prices.cheap)),
      providers: [
        { provider: 'cheap', price: '0.005', samples: cheap, circuit: 'closed', silent: false },
        { provider: 'dear', price: '0.009', samples: 60 - cheap },
      ],
    })
    // Another developer sees the same estimates, and messages of its own.
    const other = await service.request<unknown[]>('GET', '/v1/routes', {
      as: await service.createDeveloper(),
    })
    expect(other.data).toMatchObject([{ country: 'NL', sent: 0, saved: '0' }])
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
