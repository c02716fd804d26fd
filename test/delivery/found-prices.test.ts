import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import type { ProviderSettings } from '../../src/domain/model/delivery.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { startProviderServer } from '../helpers/provider-server.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway } from './gateway.ts'

setDefaultTimeout(60_000)

/** Takes no reports, and tells no prices. */
const spare = {
  name: 'spare',
  kind: 'http-template',
  values: {
    method: 'POST',
    bodyType: 'json',
    body: '{"to": "{{to}}", "text": "{{text}}"}',
    successStatus: '2xx',
    channels: 'sms',
  },
  prices: { default: 20_000, countries: {}, prefixes: {} },
}

describeEachDatabase('the price of a message that the provider tells only on demand', (database) => {
  let gateway: Gateway
  let service: TestService
  let developer: TestDeveloper
  let application: TestApplication
  let log: string[]

  beforeEach(() => void (gateway = startGateway()))
  afterEach(async () => {
    await service.dispose()
    await gateway.stop()
  })

  async function start({
    currency,
    feedback = true,
    spare: other,
  }: {
    currency?: string
    feedback?: boolean
    spare?: ProviderSettings
  }) {
    log = []
    service = await createTestService({
      plans: unlimitedPlans,
      database: database(),
      delivery: {
        providers: [
          {
            ...createTwilioSettings('main', gateway.url),
            prices: { default: 90_000, countries: {}, prefixes: {} },
            feedback,
          },
          ...(other ? [other] : []),
        ],
        routes: [],
        ...(currency !== undefined && { currency }),
      },
      messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
      env: { OTPD_PHONE_SEND_BUDGET: 'off', OTPD_GUARD_MODE: 'off' },
      report: (_level, text) => void log.push(text),
    })
    developer = await service.createDeveloper()
    application = await service.createApplication(developer)
  }
  const call = (path: string, body: object) =>
    service.request<{ requestId: string }>('POST', `/v1/otp/${path}`, { as: application, body })
  async function sendAndVerify() {
    const { data } = await call('send', { phone: '+31612345678' })
    const code = gateway.messages.at(-1)?.code
    expect((await call('verify', { requestId: data.requestId, code })).status).toBe(200)
    return data.requestId
  }
  const reportDue = () => service.services.messaging.reportDue()
  const lookups = () => gateway.calls.filter(({ method }) => method === 'GET').length
  const costs = async () =>
    (await service.request<object[]>('GET', '/v1/analytics/costs', { as: developer })).data

  // First, as later tests repeat the ids of its messages.
  test('and the outcome are told for a message whose response was lost, once its receipt names it', async () => {
    await start({ currency: 'EUR' })
    gateway.setPrice('-0.07900')
    // The provider has the message, but otpd does not know its id.
    gateway.setHandler((message) => {
      gateway.acceptMessage(message)
      return new Response('cut', { status: 201 })
    })
    const { data } = await call('send', { phone: '+31612345678' })
    gateway.acceptAll()
    const text = gateway.messages.at(-1)
    if (!text?.callbackUrl) throw new Error('no message')
    const { url, method, headers, body } = buildReceipt(text, 'delivered')
    const { pathname, search } = new URL(url)
    await service.app.handle(new Request(`http://otpd.test${pathname}${search}`, { method, headers, body }))
    await call('verify', { requestId: data.requestId, code: text.code })
    await reportDue()
    expect(gateway.calls.filter(({ path }) => path.endsWith(`${text.messageId}/Feedback.json`))).toHaveLength(
      1,
    )
    expect(await costs()).toMatchObject([{ cost: '0.079', estimatedCost: '0', delivered: 1 }])
  })

  test('replaces the estimate once the provider knows it, and is asked for no more', async () => {
    await start({ currency: 'EUR' })
    await sendAndVerify()
    await reportDue()
    expect(lookups()).toBe(1)
    expect(await costs()).toMatchObject([{ provider: 'main', cost: '0.09', estimatedCost: '0.09' }])
    gateway.setPrice('-0.07900')
    service.clock.advance(minuteMs)
    await reportDue()
    expect(lookups()).toBe(1)
    service.clock.advance(2 * minuteMs)
    await reportDue()
    expect(await costs()).toMatchObject([{ provider: 'main', cost: '0.079', estimatedCost: '0' }])
    service.clock.advance(hourMs)
    await reportDue()
    expect(lookups()).toBe(2)
  })

  test.each([
    ['', 'a'],
    [', although its response was lost', 'b'],
  ])('is asked for at the provider from which a message failed over%s', async (cause, digit) => {
    const other = startProviderServer()
    other.setResponse(200)
    await start({ currency: 'EUR', spare: { ...spare, values: { ...spare.values, url: other.url } } })
    const messageId = `SM${digit.repeat(32)}`
    gateway.setHandler((sent) => {
      const message = { ...gateway.acceptMessage(sent), messageId }
      return cause === '' ? gateway.createdResponse(message) : new Response('cut', { status: 504 })
    })
    await call('send', { phone: '+31612345678' })
    gateway.acceptAll()
    const text = gateway.messages.at(-1)
    if (!text) throw new Error('no message')
    const { url, method, headers, body } = buildReceipt({ ...text, messageId }, 'undelivered', 30008)
    const { pathname, search } = new URL(url)
    await service.app.handle(new Request(`http://otpd.test${pathname}${search}`, { method, headers, body }))
    await service.services.messaging.sendDue()
    other.takeCall()
    service.clock.advance(10 * minuteMs)
    await reportDue()
    const ofSpare = { provider: 'spare', cost: '0.02', estimatedCost: '0.02' }
    expect(await costs()).toMatchObject([{ provider: 'main', cost: '0.09', estimatedCost: '0.09' }, ofSpare])
    gateway.setPrice('-0.07900')
    service.clock.advance(hourMs)
    await reportDue()
    await reportDue()
    expect(await costs()).toMatchObject([{ provider: 'main', cost: '0.079', estimatedCost: '0' }, ofSpare])
    expect(lookups()).toBe(2)
    service.clock.advance(hourMs)
    await reportDue()
    expect(lookups()).toBe(2)
    await other.stop()
  })

  test('is asked for after the code has expired, too', async () => {
    await start({ currency: 'EUR', feedback: false })
    gateway.setPrice('-0.07900')
    await call('send', { phone: '+31612345678' })
    service.clock.advance(10 * minuteMs)
    await reportDue()
    expect(await costs()).toMatchObject([{ cost: '0.079', estimatedCost: '0' }])
  })

  test('is given up after a day without a line in the log: the estimate stays', async () => {
    await start({ currency: 'EUR' })
    await sendAndVerify()
    for (let hour = 0; hour < 28; hour++) {
      service.clock.advance(hourMs)
      await reportDue()
    }
    const tries = lookups()
    expect(tries).toBeWithin(5, 40)
    service.clock.advance(dayMs)
    await reportDue()
    expect(lookups()).toBe(tries)
    expect(await costs()).toMatchObject([{ cost: '0.09', estimatedCost: '0.09' }])
    expect(log.filter((line) => line.includes('outcome'))).toEqual([])
  })

  test('in another currency is not added, and not asked for again', async () => {
    await start({ currency: 'EUR' })
    gateway.setPrice('-0.07900', 'USD')
    await sendAndVerify()
    await reportDue()
    service.clock.advance(hourMs)
    await reportDue()
    expect(lookups()).toBe(1)
    expect(await costs()).toMatchObject([{ cost: '0.09', estimatedCost: '0.09' }])
  })

  test('is not asked for if no costs are counted', async () => {
    await start({})
    await sendAndVerify()
    await reportDue()
    service.clock.advance(hourMs)
    await reportDue()
    expect(lookups()).toBe(0)
  })
})
