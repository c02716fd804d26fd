import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper
let application: TestApplication

beforeAll(async () => {
  service = await createTestService({ plans: unlimitedPlans })
  owner = await service.createDeveloper()
  application = await service.createApplication(owner, { name: 'Storefront', environment: 'test' })
})
afterAll(() => service.dispose())

type Wire = { defaultLocale: unknown; webOtpDomain: unknown; androidAppHash: unknown }
type Item = { requestId: string; code: string | null; text: string | null }

const patch = (body: unknown) =>
  service.request<Wire>('PATCH', `/v1/applications/${application.id}`, { as: owner, body })

async function send(body: object, as = application) {
  const response = await service.request<{ requestId: string }>('POST', '/v1/otp/send', { as, body })
  expect(response.status).toBe(201)
  return response.data.requestId
}

/** Reads the message of a request from the inbox, with its code replaced by `######`. */
async function readMessageText(requestId: string) {
  const { data } = await service.request<Item[]>('GET', '/v1/inbox?limit=200', { as: owner })
  const item = data.find((one) => one.requestId === requestId)
  return item?.text?.replaceAll(item.code ?? '?', '######')
}

describe('the message settings of an application', () => {
  const all = { defaultLocale: 'de', webOtpDomain: 'login.example.com', androidAppHash: 'FA+9qCX9VSu' }
  const none = { defaultLocale: null, webOtpDomain: null, androidAppHash: null }

  test('are stored, returned, and cleared by null', async () => {
    expect((await patch(all)).data).toMatchObject(all)
    const { data } = await service.request('GET', `/v1/applications/${application.id}`, { as: owner })
    expect(data).toMatchObject(all)
    expect((await patch({ webOtpDomain: null })).data).toMatchObject({ ...all, webOtpDomain: null })
    expect((await patch(none)).data).toMatchObject(none)
  })

  test.each([
    ['defaultLocale', 'german'],
    ['defaultLocale', ''],
    ['defaultLocale', 'de_DE'],
    ['defaultLocale', 5],
    ['webOtpDomain', 'https://example.com'],
    ['webOtpDomain', 'example.com:8080'],
    ['webOtpDomain', 'example.com/login'],
    ['webOtpDomain', 'example.com #999999'],
    ['webOtpDomain', 'example.com\n'],
    ['webOtpDomain', 'example.com.'],
    ['webOtpDomain', '-a.example.com'],
    ['webOtpDomain', 'localhost'],
    ['webOtpDomain', '192.0.2.1'],
    ['webOtpDomain', '*.example.com'],
    ['webOtpDomain', `${'a'.repeat(64)}.example`],
    ['webOtpDomain', `${'abc.'.repeat(63)}example`],
    ['androidAppHash', 'FA+9qCX9VS'],
    ['androidAppHash', 'FA+9qCX9VSuu'],
    ['androidAppHash', 'FA-9qCX9VSu'],
    ['androidAppHash', 'FA+9qCX9VS\n'],
  ])('are rejected if %s is %j', async (field, value) => {
    const response = await patch({ [field]: value })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(response.error.details?.[0]?.path).toContain(field)
  })
})

describe('a message', () => {
  const plain = { defaultLocale: null, webOtpDomain: null, androidAppHash: null }

  test('names the application, in the language of the country', async () => {
    await patch(plain)
    expect(await readMessageText(await send({ phone: '+4915112345678' }))).toBe(
      '###### ist Ihr Bestätigungscode für Storefront. Er ist 5 Minuten gültig.',
    )
  })

  test("is in the application's language if the request names none", async () => {
    await patch({ ...plain, defaultLocale: 'fr' })
    expect(await readMessageText(await send({ phone: '+4915112345678' }))).toStartWith(
      '###### est votre code',
    )
    expect(await readMessageText(await send({ phone: '+4915112345678', locale: 'it' }))).toStartWith(
      '###### è il tuo',
    )
  })

  test('ends with the lines for autofill', async () => {
    await patch({ ...plain, webOtpDomain: 'Login.Example.com', androidAppHash: 'FA+9qCX9VSu' })
    const text = await readMessageText(await send({ phone: '+14155550100' }))
    expect(text?.split('\n').slice(1)).toEqual(['FA+9qCX9VSu', '@login.example.com #######'])
  })

  test('says how many minutes were left when it was sent, also when resent', async () => {
    await patch(plain)
    const requestId = await send({ phone: '+14155550101', ttlSeconds: 600 })
    expect(await readMessageText(requestId)).toContain('10 minutes')
    service.clock.advance(150_000)
    expect(await readMessageText(requestId)).toContain('10 minutes')
    await service.request('POST', '/v1/otp/resend', { as: application, body: { requestId } })
    expect(await readMessageText(requestId)).toContain('7 minutes')
  })

  test('names no application once it is deleted', async () => {
    const deletedApplication = await service.createApplication(owner, { name: 'Gone', environment: 'test' })
    const requestId = await send({ phone: '+14155550102' }, deletedApplication)
    expect(await readMessageText(requestId)).toContain('Gone')
    await service.request('DELETE', `/v1/applications/${deletedApplication.id}`, { as: owner })
    expect(await readMessageText(requestId)).toBe(
      '###### is your verification code. It expires in 5 minutes.',
    )
  })
})
