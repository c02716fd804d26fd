import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { DeliverySettings } from '../../../src/domain/model/delivery.ts'
import { parseJson, textAt } from '../../../src/delivery/kit/json.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { startProviderServer, type ProviderServer } from '../../helpers/provider-server.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Item = Record<string, unknown>

const usPhone = (last: number) => `+1415555200${last}`
const germanPhone = '+4915112345678'

describeEachDatabase('costs', (database) => {
  let infobip: ProviderServer
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let app: TestApplication
  const lines: Array<{ text: string; fields: Record<string, unknown> }> = []

  /** One account at Infobip, whose receipts name prices, behind a second one without prices. */
  const delivery = (currency?: string): DeliverySettings => ({
    providers: ['main', 'spare'].map((name) => ({
      name,
      kind: 'infobip',
      values: { baseUrl: `${infobip.url}/${name}`, apiKey: 'key', from: 'Acme' },
      ...(name === 'main' && {
        prices: { default: 50_000, countries: { US: 7_900 }, prefixes: { '+4930': 70_000 } },
      }),
    })),
    routes: [],
    ...(currency !== undefined && { currency }),
  })

  beforeEach(async () => {
    lines.length = 0
    infobip = startProviderServer()
    acceptAll()
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: guardOffEnv,
      delivery: delivery('EUR'),
      messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
      report: (_level, text, fields) => void lines.push({ text, fields }),
    })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    app = await service.createApplication(owner, { name: 'Shop' })
  })
  afterEach(async () => {
    await service.dispose()
    await infobip.stop()
  })

  function acceptAll() {
    infobip.setHandler(({ body }) => {
      const id = textAt(parseJson(body), 'messages', 0, 'webhooks', 'callbackData')
      return Response.json({ messages: [{ messageId: `m-${id}`, status: { groupId: 1 } }] })
    })
  }

  const send = async (phone: string) => (await otp.sendOrThrow(app, { phone })).requestId
  const findMessage = async (requestId: string) =>
    (await service.store.read.messages.load({ requestId, messageNumber: 0 }))?.message
  const list = async (query: string) =>
    (await service.request<Item[]>('GET', `/v1/analytics/breakdown?${query}`, { as: owner })).data

  /** Posts Infobip's delivery report. */
  async function receive(requestId: string, group: number, price?: object) {
    const call = infobip.calls.find(({ body }) => body.includes(requestId))
    const url = textAt(parseJson(call?.body ?? ''), 'messages', 0, 'webhooks', 'delivery', 'url') ?? ''
    const result = {
      messageId: `m-${requestId}`,
      callbackData: requestId,
      status: { groupId: group, id: 5 },
      ...price,
    }
    const { pathname, search } = new URL(url)
    const response = await service.request('POST', pathname + search, { body: { results: [result] } })
    expect(response.status).toBe(200)
  }

  test('are those of the provider that has the message, by country and prefix', async () => {
    await send(usPhone(1))
    await otp.verifyRightCode(app, await send(usPhone(2)))
    await send(germanPhone)
    await send('+493023456789')
    expect(await list('by=country')).toMatchObject([
      { key: 'DE', cost: '0.12', estimatedCost: '0.12', costPerVerified: null, currency: 'EUR', unpriced: 0 },
      { key: 'US', cost: '0.0158', costPerVerified: '0.0158', sent: 2, verified: 1, unpriced: 0 },
    ])
    expect(await list('by=country&provider=main&country=US')).toMatchObject([{ key: 'US', cost: '0.0158' }])
    expect(await list('by=provider&country=DE')).toMatchObject([{ key: 'main', cost: '0.12' }, { key: null }])
    expect(await list('by=country&provider=spare')).toEqual([])
  })

  test('are unknown for a provider without prices, until its receipt names one', async () => {
    infobip.setHandler(({ path, body }) => {
      if (path.startsWith('/main/')) return new Response(null, { status: 503 })
      const id = textAt(parseJson(body), 'messages', 0, 'webhooks', 'callbackData')
      return Response.json({ messages: [{ messageId: `m-${id}`, status: { groupId: 1 } }] })
    })
    const requestId = await send(usPhone(1))
    await otp.verifyRightCode(app, requestId)
    expect(await list('by=provider')).toMatchObject([
      { key: 'spare', cost: '0', costPerVerified: null, verified: 1, unpriced: 1 },
      { key: null },
    ])
    infobip.calls.splice(0, 1)
    await receive(requestId, 3, { price: { pricePerMessage: 0.0341, currency: 'EUR' } })
    expect(await list('by=provider')).toMatchObject([
      { key: 'spare', cost: '0.0341', costPerVerified: '0.0341', estimatedCost: '0', unpriced: 0 },
      { key: null },
    ])
  })

  test('become what the receipt says, once, also if it comes after the delivery', async () => {
    const [first, second] = [await send(usPhone(1)), await send(usPhone(2))]
    const price = { smsCount: 2, price: { pricePerMessage: 0.01, currency: 'EUR' } }
    await receive(first, 1, price)
    await receive(first, 3, price)
    expect(await list('by=country')).toMatchObject([
      { cost: '0.0279', estimatedCost: '0.0079', delivered: 1 },
    ])
    await receive(second, 3)
    service.clock.advance(1_000)
    for (let i = 0; i < 3; i++) await receive(second, 3, price)
    expect(await list('by=country')).toMatchObject([{ cost: '0.04', estimatedCost: '0', delivered: 2 }])
    const message = await findMessage(second)
    expect(message).toMatchObject({ provider: 'main', estimatedPrice: 7_900, chargedPrice: 20_000 })
  })

  test('belong to the day on which the message was sent, when the price is named later', async () => {
    const sentOn = Math.floor(service.clock.now() / 86_400_000)
    const requestId = await send(usPhone(1))
    service.clock.advance(86_400_000)
    await receive(requestId, 3)
    await receive(requestId, 3, { price: { pricePerMessage: 0.01, currency: 'EUR' } })
    const rows = await service.database.read.select().from(service.database.tables.breakdownCounts)
    const costs = rows.flatMap(({ day, cost }) => (Number(cost) === 0 ? [] : [[day, Number(cost)]]))
    expect(costs.at(-1)).toEqual([sentOn, 10_000])
  })

  test('are in the timeline of the code, with what is only estimated', async () => {
    const requestId = await send(usPhone(1))
    const attempts = async () => {
      const path = `/v1/otp/${requestId}/events` as const
      const { data } = await service.request<Item[]>('GET', path, { as: owner })
      return data.filter(({ type }) => type === 'delivery.attempted')
    }
    expect(await attempts()).toMatchObject([{ provider: 'main', cost: '0.0079', costEstimated: true }])
    await receive(requestId, 2, { price: { pricePerMessage: 0.009, currency: 'EUR' } })
    await service.services.messaging.sendDue()
    expect(await attempts()).toMatchObject([
      { provider: 'main', cost: '0.009', costEstimated: false },
      { provider: 'spare', cost: null },
    ])
  })

  test('are kept for the provider that failed, and added for the one that took over', async () => {
    const requestId = await send(usPhone(1))
    await receive(requestId, 2, { price: { pricePerMessage: 0.009, currency: 'EUR' } })
    await service.services.messaging.sendDue()
    expect(await list('by=provider')).toMatchObject([
      { key: 'main', sent: 1, cost: '0.009', estimatedCost: '0' },
      { key: 'spare', sent: 1, unpriced: 1 },
      { key: null },
    ])
  })

  test('become those of a receipt that comes once another provider has the message, also twice', async () => {
    const requestId = await send(usPhone(1))
    await receive(requestId, 2)
    await service.services.messaging.sendDue()
    const price = { price: { pricePerMessage: 0.009, currency: 'EUR' } }
    for (let i = 0; i < 2; i++) await receive(requestId, 2, price)
    expect(await list('by=provider')).toMatchObject([
      { key: 'main', sent: 1, cost: '0.009', estimatedCost: '0' },
      { key: 'spare', sent: 1, unpriced: 1 },
      { key: null },
    ])
  })

  test('and receipts of a message belong to its provider, when a resend has another one', async () => {
    const requestId = await send(usPhone(1))
    const [first] = infobip.calls
    infobip.setHandler(({ path }) =>
      path.startsWith('/main/')
        ? new Response(null, { status: 503 })
        : Response.json({ messages: [{ messageId: 'm2', status: { groupId: 1 } }] }),
    )
    service.clock.advance(60_000)
    await otp.resend(app, requestId)
    infobip.calls.splice(0, infobip.calls.length, ...(first ? [first] : []))
    await receive(requestId, 3, { price: { pricePerMessage: 0.009, currency: 'EUR' } })
    expect(await list('by=provider')).toMatchObject([
      { key: 'main', sent: 1, delivered: 1, cost: '0.009' },
      { key: 'spare', sent: 1, delivered: 0, cost: '0' },
      { key: null },
    ])
  })

  test('count wholly for a message that was sent before any were counted', async () => {
    await service.services.messaging.reload(delivery())
    const requestId = await send(usPhone(1))
    await service.services.messaging.reload(delivery('EUR'))
    await receive(requestId, 3, { price: { pricePerMessage: 0.01, currency: 'EUR' } })
    expect(await list('by=country')).toMatchObject([{ cost: '0.01', estimatedCost: '0', unpriced: 0 }])
  })

  test('have those of codes of other systems, which change nothing per verified code', async () => {
    await otp.verifyRightCode(app, await send(usPhone(1)))
    infobip.calls.length = 0
    const body = { phone: usPhone(2), code: '907155' }
    const { id } = (await service.request<{ id: string }>('POST', '/v1/otp/deliver', { as: app, body })).data
    const own = { sent: 1, verified: 1, conversion: 100, costPerVerified: '0.0079' }
    const estimated = { relayed: 1, cost: '0.0158', relayedCost: '0.0079', estimatedCost: '0.0158' }
    expect(await list('by=provider')).toMatchObject([{ key: 'main', ...own, ...estimated }, { key: null }])
    const price = { price: { pricePerMessage: 0.0341, currency: 'EUR' } }
    for (let i = 0; i < 2; i++) await receive(id, 3, price)
    const charged = { relayed: 1, cost: '0.042', relayedCost: '0.0341', estimatedCost: '0.0079' }
    expect(await list('by=country')).toMatchObject([{ key: 'US', ...own, ...charged }])
    const { data: costs } = await service.request<Item[]>('GET', '/v1/analytics/costs', { as: owner })
    expect(costs).toMatchObject([{ key: 'US', provider: 'main', ...own, ...charged }])
  })

  test('in another currency are not added: the estimate stays, and the log says so once', async () => {
    for (const last of [1, 2]) {
      const requestId = await send(usPhone(last))
      await receive(requestId, 3, { price: { pricePerMessage: 0.01, currency: 'USD' } })
    }
    expect(await list('by=country')).toMatchObject([
      { cost: '0.0158', estimatedCost: '0.0158', delivered: 2 },
    ])
    expect(lines.filter(({ text }) => text.includes('another currency'))).toEqual([
      {
        text: 'a provider charges in another currency; its messages keep their estimated prices',
        fields: { provider: 'main', currency: 'USD', expected: 'EUR' },
      },
    ])
  })

  test('of an older currency are not added to those of the new one', async () => {
    const dayMs = 24 * 3_600_000
    await send(usPhone(1))
    await service.services.messaging.reload(delivery('USD'))
    await send(usPhone(2))
    expect(await list('by=country')).toMatchObject([{ currency: 'USD', sent: 2, cost: '0' }])
    service.clock.advance(dayMs)
    await send(usPhone(3))
    await service.services.messaging.reload(delivery('USD'))
    expect(await list('by=country')).toMatchObject([{ currency: 'USD', sent: 3, cost: '0.0079' }])
  })

  test('are not counted without a currency', async () => {
    await service.services.messaging.reload(delivery())
    const requestId = await send(usPhone(1))
    await receive(requestId, 3, { price: { pricePerMessage: 0.01, currency: 'EUR' } })
    expect(await list('by=country')).toMatchObject([{ sent: 1, cost: '0', unpriced: 0 }])
  })

  test('count each part of a long text', async () => {
    const { requestId } = await otp.sendOrThrow(app, { phone: usPhone(1), locale: 'am' })
    const [call] = infobip.calls
    const text = textAt(parseJson(call?.body ?? ''), 'messages', 0, 'content', 'text') ?? ''
    const message = await findMessage(requestId)
    expect(message?.estimatedPrice).toBe(text.length > 70 ? 15_800 : 7_900)
  })
})

