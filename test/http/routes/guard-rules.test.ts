import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listRulesMax } from '../../../src/domain/model/list-rule.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { countByOutcome, createOtpClient, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createPurger } from '../../helpers/retention.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Rule = { id: string; target: string; value: string; appId: string | null; expiresAt: string | null }

const hourMs = 3_600_000

describeEachDatabase('rules that allow and deny', (database) => {
  let service: TestService
  /** Another node on PostgreSQL; on SQLite another store of the process. */
  let other: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  let app: TestApplication
  beforeAll(async () => {
    const options = {
      database: database(),
      plans: unlimitedPlans,
      env: {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_DENIED_COUNTRIES: 'cu',
        OTPD_PHONE_SEND_BUDGET: 'off',
      },
    }
    service = await createTestService(options)
    other = await createTestService(options)
    otp = createOtpClient(service)
    ada = await service.createDeveloper()
    app = await service.createApplication(ada)
  })
  afterAll(async () => {
    await service.dispose()
    await other.dispose()
  })

  const create = (body: Record<string, unknown>, as = ada) =>
    service.request<Rule>('POST', '/v1/guard/rules', { as, body })
  const list = (as = ada) => service.request<Rule[]>('GET', '/v1/guard/rules', { as })
  const remove = (id: string, as = ada) => service.request('DELETE', `/v1/guard/rules/${id}`, { as })
  const removeAll = async () => {
    for (const { id } of (await list()).data) await remove(id)
  }
  const detailOf = async (response: Awaited<ReturnType<OtpClient['send']>>) => {
    const requestId = String(response.error.metadata?.['requestId'])
    return (await otp.listLogEntries(ada, requestId)).at(-1)?.detail
  }

  test('are all listed, one a page, also after a clock was set back', async () => {
    await create({ effect: 'deny', value: 'NL' })
    // Tokens may be half a minute ahead.
    other.clock.advance(-20_000)
    await other.request('POST', '/v1/guard/rules', { as: ada, body: { effect: 'deny', value: 'BE' } })
    other.clock.advance(20_000)
    const listed: string[] = []
    let cursor: string | null = null
    do {
      const query: string = `limit=1${cursor === null ? '' : `&cursor=${cursor}`}`
      const page = await service.request<Rule[]>('GET', `/v1/guard/rules?${query}`, { as: ada })
      listed.push(...page.data.map(({ value }) => value))
      cursor = page.pagination.nextCursor
    } while (cursor !== null)
    expect(listed).toEqual(['NL', 'BE'])
    await removeAll()
  })

  test('a phone may be written as in its country', async () => {
    const { status, data } = await create({ effect: 'allow', value: '07400 123456', country: 'gb' })
    expect([status, data]).toMatchObject([201, { target: 'phone', value: '+447400123456' }])
    const whole = await create({ effect: 'allow', value: '+31612345678', country: 'GB' })
    expect(whole.data).toMatchObject({ target: 'phone', value: '+31612345678' })
    for (const body of [
      { value: 'web', country: 'GB' },
      { value: '+1415', country: 'US' },
      { value: '07400 123456', country: 'XX' },
      { value: '07400 123456', country: 'England' },
    ])
      expect((await create({ effect: 'deny', ...body })).error.code).toBe('INVALID_ARGUMENT')
    const national = { effect: 'deny', value: '07400 123456', country: 'GB' }
    expect((await create({ ...national, target: 'phone' })).data).toMatchObject({ target: 'phone' })
    for (const target of ['prefix', 'country', 'network'])
      expect((await create({ ...national, target })).error).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: [{ in: 'body', path: 'country', message: 'Only a phone has a country. Omit it or target.' }],
      })
    await removeAll()
  })

  test('a denied prefix is refused at once, on every node, until it is removed', async () => {
    const phone = '+31612345678'
    const elsewhere = createOtpClient(other)
    expect((await elsewhere.send(app, { phone })).status).toBe(201)
    const created = await create({ effect: 'deny', value: '+3161*' })
    expect(created).toMatchObject({
      status: 201,
      data: { target: 'prefix', value: '+3161', expiresAt: null },
    })
    const refused = await elsewhere.send(app, { phone })
    expect([refused.status, refused.error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
    expect(refused.text).not.toContain('DENY')
    expect(await detailOf(refused)).toBe('DENY_RULE')
    const body = { phone, code: '907155' }
    const relayed = await other.request('POST', '/v1/otp/deliver', { as: app, body })
    expect([relayed.status, relayed.error.code]).toEqual([403, 'DESTINATION_BLOCKED'])
    expect((await create({ effect: 'deny', value: '+3162' })).status).toBe(201)
    expect((await elsewhere.send(app, { phone: '+31622345678' })).status).toBe(403)
    expect((await remove(created.data.id)).status).toBe(200)
    expect((await elsewhere.send(app, { phone })).status).toBe(201)
    await removeAll()
  })

  test('an allowed country passes the allowances, and its messages are not counted', async () => {
    const bob = await service.createDeveloper()
    const ownApp = await service.createApplication(bob)
    const sendMany = async (count: number, from: number) =>
      countByOutcome(
        await Promise.all(
          Array.from({ length: count }, (_, n) => otp.send(ownApp, { phone: `+3161234${from + n}` })),
        ),
      )
    expect(await sendMany(55, 1000)).toEqual({ '201': 54, '403 DESTINATION_BLOCKED': 1 })
    await create({ effect: 'allow', value: 'nl', appId: ownApp.id }, bob)
    expect(await sendMany(20, 2000)).toEqual({ '201': 20 })
    const { requestId } = await otp.sendOrThrow(ownApp, { phone: '+31612349999' })
    const guard = () =>
      service.request<{ allowances: Array<{ unverified: number; verifiedPhones: number }> }>(
        'GET',
        '/v1/guard',
        { as: bob },
      )
    expect((await guard()).data.allowances).toMatchObject([{ unverified: 54, verifiedPhones: 0 }])
    // Its verification is evidence, and takes back no message of others.
    expect((await otp.verifyRightCode(ownApp, requestId)).status).toBe(200)
    expect((await guard()).data.allowances).toMatchObject([{ unverified: 54, verifiedPhones: 1 }])
  })

  test('a phone named exactly passes its type and the countries of the server, others of its prefix do not', async () => {
    expect((await create({ effect: 'allow', value: '+53 52 123456' })).data).toMatchObject({
      target: 'phone',
    })
    expect((await otp.send(app, { phone: '+5352123456' })).status).toBe(201)
    expect((await create({ effect: 'allow', value: '+5352' })).data).toMatchObject({ target: 'prefix' })
    expect(await detailOf(await otp.send(app, { phone: '+5352123457' }))).toBe('COUNTRY_NOT_ALLOWED')
    await create({ effect: 'allow', value: '+19005550123' })
    expect((await otp.send(app, { phone: '+19005550123' })).status).toBe(201)
    await removeAll()
  })

  test('the first digits of phones are a prefix, even if so few may be a number of their country', async () => {
    await create({ effect: 'deny', value: '+4915123' })
    expect((await list()).data).toMatchObject([{ target: 'prefix', value: '+4915123' }])
    expect(await detailOf(await otp.send(app, { phone: '+4915123456789' }))).toBe('DENY_RULE')
    const phones = ['+4915123456789', '+447700900123', '+551187654321', '+8613812345678', '+88213300024']
    for (const value of phones)
      expect((await create({ effect: 'allow', value })).data).toMatchObject({ target: 'phone', value })
    await removeAll()
  })

  test('a country may have the code by which people know it', async () => {
    expect((await create({ effect: 'deny', value: 'uk' })).data).toMatchObject({
      target: 'country',
      value: 'GB',
    })
    await removeAll()
  })

  test('a phone is denied in all its spellings, and has one rule', async () => {
    const [long, short] = ['+5511987654321', '+551187654321']
    await create({ effect: 'deny', value: long })
    for (const phone of [long, short])
      expect(await detailOf(await otp.send(app, { phone }))).toBe('DENY_RULE')
    await create({ effect: 'allow', value: short })
    expect((await list()).data).toMatchObject([{ effect: 'allow', value: short }])
    for (const phone of [long, short]) expect((await otp.send(app, { phone })).status).toBe(201)
    await removeAll()
    // The former spelling of Mexico is read as the one that networks know.
    expect((await create({ effect: 'deny', value: '+5215512345678' })).data).toMatchObject({
      target: 'phone',
      value: '+525512345678',
    })
    expect(await detailOf(await otp.send(app, { phone: '+5215512345678' }))).toBe('DENY_RULE')
    await removeAll()
  })

  test('a rule of one application leaves the others, and one of a developer leaves other developers', async () => {
    const second = await service.createApplication(ada)
    const bob = await service.createDeveloper()
    const foreign = await service.createApplication(bob)
    await create({ effect: 'deny', value: 'FR', appId: second.id })
    const phone = '+33612345678'
    expect((await otp.send(second, { phone })).status).toBe(403)
    expect((await otp.send(app, { phone })).status).toBe(201)
    expect((await otp.send(foreign, { phone })).status).toBe(201)
    expect((await list(bob)).data).toEqual([])
    const [rule] = (await list()).data
    expect((await remove(rule?.id ?? '', bob)).status).toBe(404)
    expect((await create({ effect: 'deny', value: 'FR', appId: foreign.id })).status).toBe(404)
    // With the application go its rules.
    await service.request('DELETE', `/v1/applications/${second.id}`, { as: ada })
    expect((await list()).data).toEqual([])
  })

  test('a network is denied by the address of the end user', async () => {
    await create({ effect: 'deny', value: '203.0.113.77/24' })
    expect((await list()).data).toMatchObject([{ target: 'network', value: '203.0.113.0/24' }])
    const send = (clientIp: string) => otp.send(app, { phone: '+33612345679', clientIp })
    expect([(await send('203.0.113.9')).status, (await send('203.0.114.9')).status]).toEqual([403, 201])
    await removeAll()
  })

  test('a new rule takes the place of one for the same value, and ends at its expiry', async () => {
    await create({ effect: 'deny', value: 'FR' })
    const end = new Date(service.clock.now() + hourMs).toISOString()
    await create({ effect: 'deny', value: 'fr', expiresAt: end })
    expect((await list()).data).toMatchObject([{ value: 'FR', expiresAt: end }])
    expect((await otp.send(app, { phone: '+33612345670' })).status).toBe(403)
    service.clock.advance(hourMs)
    expect((await otp.send(app, { phone: '+33612345670' })).status).toBe(201)
    expect((await list()).data).toEqual([])
    expect(await service.store.read.listRules.list(ada.developer.id)).toHaveLength(1)
    await createPurger(service)()
    expect(await service.store.read.listRules.list(ada.developer.id)).toEqual([])
  })

  test('phones are sealed at rest, absent from the audit trail, and go with an erasure', async () => {
    await create({ effect: 'allow', value: '+14155550123' })
    await create({ effect: 'deny', value: '+882' })
    const { read, tables } = database()
    const stored = await read.select().from(tables.guardRules)
    expect(stored.map(({ rules }) => rules.split('.')[0])).toContain('s1')
    expect(JSON.stringify(stored)).not.toContain('4155550123')
    const audit = await service.request<Array<{ detail: string }>>('GET', '/v1/audit?limit=2', { as: ada })
    expect(audit.data).toMatchObject([
      { action: 'guard_rule.created', detail: 'deny prefix +882', targetName: null },
      { action: 'guard_rule.created', detail: 'allow phone', targetName: null },
    ])
    const path = `/v1/users/${encodeURIComponent('+14155550123')}?erase=true`
    expect((await service.request('DELETE', path, { as: ada })).status).toBe(200)
    expect((await list()).data).toMatchObject([{ value: '+882' }])
    await removeAll()
  })

  test.each([
    [{ target: 'phone', value: '+1415' }, 'value: Expected a number in E.164 format, such as +14155550100.'],
    [{ target: 'country', value: 'XX' }, 'value: Expected a two-letter ISO 3166 code'],
    [{ target: 'network', value: '203.0.113.0/33' }, 'value: Expected an IP address or a CIDR'],
    [{ value: 'hello' }, 'value: Expected a phone with its country code'],
    [{ value: 'DE', expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt: Expected a time in the future'],
  ])('refuses %j', async (body, message) => {
    const refused = await create({ effect: 'deny', ...body })
    expect([refused.status, refused.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(refused.error.message).toContain(message)
  })

  test('takes 1,000 rules, and pages through them', async () => {
    const bob = await service.createDeveloper()
    const rule = { effect: 'deny', target: 'prefix', appId: null, createdAt: 0, expiresAt: null } as const
    const rules = Array.from({ length: listRulesMax - 1 }, (_, n) => ({
      ...rule,
      id: service.services.newId('rul'),
      value: `+49${1000 + n}`,
    }))
    await service.store.write((tx) => tx.listRules.save(bob.developer.id, rules.toReversed()))
    expect((await create({ effect: 'deny', value: '+882' }, bob)).status).toBe(201)
    const refused = await create({ effect: 'deny', value: '+883' }, bob)
    expect([refused.status, refused.error.reason]).toEqual([409, 'GUARD_RULE_LIMIT_REACHED'])
    const first = await service.request<Rule[]>('GET', '/v1/guard/rules?limit=200', { as: bob })
    expect([first.data.length, first.data[0]?.value, first.data[1]?.value]).toEqual([200, '+882', '+491998'])
  })
})

describeEachDatabase('a phone that was refused', (database) => {
  test('has its whole send budget when it is allowed: blocked sends are no messages', async () => {
    const service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: {
        OTPD_GUARD_MODE: 'enforce',
        OTPD_GUARD_DENIED_COUNTRIES: 'cu',
        OTPD_PHONE_SEND_BUDGET: 'enforce',
      },
    })
    const otp = createOtpClient(service)
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer)
    const phone = '+5352123456'
    const send = async (count: number) => {
      const statuses: number[] = []
      for (let n = 0; n < count; n++) statuses.push((await otp.send(app, { phone })).status)
      return statuses
    }
    expect(await send(7)).toEqual(Array(7).fill(403))
    const rule = { effect: 'allow', value: phone }
    await service.request('POST', '/v1/guard/rules', { as: developer, body: rule })
    expect(await send(6)).toEqual([201, 201, 201, 201, 201, 429])
    await service.dispose()
  })
})
