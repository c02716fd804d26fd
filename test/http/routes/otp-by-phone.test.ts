import { afterEach, beforeEach, expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import {
  createOtpClient,
  guardOffEnv,
  type OtpClient,
  type OtpRequestData,
} from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestCaller,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const phone = '+442079460123'

describeEachDatabase('requests of a phone number', (database) => {
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let live: TestApplication
  let staging: TestApplication

  beforeEach(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    live = await service.createApplication(owner)
    staging = await service.createApplication(owner, { environment: 'test' })
  })
  afterEach(() => service.dispose())

  const list = (query: string, as: TestCaller = owner) =>
    service.request<OtpRequestData[]>('GET', `/v1/otp?${query}`, { as })
  const ids = async (query: string, as: TestCaller = owner) =>
    (await list(query, as)).data.map(({ id }) => id)

  /** Sends to the number from both environments in turns, and to another. @returns the newest first */
  async function sendAll(count: number) {
    const sent: string[] = []
    for (let i = 0; i < count; i++) {
      service.clock.advance(1_000)
      sent.unshift((await otp.sendOrThrow(i % 3 === 0 ? staging : live, { phone })).requestId)
      await otp.sendOrThrow(live, { phone: `+4420794601${30 + i}` })
    }
    return sent
  }

  test('are found by its last digits, and as it is written in its country', async () => {
    const sent = await sendAll(3)
    for (const typed of ['0123', '9460123', '020 7946 0123', '442079460123'])
      expect(await ids(`phone=${typed}`)).toEqual(sent)
    for (const country of ['GB', 'uk'])
      expect(await ids(`phone=020 7946 0123&country=${country}`)).toEqual(sent)
    expect(await ids('phone=%2B442079460123&country=us')).toEqual(sent)
    expect(await ids('phone=0123&environment=test')).toEqual([sent[2]] as string[])
    expect(await ids('phone=0199')).toEqual([])
    expect(await ids('phone=0123', await service.createDeveloper())).toEqual([])
    const first = await list('phone=0123&limit=2')
    expect(first.data.map(({ id }) => id)).toEqual(sent.slice(0, 2))
    const rest = await list(`phone=0123&limit=2&cursor=${first.pagination?.nextCursor}`)
    expect([rest.data.map(({ id }) => id), rest.pagination?.nextCursor]).toEqual([sent.slice(2), null])
    for (const query of [
      'phone=123',
      'phone=020 7946 0123&country=US',
      'phone=0123&country=ZZ',
      'country=GB',
    ])
      expect((await list(query)).status).toBe(400)
    const unlock = (query: string) =>
      service.request('POST', `/v1/users/020%207946%200123/unlock${query}`, { as: owner })
    expect([(await unlock('?country=GB')).status, (await unlock('')).status]).toEqual([200, 404])
  })

  test('are found by any spelling of it, newest first', async () => {
    const sent = await sendAll(7)
    for (const spelling of ['%2B442079460123', '+442079460123', '00442079460123', '%2B44 (20) 7946-0123'])
      expect(await ids(`phone=${spelling}`)).toEqual(sent)
    expect(await ids('phone=%2B442079460999')).toEqual([])
    expect(await ids('phone=%2B442079460123', await service.createDeveloper())).toEqual([])
    expect((await list('phone=%2B44207946')).error).toMatchObject({
      code: 'INVALID_PHONE_NUMBER',
      details: [{ in: 'query', path: 'phone' }],
    })
  })

  test('have pages', async () => {
    const sent = await sendAll(8)
    const found: string[] = []
    let query = 'phone=%2B442079460123&limit=3'
    for (let pages = 0; pages < 3; pages++) {
      const page = await list(query)
      found.push(...page.data.map(({ id }) => id))
      query = `phone=%2B442079460123&limit=3&cursor=${page.pagination?.nextCursor}`
      if (pages === 2) expect(page.pagination?.nextCursor).toBeNull()
    }
    expect(found).toEqual(sent)
  })

  test('are filtered', async () => {
    const sent = await sendAll(6)
    const [newest = ''] = sent
    await otp.verifyRightCode(live, newest)
    expect(await ids('phone=%2B442079460123&status=verified')).toEqual([newest])
    expect(await ids(`phone=%2B442079460123&appId=${staging.id}`)).toEqual([sent[2], sent[5]] as string[])
    service.clock.advance(600_000)
    expect(await ids('phone=%2B442079460123&status=pending')).toEqual([])
    expect(await ids('phone=%2B442079460123&status=expired')).toEqual(sent.slice(1))
  })

  test('do not take the cursor of another list', async () => {
    await sendAll(3)
    const { pagination } = await list('limit=1')
    const byPhone = await list('phone=%2B442079460123&limit=1')
    for (const query of [
      `phone=%2B442079460123&cursor=${pagination?.nextCursor}`,
      `cursor=${byPhone.pagination?.nextCursor}`,
    ])
      expect((await list(query)).error).toMatchObject({ reason: 'CURSOR_INVALID' })
  })
})