describeEachDatabase('the breakdown', (database) => {
  test('counts what a fraud filter blocked, and the seconds until a code was entered', async () => {
    const infobip = startProviderServer()
    infobip.setResponse(200, { messages: [{ messageId: 'm', status: { groupId: 1 } }] })
    const service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: guardOffEnv,
      delivery: {
        providers: [
          {
            name: 'main',
            kind: 'infobip',
            values: { baseUrl: infobip.url, apiKey: 'key', from: 'Acme' },
          },
        ],
        routes: [],
      },
      messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
    })
    const otp = createOtpClient(service)
    const owner = await service.createDeveloper()
    const app = await service.createApplication(owner)
    for (const [index, seconds] of [4, 12, 16, 45, 200].entries()) {
      const { requestId } = await otp.sendOrThrow(app, { phone: usPhone(index) })
      service.clock.advance(seconds * 1000)
      await otp.verifyRightCode(app, requestId)
    }
    infobip.setResponse(200, {
      messages: [{ status: { groupId: 5, id: 87, name: 'SIGNALS_BLOCKED' } }],
    })
    expect((await otp.send(app, { phone: usPhone(9) })).status).toBe(502)
    const { data } = await service.request<Item[]>('GET', '/v1/analytics/breakdown?by=provider', {
      as: owner,
    })
    expect(data.find(({ key }) => key === 'main')).toMatchObject({
      sent: 5,
      verified: 5,
      blocked: 1,
      medianSeconds: 18,
      cost: null,
      currency: null,
      unpriced: null,
    })
    await service.dispose()
    await infobip.stop()
  })
})
