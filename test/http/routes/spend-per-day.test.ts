import { expect, test } from 'bun:test'
import type { Database } from '../../../src/store/engine/database.ts'
import { parseJson, textAt } from '../../../src/delivery/kit/json.ts'
import { describeEachDatabase, openTestPostgres } from '../../helpers/databases.ts'
import { createOtpClient, createOtpTestService, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { startProviderServer } from '../../helpers/provider-server.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

type Item = Record<string, unknown>

const usPhone = (last: number) => `+1415555200${last}`

/** Starts a service that enforces one limit of a day, with providers that take each message for 0.05. */
async function startCase(database: Database, limit: Record<string, string>, names: readonly string[]) {
  const infobip = startProviderServer()
  const providers = names.map((name) => ({
    name,
    kind: 'infobip',
    values: { baseUrl: `${infobip.url}/${name}`, apiKey: 'key', from: 'Acme' },
    prices: { default: 50_000, countries: {}, prefixes: {} },
  }))
  const { service, otp, application } = await createOtpTestService({
    database,
    env: { ...guardOffEnv, OTPD_GUARD_MODE: 'enforce', OTPD_PRICES_CURRENCY: 'EUR', ...limit },
    delivery: { providers, routes: [], currency: 'EUR' },
    messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
  })
  // The tests share a database.
  const run = crypto.randomUUID()
  let accepted = 0
  const messageIdOf = (number: number) => `${run}/${number}`
  infobip.setHandler(() =>
    Response.json({ messages: [{ messageId: messageIdOf(accepted++), status: { groupId: 1 } }] }),
  )
  async function stop() {
    await service.dispose()
    await infobip.stop()
  }
  return { infobip, service, otp, app: application, messageIdOf, stop }
}

/** Reports that a message was not delivered, and sends it through the next provider if there is one. */
async function reportUndelivered(service: TestService, { body }: { body: string }, messageId: string) {
  const url = new URL(textAt(parseJson(body), 'messages', 0, 'webhooks', 'delivery', 'url') ?? '')
  const results = [{ messageId, status: { groupId: 2, id: 9 } }]
  await service.request('POST', url.pathname, { body: { results } })
  await service.services.messaging.sendDue()
}

const spendLimit = { OTPD_GUARD_SPEND_PER_DAY: '0.1' }

describeEachDatabase('guard.spendPerDay', (database) => {
  test('counts a message that fails over after a receipt twice: both providers charge', async () => {
    const { infobip, service, otp, app, messageIdOf, stop } = await startCase(database(), spendLimit, [
      'main',
      'spare',
    ])
    await otp.sendOrThrow(app, { phone: usPhone(1) })
    await reportUndelivered(service, infobip.takeCall(), messageIdOf(0))
    expect(infobip.takeCall().path).toStartWith('/spare/')
    const refused = await otp.send(app, { phone: usPhone(2) })
    expect([refused.status, refused.error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
    expect(infobip.calls).toEqual([])
    await stop()
  })
})

describeEachDatabase('a message that fails over', (database) => {
  test.each([
    ['no more than one message may leave on a day', { OTPD_GUARD_TOTAL_PER_DAY: '1' }, 'TOTAL_DAILY'],
    ['there is money for one', { OTPD_GUARD_SPEND_PER_DAY: '0.05' }, 'SPEND_DAILY'],
  ])('stays with the first provider if %s', async (_, limit, rule) => {
    const { infobip, service, otp, app, messageIdOf, stop } = await startCase(database(), limit, [
      'main',
      'spare',
    ])
    const { requestId } = await otp.sendOrThrow(app, { phone: usPhone(1) })
    await reportUndelivered(service, infobip.takeCall(), messageIdOf(0))
    expect(infobip.calls).toEqual([])
    const { data } = await service.request<{ events: Item[] }>('GET', `/v1/otp/${requestId}/events`, {
      as: app,
    })
    expect(JSON.stringify(data)).toContain(`"detail":"failover ${rule}"`)
    await stop()
  })

  test('counts in the allowance of its country: with three providers no more leave than with one', async () => {
    const names = ['main', 'spare', 'last']
    const { infobip, service, otp, app, messageIdOf, stop } = await startCase(database(), {}, names)
    for (let n = 0; n < 60; n++)
      await otp.sendOrThrow(app, { phone: `+2526${String(1_000_000 + 10_000 * n)}` })
    let next = 0
    for (const calls = infobip.calls; next < calls.length; next++)
      await reportUndelivered(service, calls[next] ?? { body: '' }, messageIdOf(next))
    expect(infobip.calls).toHaveLength(100)
    await stop()
  })
})

describeEachDatabase('the limits of a day', (database) => {
  test.each([
    ['guard.totalPerDay', { OTPD_GUARD_TOTAL_PER_DAY: '2' }],
    ['guard.spendPerDay', spendLimit],
  ])('messages that no provider took use up nothing of %s', async (_, limit) => {
    const { infobip, service, otp, app, stop } = await startCase(database(), limit, ['main'])
    const send = async (last: number) => (await otp.send(app, { phone: usPhone(last) })).status
    const refuse = (status: object) => infobip.setResponse(200, { messages: [{ messageId: 'm', status }] })
    refuse({ groupId: 5, id: 52 })
    const deliver = { phone: usPhone(0), code: '123456' }
    for (let n = 0; n < 3; n++) expect(await send(n)).toBe(502)
    expect((await service.request('POST', '/v1/otp/deliver', { as: app, body: deliver })).status).toBe(502)
    refuse({ groupId: 1 })
    expect([await send(4), await send(5), await send(6)]).toEqual([201, 201, 403])
    await stop()
  })
})

const pgUrl = process.env['OTPD_TEST_POSTGRES_URL'] ?? ''

test.skipIf(pgUrl === '')(
  'three nodes send exactly as many of 60 concurrent codes as guard.spendPerDay pays for',
  async () => {
    const opened = await openTestPostgres(pgUrl)
    const infobip = startProviderServer()
    infobip.setResponse(200, { messages: [{ messageId: 'm', status: { groupId: 1 } }] })
    const provider = {
      name: 'main',
      kind: 'infobip',
      values: { baseUrl: infobip.url, apiKey: 'key', from: 'Acme' },
      prices: { default: null, countries: { US: 10_000 }, prefixes: {} },
    }
    const budget = {
      OTPD_PRICES_CURRENCY: 'EUR',
      OTPD_GUARD_SPEND_PER_DAY: '0.105',
      OTPD_GUARD_MODE: 'enforce',
    }
    const nodes = await Promise.all(
      [opened.database, opened.openNode(), opened.openNode()].map((node) =>
        createTestService({
          database: node,
          plans: unlimitedPlans,
          env: { ...guardOffEnv, ...budget },
          delivery: { providers: [provider], routes: [], currency: 'EUR' },
          messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
        }),
      ),
    )
    const [first] = nodes
    if (!first) throw new Error('no node')
    const owner = await first.createDeveloper()
    const app = await first.createApplication(owner)
    const clients = nodes.map(createOtpClient)
    const sends = Array.from({ length: 60 }, (_, index) =>
      clients[index % 3]?.send(app, { phone: `+1415${String(2_000_000 + 10_007 * index)}` }),
    )
    const statuses = (await Promise.all(sends)).map((response) => response?.status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(10)
    expect(infobip.calls).toHaveLength(10)
    const { data } = await first.request<Item[]>('GET', '/v1/analytics/breakdown?by=provider', { as: owner })
    expect(data.find(({ key }) => key === 'main')).toMatchObject({ sent: 10, cost: '0.1' })
    for (const node of nodes) await node.dispose()
    await infobip.stop()
    await opened.dispose()
  },
  60_000,
)
