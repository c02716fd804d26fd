import { afterAll, beforeAll, expect, test } from 'bun:test'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { createPageVisitor } from '../../helpers/page-visitor.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const payment = { amount: '9.99\u00a0EUR', payee: 'Ada & "Sons"' }

type Session = {
  id: string
  url: string
  status: string
  requestId: string
  template: string | null
  variables: typeof payment | null
}

describeEachDatabase('a payment on the ready page', (database) => {
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let application: TestApplication
  let phones = 0
  const newPhone = () => `+1415555${6000 + phones++}`

  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
    application = await service.createApplication(owner)
    const body = { enabled: true, returnOrigins: ['https://shop.example'] }
    await service.request('PATCH', `/v1/applications/${application.id}/page`, { as: owner, body })
    await put('login', { en: '{code} is your login code' })
    await put('payment', { en: 'Pay {amount} to {payee}: {code}' })
  })
  afterAll(() => service.dispose())

  const templates = () => `/v1/applications/${application.id}/templates`
  const put = async (name: string, texts: object) => {
    const answer = await service.request('PUT', `${templates()}/${name}`, { as: owner, body: { texts } })
    expect(answer.status).toBe(200)
  }
  const create = (body: object) =>
    service.request<Session>('POST', '/v1/otp/sessions', {
      as: application,
      body: { returnUrl: 'https://shop.example/', locale: 'en', ...body },
    })
  const get = async (id: string) =>
    (await service.request<Session>('GET', `/v1/otp/sessions/${id}`, { as: application })).data
  const visit = async (body: object = {}) => {
    const { data } = await create({ template: 'payment', variables: payment, ...body })
    const visitor = createPageVisitor(service, data.url)
    return { id: data.id, visitor, first: await visitor.get() }
  }

  test('is shown in both steps, and verified with the code of its message', async () => {
    const { id, visitor, first } = await visit()
    const sent = await visitor.submit({ action: 'send', phone: newPhone() })
    const { requestId } = await get(id)
    const wrong = await visitor.submit({ action: 'verify', code: await otp.getWrongCode(requestId) })
    for (const { text } of [first, sent, wrong]) {
      expect(text).toContain('<h1>Confirm your payment</h1>')
      expect(text).toContain('<dt>Amount</dt><dd><bdi>9.99\u00a0EUR</bdi></dd>')
      expect(text).toContain('<dt>Payee</dt><dd><bdi>Ada &amp; &quot;Sons&quot;</bdi></dd>')
    }
    expect(wrong.notice).toBe('This code is wrong. Attempts left: 4')
    const inbox = await service.request<{ requestId: string; text: string }[]>('GET', '/v1/inbox', {
      as: owner,
    })
    const message = inbox.data.find((one) => one.requestId === requestId)?.text ?? ''
    expect(message).toContain('Pay 9.99 EUR to Ada & "Sons": ')
    const code = await otp.getCode(requestId)
    const check = (variables: object) =>
      service.request('POST', '/v1/otp/verify', { as: application, body: { requestId, code, ...variables } })
    for (const variables of [{}, { variables: { ...payment, amount: '99.9 EUR' } }])
      expect((await check(variables)).error.code).toBe('INVALID_CODE')
    await visitor.post({ action: 'verify', code })
    expect(await get(id)).toMatchObject({ status: 'verified', template: 'payment', variables: payment })
  })

  test('is kept when the code is sent to another phone, and when it is sent once more', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    await visitor.submit({ action: 'send', phone: newPhone() })
    service.clock.advance(30_000)
    await visitor.submit({ action: 'resend' })
    const { requestId } = await get(id)
    const inbox = await service.request<{ requestId: string; text: string }[]>('GET', '/v1/inbox', {
      as: owner,
    })
    const messages = inbox.data.filter((one) => one.requestId === requestId)
    expect(messages.length).toBeGreaterThan(0)
    for (const { text } of messages) expect(text).toContain('Pay 9.99 EUR to Ada & "Sons": ')
    await visitor.post({ action: 'verify', code: await otp.getCode(requestId) })
    expect((await get(id)).status).toBe('verified')
  })

  test('needs a template that shows it, when the link is made', async () => {
    const refused: [body: object, message: string][] = [
      [{ variables: payment }, 'variables: Name a template that shows them'],
      [
        { template: 'other', variables: payment },
        'template: The application has no template with this name.',
      ],
      [{ template: 'login', variables: payment }, 'variables: The template shows none.'],
      [{ template: 'payment' }, 'variables: The template needs amount and payee.'],
      [
        { template: 'payment', variables: { ...payment, payee: 'evil.example' } },
        'variables.payee: It contains',
      ],
      [{ template: 'payment', variables: { amount: '1 EUR' } }, 'variables.payee'],
    ]
    for (const [body, message] of refused) {
      const { status, error } = await create(body)
      expect([status, error.code]).toEqual([400, 'INVALID_ARGUMENT'])
      expect(error.message).toContain(message)
    }
  })

  test('a template without a payment changes the text alone', async () => {
    const { id, visitor, first } = await visit({ template: 'login', variables: undefined })
    expect(first.text).toContain('<h1>Verify your phone number</h1>')
    expect(first.text).not.toContain('<dl>')
    await visitor.submit({ action: 'send', phone: newPhone() })
    await visitor.post({ action: 'verify', code: await otp.getCode((await get(id)).requestId) })
    expect(await get(id)).toMatchObject({ status: 'verified', template: 'login', variables: null })
  })

  test('is not sent if its template was deleted, or shows it no longer', async () => {
    await put('gone', { en: '{code}: {amount} to {payee}' })
    const { id, visitor } = await visit({ template: 'gone' })
    await put('gone', { en: '{code} is your code' })
    const changed = await visitor.submit({ action: 'send', phone: newPhone() })
    expect([changed.status, changed.notice]).toEqual([400, 'Something went wrong. Please try again.'])
    await service.request('DELETE', `${templates()}/gone`, { as: owner })
    const deleted = await visitor.submit({ action: 'send', phone: newPhone() })
    expect(deleted.notice).toBe('Something went wrong. Please try again.')
    expect(await get(id)).toMatchObject({ status: 'created', requestId: null })
  })

  test('is deleted with the phone that it was sent to', async () => {
    const { id, visitor } = await visit()
    const { id: other } = await visit()
    const phone = newPhone()
    await visitor.submit({ action: 'send', phone })
    await erasePhone({ ...service, ...service.services }, phone, { actor: owner.developer })
    expect(await service.store.read.otpSessions.find(id)).toBeUndefined()
    expect(await service.store.read.otpSessions.find(other)).toBeDefined()
  })
})
