import { afterEach, beforeEach, expect, test } from 'bun:test'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Item = {
  key: string | null
  name: string | null
  sent: number
  delivered: number
  undelivered: number
  verified: number
  failed: number
  conversion: number
}

describeEachDatabase('GET /v1/analytics/breakdown', (database) => {
  let gateway: Gateway
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let live: TestApplication
  let staging: TestApplication

  beforeEach(async () => {
    gateway = startGateway()
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: guardOffEnv,
      delivery: { providers: [createTwilioSettings('main', gateway.url)], routes: [] },
      messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
    })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    live = await service.createApplication(owner, { name: 'Shop' })
    staging = await service.createApplication(owner, { name: 'Staging', environment: 'test' })
  })
  afterEach(async () => {
    await service.dispose()
    await gateway.stop()
  })

  const breakdown = (query: string, as = owner) =>
    service.request<Item[]>('GET', `/v1/analytics/breakdown?${query}`, { as })
  const list = async (query: string, as = owner) =>
    (await breakdown(query, as)).data.map(({ key, name, sent, verified }) => [key, name, sent, verified])

  /** Four live codes to the US, two of them verified and one delivered; one to Germany, which fails; two of staging. */
  async function use() {
    for (let i = 0; i < 4; i++) {
      const { requestId } = await otp.sendOrThrow(live, { phone: `+1415555200${i}` })
      if (i < 2) await otp.verifyRightCode(live, requestId)
    }
    const [message] = gateway.messages
    if (!message) throw new Error('nothing was sent')
    const { url, method, headers, body } = buildReceipt(message, 'delivered')
    const { pathname, search } = new URL(url)
    await service.request(method, pathname + search, { headers, body })
    gateway.refuseAll(400, 21211)
    expect((await otp.send(live, { phone: '+4915112345678' })).status).toBe(502)
    for (let i = 0; i < 2; i++) await otp.sendOrThrow(staging, { phone: `+1415555201${i}` })
  }

  test('counts by application, country, channel and provider', async () => {
    await use()
    expect((await breakdown('by=application')).data).toMatchObject([
      {
        key: live.id,
        name: 'Shop',
        sent: 4,
        delivered: 1,
        undelivered: 1,
        verified: 2,
        failed: 1,
        conversion: 50,
      },
      {
        key: staging.id,
        name: 'Staging',
        sent: 2,
        delivered: 0,
        undelivered: 0,
        verified: 0,
        failed: 0,
        conversion: 0,
      },
    ])
    expect(await list('by=country')).toEqual([
      ['US', 'United States', 6, 2],
      ['DE', 'Germany', 0, 0],
    ])
    expect(await list('by=channel')).toEqual([
      ['sms', 'SMS', 4, 2],
      [null, null, 2, 0],
    ])
    expect(await list('by=provider&environment=live')).toEqual([
      ['main', 'main', 4, 2],
      [null, null, 0, 0],
    ])
  })

  test('filters by environment, and by developer', async () => {
    await use()
    expect(await list('by=application&environment=live')).toEqual([[live.id, 'Shop', 4, 2]])
    expect(await list('by=application&environment=test')).toEqual([[staging.id, 'Staging', 2, 0]])
    expect(await list('by=country', await service.createDeveloper())).toEqual([])
    await service.request('DELETE', `/v1/applications/${staging.id}`, { as: owner })
    expect(await list('by=application&environment=test')).toEqual([[staging.id, null, 2, 0]])
  })

  test('counts the days of a range', async () => {
    await use()
    const dayMs = 24 * 3_600_000
    service.clock.advance(6 * dayMs)
    await otp.sendOrThrow(staging)
    expect(await list('by=country&range=7d&environment=test')).toEqual([['US', 'United States', 3, 0]])
    service.clock.advance(dayMs)
    expect(await list('by=country&range=7d&environment=test')).toEqual([['US', 'United States', 1, 0]])
    expect(await list('by=country&environment=test')).toEqual([['US', 'United States', 3, 0]])
    service.clock.advance(30 * dayMs)
    expect(await list('by=country')).toEqual([])
    expect(await list('by=country&range=90d&environment=test')).toEqual([['US', 'United States', 3, 0]])
  })

  test('needs a dimension, and knows no other', async () => {
    for (const query of ['', 'by=phone', 'by=country&range=1d', 'by=country&environment=prod'])
      expect((await breakdown(query)).error).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('filters by channel and country, and refuses those that do not exist', async () => {
    await use()
    expect(await list('by=channel&channel=sms&country=us')).toEqual([['sms', 'SMS', 4, 2]])
    for (const [filter, message] of [
      ['channel=fax', 'Expected one of sms, whatsapp, telegram, voice, rcs, silent.'],
      ['country=ZZ', 'Expected the two-letter code of a country, such as GB.'],
    ] as const)
      expect((await breakdown(`by=provider&${filter}`)).error).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: [{ in: 'query', path: filter.split('=')[0], message }],
      })
  })
})
