import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Wire = { id: string; defaultCountry: string | null; countries: string[] | null }

const german = '+4915112345678'
const dutch = '+31612345678'

describeEachDatabase('the countries of an application', (database) => {
  let service: TestService
  /** Another node on PostgreSQL; on SQLite another store of the process. */
  let other: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  let app: TestApplication
  beforeAll(async () => {
    const env = {
      OTPD_GUARD_MODE: 'enforce',
      OTPD_GUARD_DENIED_COUNTRIES: 'cu',
      OTPD_PHONE_SEND_BUDGET: 'off',
    }
    const options = { database: database(), plans: unlimitedPlans, env }
    service = await createTestService(options)
    other = await createTestService(options)
    otp = createOtpClient(service)
    ada = await service.createDeveloper()
  })
  beforeEach(async () => void (app = await service.createApplication(ada)))
  afterAll(async () => {
    await service.dispose()
    await other.dispose()
  })

  const path = () => `/v1/applications/${app.id}`
  const patch = (body: unknown) => service.request<Wire>('PATCH', path(), { as: ada, body })
  const blocked = [403, 'DESTINATION_BLOCKED'] as const

  test('are stored in upper case, in order and once, and cleared by null', async () => {
    const { id: projectId } = await service.createProject(ada)
    const settings = { defaultCountry: 'gb', countries: ['de', 'UK', 'AT', 'DE', '001'] }
    const body = { name: 'web', projectId, environment: 'live', ...settings }
    const { data } = await service.request<Wire>('POST', '/v1/applications', { as: ada, body })
    const stored = { defaultCountry: 'GB', countries: ['001', 'AT', 'DE', 'GB'] }
    const read = await service.request('GET', `/v1/applications/${data.id}`, { as: ada })
    expect(read.data).toMatchObject(stored)
    const list = await service.request<Wire[]>('GET', '/v1/applications', { as: ada })
    expect(list.data.find(({ id }) => id === data.id)).toMatchObject(stored)
    expect((await patch({ countries: ['NL'] })).data).toMatchObject({
      defaultCountry: null,
      countries: ['NL'],
    })
    expect((await patch({ defaultCountry: 'uk' })).data).toMatchObject({
      defaultCountry: 'GB',
      countries: ['NL'],
    })
    const none = { defaultCountry: null, countries: null }
    expect((await patch(none)).data).toMatchObject(none)
  })

  test.each([
    ['defaultCountry', 'ZZ'],
    ['defaultCountry', '001'],
    ['defaultCountry', 'DEU'],
    ['defaultCountry', ''],
    ['countries', []],
    ['countries', ['DE', 'ZZ']],
    ['countries', ['Germany']],
  ])('are refused if %s is %j', async (field, value) => {
    const response = await patch({ [field]: value })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    const [detail] = response.error.details ?? []
    expect(detail?.path).toStartWith(field)
    expect(detail?.message).toMatch(/^Expected the two-letter code/)
  })

  test('refuse codes to others at once, on every node, by send, resend and deliver', async () => {
    const { requestId } = await otp.sendOrThrow(app, { phone: dutch })
    await patch({ countries: ['DE'] })
    for (const node of [service, other]) {
      const client = createOtpClient(node)
      const refused = await client.send(app, { phone: dutch })
      expect([refused.status, refused.error.code]).toEqual([...blocked])
      const id = String(refused.error.metadata?.['requestId'])
      expect((await otp.listLogEntries(ada, id)).at(-1)?.detail).toBe('COUNTRY_NOT_ALLOWED')
      const body = { phone: dutch, code: '907155' }
      const relayed = await node.request('POST', '/v1/otp/deliver', { as: app, body })
      expect([relayed.status, relayed.error.code]).toEqual([...blocked])
      expect((await client.send(app, { phone: german })).status).toBe(201)
    }
    service.clock.advance(31_000)
    const resent = await service.request('POST', '/v1/otp/resend', { as: app, body: { requestId } })
    expect([resent.status, resent.error.code]).toEqual([...blocked])
    await patch({ countries: null })
    expect((await createOtpClient(other).send(app, { phone: dutch })).status).toBe(201)
  })

  test('leave other applications, and allow nothing that the server denies', async () => {
    await patch({ countries: ['CU', 'DE'] })
    const second = await service.createApplication(ada)
    expect((await otp.send(second, { phone: dutch })).status).toBe(201)
    expect((await otp.send(app, { phone: '+5352123456' })).status).toBe(403)
  })

  test('are passed by a phone that a rule names', async () => {
    await patch({ countries: ['DE'] })
    const body = { effect: 'allow', value: dutch, appId: app.id }
    expect((await service.request('POST', '/v1/guard/rules', { as: ada, body })).status).toBe(201)
    expect((await otp.send(app, { phone: dutch })).status).toBe(201)
  })
})
