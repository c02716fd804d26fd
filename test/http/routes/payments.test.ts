import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { readEverything } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Variables = { amount?: unknown; payee?: unknown; [other: string]: unknown }

const rent = { amount: '1,234.50 EUR', payee: 'Ada & Söhne' }
const attemptsLeft = (metadata: Record<string, unknown> | undefined) => metadata?.['attemptsRemaining']

describeEachDatabase('codes bound to a payment', (database) => {
  let service: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  let app: TestApplication
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      env: { OTPD_PHONE_SEND_BUDGET: 'off', OTPD_PHONE_CHECK_BUDGET: '0' },
    })
    otp = createOtpClient(service)
    ada = await service.createDeveloper()
    app = await service.createApplication(ada, { environment: 'test', name: 'Shop' })
    await put('payment', {
      en: 'Pay {amount} to {payee} with {code}, {app}, {ttl} min',
      de: '{code} für {amount} an {payee}',
    })
    await put('login', { en: '{code} logs you in to {app}' })
  })
  afterAll(() => service.dispose())

  const path = (name: string) => `/v1/applications/${app.id}/templates/${name}`
  const put = (name: string, texts: Record<string, string>) =>
    service.request('PUT', path(name), { as: ada, body: { texts } })
  const send = (body: object = {}, headers?: Record<string, string>) =>
    otp.send(app, { template: 'payment', variables: rent, ...body }, headers)
  const sendRent = async (body: object = {}) => {
    const { status, data, text } = await send(body)
    if (status !== 201) throw new Error(text)
    return { requestId: data.requestId, code: data.code ?? '' }
  }
  const verify = (sent: { requestId: string; code: string }, variables?: Variables) =>
    service.request<{ status: string }>('POST', '/v1/otp/verify', { as: app, body: { ...sent, variables } })
  const inboxTexts = async (requestId: string) => {
    const inbox = await service.request<{ requestId: string; text: string }[]>('GET', '/v1/inbox', {
      as: ada,
    })
    return inbox.data.filter((item) => item.requestId === requestId).map(({ text }) => text)
  }

  test('are right for their amount and payee alone; any other counts as a wrong code', async () => {
    const sent = await sendRent()
    const others: (Variables | undefined)[] = [
      { ...rent, amount: '1,234.51 EUR' },
      { ...rent, payee: 'Ada & Sohne' },
      // The same characters, moved from one variable to the other.
      { amount: '1,234.50 EURA', payee: 'da & Söhne' },
      undefined,
    ]
    for (const [index, variables] of others.entries()) {
      const { status, error } = await verify(sent, variables)
      expect([status, error.code, attemptsLeft(error.metadata)]).toEqual([400, 'INVALID_CODE', 4 - index])
      const hint = variables ? 'the variables are not those of its payment' : 'repeat its variables'
      expect(error.message).toContain(hint)
    }
    const { status, data } = await verify(sent, rent)
    expect([status, data.status]).toEqual([200, 'verified'])
  })

  test('the fifth other amount ends the request, and the right one comes too late', async () => {
    const sent = await sendRent()
    for (let attempt = 0; attempt < 5; attempt++) await verify(sent, { ...rent, amount: `${attempt} EUR` })
    const { status, error } = await verify(sent, rent)
    expect([status, error.code]).toEqual([410, 'ATTEMPTS_EXHAUSTED'])
  })

  test('are found by their phone, and verified once under concurrency', async () => {
    const phone = '+14155552699'
    const { code } = await sendRent({ phone })
    const calls = Array.from({ length: 10 }, () =>
      service.request('POST', '/v1/otp/verify', { as: app, body: { phone, code, variables: rent } }),
    )
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  })

  test('bind also the fixed code of fictional numbers, and no code that was sent without variables', async () => {
    const fictional = await sendRent({ phone: '+14155550123' })
    expect(fictional.code).toBe('424242')
    expect((await verify(fictional)).status).toBe(400)
    expect((await verify(fictional, rent)).status).toBe(200)
    const plain = await sendRent({ template: undefined, variables: undefined })
    const refused = await verify(plain, rent)
    expect([refused.status, refused.error.message]).toEqual([
      400,
      'The code is wrong, or was sent without variables. Check it and enter it again.',
    ])
    expect((await verify(plain)).status).toBe(200)
  })

  test('match an amount as Intl formats it, with spaces and signs of the same meaning', async () => {
    const formatted = new Intl.NumberFormat('fr-CH', { style: 'currency', currency: 'EUR' }).format(1234.5)
    expect(formatted).toMatch(/[\u00a0\u202f]/)
    const sent = await sendRent({ variables: { amount: formatted, payee: 'L’Atelier' } })
    expect((await inboxTexts(sent.requestId))[0]).toContain("to L'Atelier with")
    const plain = { amount: formatted.replaceAll(/[\u00a0\u202f]/g, ' '), payee: "L'Atelier" }
    expect((await verify(sent, plain)).status).toBe(200)
  })

  test('show each of their characters: invisible letters and marks are refused', async () => {
    for (const invisible of ['\u3164', '\u115f', '\uffa0', '\u034f', '\ufe0f', '\u200b', '\u00ad']) {
      const payee = await send({ variables: { ...rent, payee: `Ada${invisible}` } })
      expect([payee.status, payee.error.details?.[0]?.message]).toEqual([
        400,
        'It contains a character that shows nothing. Leave it out.',
      ])
      expect((await send({ variables: { ...rent, amount: `9 ${invisible}` } })).status).toBe(400)
    }
  })

  test('are sent with the text, amount and payee of the send, also again and without the template', async () => {
    const key = { 'idempotency-key': 'payment-1' }
    await put('gone', { en: 'Was: {code} {amount} {payee}', fr: 'Ancien {code} : {amount} à {payee}' })
    const first = await send({ template: 'gone', locale: 'fr-CA', ttlSeconds: 300 }, key)
    const { requestId, code } = first.data
    await put('gone', { en: 'Now: {code}' })
    expect((await service.request('DELETE', path('gone'), { as: ada })).status).toBe(200)
    service.clock.advance(30_000)
    expect((await otp.resend(app, requestId)).status).toBe(200)
    const text = `Ancien ${code} : 1,234.50 EUR à Ada & Söhne`
    expect(await inboxTexts(requestId)).toEqual([text, text])
    const repeated = await send({ template: 'gone', locale: 'fr-CA', ttlSeconds: 300 }, key)
    expect([repeated.status, repeated.data]).toEqual([201, first.data])
    const other = { ...rent, amount: '1 EUR' }
    const reused = await send({ template: 'gone', locale: 'fr-CA', ttlSeconds: 300, variables: other }, key)
    expect([reused.status, reused.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    expect((await send({ template: 'gone' })).status).toBe(400)
    const request = await service.request<{ template: string }>('GET', `/v1/otp/${requestId}`, { as: ada })
    expect(request.data.template).toBe('gone')
    expect((await verify({ requestId, code: code ?? '' }, rent)).status).toBe(200)
  })

  test('are not sent again by a call, and the resend is not spent', async () => {
    const sent = await sendRent()
    service.clock.advance(30_000)
    const resend = (body: object = {}) =>
      service.request('POST', '/v1/otp/resend', { as: app, body: { requestId: sent.requestId, ...body } })
    const { status, error } = await resend({ channel: 'voice' })
    expect([status, error.code, error.details?.[0]?.path]).toEqual([400, 'INVALID_ARGUMENT', 'channel'])
    expect((await otp.get(ada, sent.requestId)).data.resends).toBe(0)
    expect((await resend()).status).toBe(200)
    expect((await verify(sent, rent)).status).toBe(200)
  })

  test('messages are in a language of the template', async () => {
    const textIn = async (body: object) => (await inboxTexts((await sendRent(body)).requestId))[0] ?? ''
    expect(await textIn({ locale: 'de-AT' })).toMatch(/^\d{6} für 1,234\.50 EUR an Ada & Söhne$/)
    expect(await textIn({ locale: 'ja' })).toMatch(
      /^Pay 1,234\.50 EUR to Ada & Söhne with \d{6}, Shop, 5 min$/,
    )
    expect(await textIn({ phone: '+4915112345678' })).toContain('für')
    expect(await textIn({ template: 'login', variables: undefined })).toMatch(/^\d{6} logs you in to Shop$/)
  })

  test('a send is refused without a charge if its message could not show the payment', async () => {
    const refused: [body: object, field: string, message: string][] = [
      [{ template: 'none' }, 'template', 'no template with this name'],
      [{ template: 'No Name' }, 'template', 'Expected the name of a template'],
      [{ template: undefined }, 'variables', 'Name a template that shows them'],
      [{ template: 'login' }, 'variables', 'The template shows none'],
      [{ variables: undefined }, 'variables', 'The template needs amount and payee'],
      [{ variables: { amount: '9 EUR' } }, 'variables.payee', ''],
      [{ variables: { ...rent, iban: 'x' } }, 'variables.iban', ''],
      [{ channel: 'voice' }, 'channel', 'A call cannot say'],
    ]
    for (const [body, field, message] of refused) {
      const { status, error } = await send(body)
      expect([status, error.code, error.details?.[0]?.path]).toEqual([400, 'INVALID_ARGUMENT', field])
      expect(error.message).toContain(message)
    }
  })

  test('a payee that is more than a name, and an amount that is more than one, are refused', async () => {
    const payees = [
      'evil.example',
      'see evil.example/pay',
      'https://evil',
      'call 0900 123 45',
      'code 123456',
      'Ada\nyour code is wrong',
      'Ada\u202eEnilno',
      'a@b',
      'x'.repeat(41),
      '{code}',
      '   ',
      '🏦',
    ]
    for (const payee of payees) {
      const { status, error, text } = await send({ variables: { ...rent, payee } })
      expect([payee, status, error.details?.[0]?.path]).toEqual([payee, 400, 'variables.payee'])
      if (payee.trim().length > 3) expect(text).not.toContain(payee)
    }
    const refused = [
      'free',
      '9 EUR and more',
      'a.co 5',
      '1.com',
      '٩ EUR',
      '9'.repeat(25),
      '$',
      '-',
      '=9',
      '9 EUR; 8',
      '9',
      // Could be taken for the code.
      '123456',
      '-1,234.50',
    ]
    for (const amount of refused)
      expect([amount, (await send({ variables: { ...rent, amount } })).status]).toEqual([amount, 400])
    const longest = { amount: '1,234,567,890,123.45 EUR', payee: 'x'.repeat(40) }
    expect((await send({ variables: longest })).status).toBe(201)
    for (const amount of ['€9.99', '9,99 €', 'US$ 5', '12 kr.', '-3.00 CHF', "1'000 Fr.", '5 zł', 'R$10'])
      expect([amount, (await send({ variables: { ...rent, amount } })).status]).toEqual([amount, 201])
  })

  test('are kept encrypted, and gone with the personal data of the request', async () => {
    const secret = { amount: '77.70 EUR', payee: 'Quince Orchard' }
    const phone = '+14155552701'
    const { requestId } = await sendRent({ phone, variables: secret })
    const stored = await service.store.read.otpRequests.find(requestId)
    expect(stored?.template?.variables).toEqual(secret)
    const erased = await service.request('DELETE', `/v1/users/${encodeURIComponent(phone)}?erase=true`, {
      as: ada,
    })
    expect(erased.status).toBe(200)
    expect(await readEverything(service.database)).not.toContain('Quince Orchard')
  })
})
