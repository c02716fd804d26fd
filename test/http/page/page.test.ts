import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { createPageVisitor } from '../../helpers/page-visitor.ts'
import { createPurger } from '../../helpers/retention.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const returnUrl = 'https://shop.example/back?cart=7'

type CreatedSession = { id: string; url: string; expiresAt: string }
type Session = {
  id: string
  status: string
  phone: string | null
  requestId: string | null
  state: string | null
  verifiedAt: string | null
}

describeEachDatabase('the ready page', (open, kind) => {
  let database: Database
  let service: TestService
  let otp: OtpClient
  let owner: TestDeveloper
  let application: TestApplication
  let phones = 0
  const newPhone = () => `+1415555${4000 + phones++}`

  beforeAll(async () => {
    database = open()
    service = await createTestService({ database, plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    owner = await service.createDeveloper()
  })
  afterAll(() => service.dispose())
  beforeEach(async () => {
    application = await service.createApplication(owner, { name: 'Shop' })
    const body = { enabled: true, returnOrigins: ['https://shop.example'] }
    const { status } = await service.request('PATCH', `/v1/applications/${application.id}/page`, {
      as: owner,
      body,
    })
    expect(status).toBe(200)
  })

  const create = (body: object = {}, as: TestApplication = application) =>
    service.request<CreatedSession>('POST', '/v1/otp/sessions', { as, body: { returnUrl, ...body } })
  const get = async (id: string) =>
    (await service.request<Session>('GET', `/v1/otp/sessions/${id}`, { as: application })).data
  const visit = async (body: object = {}, headers = {}) => {
    const { data } = await create(body)
    const visitor = createPageVisitor(service, data.url, headers)
    return { ...data, visitor, first: await visitor.get() }
  }
  const readCode = async (id: string) => otp.getCode((await get(id)).requestId ?? '')

  test('verifies a phone in two steps without a script, and returns to the application', async () => {
    const { id, visitor, first } = await visit({ state: 'a b&c' })
    expect(first.status).toBe(200)
    expect(first.text).toContain('<label for="phone">Phone number</label>')
    expect(await get(id)).toMatchObject({ status: 'created', phone: null, requestId: null })
    const phone = newPhone()
    const second = await visitor.submit({ action: 'send', phone: phone.slice(2), country: 'US' })
    expect(second.text).toContain('autocomplete="one-time-code"')
    expect(await get(id)).toMatchObject({ status: 'sent', phone: null })
    const wrong = await visitor.submit({
      action: 'verify',
      code: await otp.getWrongCode((await get(id)).requestId ?? ''),
    })
    expect(wrong.notice).toBe('This code is wrong. Attempts left: 4')
    for (const code of ['', '12345', '1234567', '12345a', '      '])
      expect((await visitor.submit({ action: 'verify', code })).notice).toBe(wrong.notice)
    const code = await readCode(id)
    const verified = await visitor.post({ action: 'verify', code: `${code.slice(0, 3)} ${code.slice(3)}` })
    expect(verified.status).toBe(303)
    const left = await visitor.get()
    expect(left.location).toBe(`https://shop.example/back?cart=7&session=${id}&state=a+b%26c`)
    const session = await get(id)
    expect(session).toMatchObject({ status: 'verified', phone, state: 'a b&c' })
    const log = await service.request<Array<{ type: string; detail: string | null }>>(
      'GET',
      '/v1/logs?limit=3',
      {
        as: owner,
      },
    )
    expect(log.data.map(({ type, detail }) => [type, detail])).toContainEqual(['session.verified', id])
  })

  test('verifies only the phone of the session, and shows its end alone', async () => {
    const phone = newPhone()
    const { id, visitor, first } = await visit({ phone })
    expect(first.text).not.toContain('name="phone"')
    expect(first.text).not.toContain(phone.slice(2))
    expect(first.text).toContain(phone.slice(-2))
    await visitor.submit({ action: 'send', phone: newPhone() })
    await visitor.submit({ action: 'verify', code: await readCode(id) })
    expect(await get(id)).toMatchObject({ status: 'verified', phone })
  })

  test('keeps what was typed when the phone is refused', async () => {
    const { visitor } = await visit()
    const answer = await visitor.submit({ action: 'send', phone: '<12"', country: 'DE' })
    expect(answer.status).toBe(400)
    expect(answer.notice).toBe('Enter a valid phone number.')
    expect(answer.text).toContain('value="&lt;12&quot;" aria-invalid="true" aria-describedby="notice"')
    expect(answer.text).toContain('<option value=DE data-m="0#### #######" selected>Germany +49')
  })

  test('takes digits of other scripts', async () => {
    const { id, visitor } = await visit({}, { 'accept-language': 'ar-EG' })
    await visitor.submit({ action: 'send', phone: '٠١٠٠١٢٣٤٥٦٧', country: 'EG' })
    const arabic = (await readCode(id)).replaceAll(/\d/g, (digit) => '٠١٢٣٤٥٦٧٨٩'[Number(digit)] ?? '')
    await visitor.submit({ action: 'verify', code: arabic })
    expect(await get(id)).toMatchObject({ status: 'verified', phone: '+201001234567' })
  })

  test('sends to another phone, and the code of the one before is refused', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    const { requestId } = await get(id)
    const old = await readCode(id)
    expect((await visitor.get('?step=phone')).text).toContain('name="phone"')
    const phone = newPhone()
    await visitor.submit({ action: 'send', phone })
    expect((await otp.get(owner, requestId ?? '')).data.status).toBe('canceled')
    if (old !== (await readCode(id))) {
      await visitor.submit({ action: 'verify', code: old })
      expect((await get(id)).status).toBe('sent')
    }
    await visitor.submit({ action: 'verify', code: await readCode(id) })
    expect(await get(id)).toMatchObject({ status: 'verified', phone })
  })

  test('sends one message when a form is posted twice, as by a double click', async () => {
    const { id, visitor } = await visit()
    const phone = newPhone()
    const form = { action: 'send', phone: phone.slice(2), country: 'US' }
    await visitor.submit(form)
    const { requestId } = await get(id)
    const again = await visitor.submit(form)
    expect(again.text).toContain('autocomplete="one-time-code"')
    expect((await get(id)).requestId).toBe(requestId)
    await visitor.submit({ action: 'send', phone: newPhone() })
    expect((await get(id)).requestId).not.toBe(requestId)
    await visitor.submit(form)
    const back = (await get(id)).requestId
    service.clock.advance(31_000)
    await visitor.submit(form)
    expect((await get(id)).requestId).not.toBe(back)
  })

  test('sends one message for forms that arrive at once', async () => {
    const { id, visitor } = await visit()
    const form = { action: 'send', phone: newPhone() }
    const answers = await Promise.all(Array.from({ length: 8 }, () => visitor.submit(form)))
    for (const { text } of answers) expect(text).toContain('autocomplete="one-time-code"')
    const sent = await service.request<unknown[]>('GET', `/v1/otp?phone=${encodeURIComponent(form.phone)}`, {
      as: owner,
    })
    expect(sent.data).toHaveLength(1)
    expect((await get(id)).status).toBe('sent')
  })

  test('sends again within 30 seconds in another browser, in which the first code cannot be entered', async () => {
    const { id, url, visitor } = await visit()
    const phone = newPhone()
    await visitor.submit({ action: 'send', phone })
    const { requestId } = await get(id)
    const other = createPageVisitor(service, url)
    await other.get()
    expect((await other.submit({ action: 'send', phone })).text).toContain('autocomplete="one-time-code"')
    expect((await get(id)).requestId).not.toBe(requestId)
  })

  test('does nothing for a form that it does not have', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    service.clock.advance(30_000)
    for (const action of ['', 'other', 'resend '])
      expect((await visitor.submit({ action })).notice).toBe('Something went wrong. Please try again.')
    expect((await otp.get(owner, (await get(id)).requestId ?? '')).data.resends).toBe(0)
  })

  test('sends the code once more after 30 seconds', async () => {
    const { id, visitor } = await visit()
    const phone = newPhone()
    await visitor.submit({ action: 'send', phone })
    const early = await visitor.submit({ action: 'resend' })
    expect(early.notice).toBe('Too many attempts. Try again in 30 seconds.')
    service.clock.advance(30_000)
    expect((await visitor.submit({ action: 'resend' })).notice).toBeUndefined()
    expect((await otp.get(owner, (await get(id)).requestId ?? '')).data.resends).toBe(1)
  })

  test('ends without success when the user goes back', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    const { requestId } = await get(id)
    const code = await readCode(id)
    await visitor.post({ action: 'cancel' })
    expect(await get(id)).toMatchObject({ status: 'canceled', phone: null })
    expect((await otp.get(owner, requestId ?? '')).data.status).toBe('canceled')
    expect((await visitor.get()).location).toContain(`session=${id}`)
    await visitor.post({ action: 'verify', code })
    expect((await get(id)).status).toBe('canceled')
  })

  test('shows that too many codes were wrong, and lets the user send a new one', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    const wrong = await otp.getWrongCode((await get(id)).requestId ?? '')
    for (let count = 0; count < 4; count++) await visitor.submit({ action: 'verify', code: wrong })
    const last = await visitor.submit({ action: 'verify', code: wrong })
    expect(last.notice).toBe('This code no longer works. Request a new one.')
    await visitor.submit({ action: 'send', phone: newPhone() })
    await visitor.submit({ action: 'verify', code: await readCode(id) })
    expect((await get(id)).status).toBe('verified')
  })

  test('expires after 15 minutes, and is kept for a day', async () => {
    const { id, visitor, expiresAt } = await visit()
    expect(Date.parse(expiresAt) - service.clock.now()).toBe(15 * 60_000)
    service.clock.advance(15 * 60_000)
    const answer = await visitor.get()
    expect([answer.status, answer.notice]).toEqual([
      410,
      'This link is not valid or has expired. Go back to the app or website and start again.',
    ])
    expect(answer.text).toContain(`href="https://shop.example/back?cart=7&amp;session=${id}"`)
    await visitor.post({ action: 'send', phone: newPhone() })
    expect(await get(id)).toMatchObject({ status: 'expired', requestId: null })
  })

  test('is deleted after a day, and at once with the phone that it is for', async () => {
    const phone = newPhone()
    const { id, url } = await visit({ phone })
    const erased = await erasePhone({ ...service, ...service.services }, phone, { actor: owner.developer })
    expect(erased.otpRequests).toBe(0)
    expect((await createPageVisitor(service, url).get()).status).toBe(404)
    const { id: other } = await visit()
    service.clock.advance(24 * 60 * 60_000)
    await createPurger(service)()
    for (const one of [id, other]) expect(await service.store.read.otpSessions.find(one)).toBeUndefined()
  })

  test('is not found by a forged link of any form', async () => {
    const { url } = await visit()
    for (const token of ['x', 'A'.repeat(43), `${url.slice(url.lastIndexOf('/') + 1, -1)}`, '%00', 'é']) {
      const { status, notice } = await createPageVisitor(service, `http://otpd.test/verify/${token}`).get()
      expect([status, notice]).toEqual([
        404,
        'This link is not valid or has expired. Go back to the app or website and start again.',
      ])
    }
  })

  // Each is a query, which costs most on PostgreSQL; what is compared is the same.
  const forgedLinks = kind === 'SQLite' ? 10_000 : 1_000
  test(`accepts none of ${forgedLinks} forged links, and spends nothing for them`, async () => {
    const { id, url, visitor } = await visit()
    const phone = newPhone()
    await visitor.submit({ action: 'send', phone })
    const before = await otp.get(owner, (await get(id)).requestId ?? '')
    const right = url.slice(url.lastIndexOf('/') + 1)
    const random = seededRandom(7)
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const letter = () => letters[Math.floor(random() * letters.length)] ?? ''
    const forge = (index: number) => {
      if (index % 2 === 0) return Array.from({ length: 43 }, letter).join('')
      // The right one with one letter changed, or one too long.
      const at = Math.floor(random() * 42)
      const other = letter()
      return other === right[at] ? `${right}A` : right.slice(0, at) + other + right.slice(at + 1)
    }
    let accepted = 0
    for (let index = 0; index < forgedLinks; index++)
      if (await service.services.otp.sessions.findByToken(forge(index))) accepted++
    for (let index = 0; index < 50; index++) {
      const address = `http://otpd.test/verify/${forge(index)}`
      const forged = createPageVisitor(service, address, { cookie: visitor.cookie ?? '' })
      const { status } = await forged.post({ token: visitor.token, action: 'verify', code: '000000' })
      if (status !== 404) accepted++
    }
    expect(accepted).toBe(0)
    expect((await otp.get(owner, before.data.id)).data).toEqual(before.data)
  }, 60_000)

  test('does nothing for a form of another site or of another browser', async () => {
    const { id, url, visitor } = await visit()
    const phone = newPhone()
    const foreign = await visitor.post({ action: 'send', phone }, { origin: 'https://evil.example' })
    expect(foreign.status).toBe(403)
    expect((await visitor.post({ action: 'send', phone }, { 'sec-fetch-site': 'cross-site' })).status).toBe(
      403,
    )
    const other = createPageVisitor(service, url)
    await other.get()
    expect((await other.post({ action: 'send', phone, token: visitor.token })).location).toContain(
      '?error=failed',
    )
    expect((await visitor.post({ action: 'send', phone, token: '' })).location).toContain('?error=failed')
    expect(await get(id)).toMatchObject({ status: 'created', requestId: null })
    expect((await visitor.post({ action: 'send', phone })).location).not.toContain('error')
  })

  test('can be neither framed nor cached, and loads nothing from elsewhere', async () => {
    const { first } = await visit()
    const policy = first.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("form-action 'self' https://shop.example")
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(first.headers.get('referrer-policy')).toBe('same-origin')
    expect(first.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^otpd_page=[^;]+; Max-Age=\d+; HttpOnly; SameSite=Lax/),
    ])
    expect(first.text).not.toMatch(/(src|href)="?(https?:)?\/\//)
    expect(Buffer.byteLength(first.text)).toBeLessThan(30_000)
  })

  test('tells the guard the address of the connection and the device of the cookie', async () => {
    const { id, visitor } = await visit()
    await visitor.submit({ action: 'send', phone: newPhone() })
    const stored = await service.store.read.otpRequests.find((await get(id)).requestId ?? '')
    expect(stored?.contexts.length).toBeGreaterThan(0)
  })

  test('is off until the developer turns it on, and returns only to the origins that they name', async () => {
    const other = await service.createApplication(owner)
    expect((await create({}, other)).error).toMatchObject({ code: 'FORBIDDEN', reason: 'PAGE_DISABLED' })
    for (const url of [
      'https://shop.example.evil.test/',
      'https://shop.example:8443/',
      'http://shop.example/',
      'https://user@shop.example/',
      'javascript:alert(1)',
      '/back',
    ])
      expect((await create({ returnUrl: url })).error).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: [{ path: 'returnUrl' }],
      })
  })

  test('refuses links to an origin that was removed, also of sessions that ended', async () => {
    const open = await visit()
    const ended = await visit()
    await ended.visitor.get()
    await ended.visitor.post({ action: 'cancel' })
    expect((await ended.visitor.get()).location).toStartWith('https://shop.example/')
    await service.request('PATCH', `/v1/applications/${application.id}/page`, {
      as: owner,
      body: { returnOrigins: ['https://other.example'] },
    })
    for (const { visitor } of [open, ended]) {
      const answer = await visitor.get()
      expect([answer.status, answer.location]).toEqual([404, null])
      expect(answer.text).not.toContain('shop.example')
    }
  })

  test('refuses open links once it is turned off, or the application is disabled', async () => {
    const { id, visitor } = await visit()
    const page = `/v1/applications/${application.id}/page`
    await service.request('PATCH', page, { as: owner, body: { enabled: false } })
    expect((await visitor.get()).status).toBe(403)
    await service.request('PATCH', page, { as: owner, body: { enabled: true } })
    expect((await visitor.get()).status).toBe(200)
    await service.request('PATCH', `/v1/applications/${application.id}`, {
      as: owner,
      body: { status: 'disabled' },
    })
    expect((await visitor.get()).status).toBe(403)
    await visitor.post({ action: 'send', phone: newPhone() })
    expect((await service.request<Session>('GET', `/v1/otp/sessions/${id}`, { as: owner })).data.status).toBe(
      'created',
    )
  })
})
