import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { usageOf } from '../../helpers/guard.ts'
import { countryKey, prefixKey } from '../../../src/domain/guard/row-keys.ts'
import { createTwilioSettings, startGateway, type Gateway } from '../../delivery/gateway.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { readOpened } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Outcome = { id: string; phone: string; outcome: string }

let phones = 0
const newPhone = () => `+3161${String(1_000_000 + phones++)}`

describeEachDatabase('POST /v1/otp/deliver/{id}/outcome', (database) => {
  let main: Gateway
  let service: TestService
  let owner: TestDeveloper
  let application: TestApplication
  let phone: string

  beforeAll(async () => {
    main = startGateway()
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: { OTPD_GUARD_MODE: 'enforce' },
      delivery: {
        providers: [createTwilioSettings('main', main.url)],
        routes: [{ channel: 'sms', countries: [], prefixes: [], applications: [], providers: ['main'] }],
      },
    })
  })
  afterAll(async () => {
    await service.dispose()
    await main.stop()
  })
  beforeEach(async () => {
    phone = newPhone()
    owner = await service.createDeveloper()
    application = await service.createApplication(owner)
  })

  async function deliver(body: object = {}, as = application): Promise<string> {
    const sent = { phone, code: '907155', ...body }
    const { data } = await service.request<{ id: string }>('POST', '/v1/otp/deliver', { as, body: sent })
    return data.id
  }
  const report = (id: string, outcome: string, as = application) =>
    service.request<Outcome>('POST', `/v1/otp/deliver/${id}/outcome`, { as, body: { outcome } })
  const listEvents = async (id: string) =>
    (await readOpened(database(), 'events'))
      .filter(({ requestId }) => requestId === id)
      .map(({ type, phone: to }) => [type, to])
  const readUsage = (subject: string) =>
    service.store.write(async ({ guard }) =>
      usageOf((await guard.rows([subject])).get(subject), service.clock.now()),
    )
  const evidence = async (subject: string) => (await readUsage(subject)).evidence
  const isUser = async () =>
    (await service.request('GET', `/v1/users/${encodeURIComponent(phone)}`, { as: owner })).status === 200

  test('a verified code is evidence, its message no longer counts, and its phone is a user', async () => {
    const id = await deliver({ clientIp: '198.51.100.7' })
    const [country, relay] = [countryKey(owner.developer.id, 'NL'), `${owner.developer.id} NL relay`]
    expect((await readUsage(relay)).unverified).toBe(1)
    const { status, data } = await report(id, 'verified')
    expect([status, data]).toEqual([200, { id, phone, outcome: 'verified' }])
    const subjects = [country, prefixKey(testKeys, owner.developer.id, phone)]
    for (const subject of subjects) expect(await evidence(subject)).toBe(1)
    const keys = await service.store.write(({ guard }) => guard.listKeys('', 1_000))
    // The country, the prefix, the network and the volume; those with hashes for names belong to every developer.
    expect(keys).toEqual(expect.arrayContaining([...subjects, relay]))
    expect((await readUsage(relay)).unverified).toBe(0)
    expect(await isUser()).toBe(true)
    expect(await listEvents(id)).toEqual([
      ['message.sent', phone],
      ['message.verified', phone],
    ])
    // A known phone is not counted.
    service.clock.advance(1_000)
    await deliver({ code: '111111' })
    expect((await readUsage(relay)).unverified).toBe(0)
  })

  test('a phone is evidence once, by its messages and by its network', async () => {
    const ids = [await deliver({ clientIp: '198.51.100.7' }), await deliver({ code: '111111' })]
    for (const id of ids) expect((await report(id, 'verified')).status).toBe(200)
    expect(await evidence(countryKey(owner.developer.id, 'NL'))).toBe(1)
    const { data } = await service.request<{ verificationCount: number }>('GET', `/v1/users/${phone}`, {
      as: owner,
    })
    expect(data.verificationCount).toBe(2)
    const active = (await readOpened(database(), 'dailyCounts')) as Array<{
      developerId: string
      active: number
    }>
    const own = active.filter(({ developerId }) => developerId === owner.developer.id)
    expect(own.reduce((sum, day) => sum + day.active, 0)).toBe(1)
  })

  test('the same outcome again changes nothing, and only verified is final', async () => {
    const id = await deliver()
    for (const outcome of ['failed', 'failed', 'verified', 'verified'])
      expect((await report(id, outcome)).status).toBe(200)
    const { status, error } = await report(id, 'failed')
    expect([status, error.code]).toEqual([409, 'ALREADY_VERIFIED'])
    expect((await listEvents(id)).map(([type]) => type)).toEqual([
      'message.sent',
      'message.failed',
      'message.verified',
    ])
    expect(await evidence(countryKey(owner.developer.id, 'NL'))).toBe(1)
  })

  test('a failed code is no evidence, and its message still counts', async () => {
    const id = await deliver()
    expect((await report(id, 'failed')).data).toEqual({ id, phone, outcome: 'failed' })
    expect((await readUsage(`${owner.developer.id} NL relay`)).unverified).toBe(1)
    expect(await evidence(countryKey(owner.developer.id, 'NL'))).toBe(0)
    expect(await isUser()).toBe(false)
  })

  test('is for the application that sent it, for a day', async () => {
    const id = await deliver()
    const sibling = await service.createApplication(owner)
    const stranger = await service.createApplication(await service.createDeveloper())
    for (const as of [sibling, stranger]) expect((await report(id, 'verified', as)).status).toBe(404)
    for (const unknown of ['msg_01kaaaaaaaeekr1q2v3w4x5y6z', 'otp_1', '%00'])
      expect((await report(unknown, 'verified')).status).toBe(404)
    service.clock.advance(24 * 3_600_000 + 1)
    expect((await report(id, 'verified')).error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'No message of the last 24 hours with this id.',
    })
  })

  test('needs the credentials of now, and one of two outcomes', async () => {
    const id = await deliver()
    expect((await report(id, 'maybe')).error.code).toBe('INVALID_ARGUMENT')
    const headers = { 'x-client-secret': 'ph_wrong' }
    const wrong = await service.request('POST', `/v1/otp/deliver/${id}/outcome`, {
      as: application,
      headers,
      body: { outcome: 'verified' },
    })
    expect(wrong.status).toBe(401)
    const path = `/v1/applications/${application.id}`
    await service.request('PATCH', path, { as: owner, body: { status: 'disabled' } })
    expect((await report(id, 'verified')).status).toBe(403)
    expect(await evidence(countryKey(owner.developer.id, 'NL'))).toBe(0)
  })

  test('works for messages that are not sent: of test applications, and to virtual numbers', async () => {
    const app = await service.createApplication(owner, { environment: 'test' })
    const test = await deliver({}, app)
    expect((await report(test, 'verified', app)).status).toBe(200)
    const { virtualPhone } = owner.developer
    expect((await report(await deliver({ phone: virtualPhone }), 'verified')).status).toBe(200)
    expect(await evidence(countryKey(owner.developer.id, 'NL'))).toBe(0)
  })
})
