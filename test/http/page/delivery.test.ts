import { afterAll, beforeAll, expect, test } from 'bun:test'
import { pageTexts } from '../../../src/http/page/texts.ts'
import { createTwilioSettings } from '../../delivery/gateway.ts'
import { enforced } from '../../helpers/challenged-device.ts'
import { createPageVisitor } from '../../helpers/page-visitor.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { startProviderServer, type ProviderServer } from '../../helpers/provider-server.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

// The ready page with a provider: other channels, and messages that do not go out.

let provider: ProviderServer
let service: TestService
let owner: TestDeveloper
let application: TestApplication
let phones = 0
const newPhone = () => `+1415555${5000 + phones++}`

beforeAll(async () => {
  provider = startProviderServer()
  const twilio = createTwilioSettings('main', provider.url)
  const providers = [{ ...twilio, values: { ...twilio.values, voiceFrom: '+15005550001' } }]
  service = await createTestService({
    env: enforced,
    plans: unlimitedPlans,
    delivery: { providers, routes: [] },
  })
  owner = await service.createDeveloper()
  application = await service.createApplication(owner)
  const body = { enabled: true, returnOrigins: ['https://shop.example'] }
  await service.request('PATCH', `/v1/applications/${application.id}/page`, { as: owner, body })
})
afterAll(async () => {
  await service.dispose()
  await provider.stop()
})

const accept = () =>
  provider.setHandler(() => Response.json({ sid: 'SM1', status: 'queued' }, { status: 201 }))

async function visit(body: object = {}) {
  const { data } = await service.request<{ id: string; url: string }>('POST', '/v1/otp/sessions', {
    as: application,
    body: { returnUrl: 'https://shop.example/', locale: 'en', ...body },
  })
  const visitor = createPageVisitor(service, data.url)
  await visitor.get()
  return { ...data, visitor }
}

test('offers the other channel, and verifies the code that is spoken', async () => {
  accept()
  const { id, visitor } = await visit()
  const sent = await visitor.submit({ action: 'send', phone: newPhone() })
  expect(sent.text).toContain(
    '<button name="action" value="resend:voice" data-wait="30">Call me with the code',
  )
  service.clock.advance(30_000)
  const called = await visitor.submit({ action: 'resend:voice' })
  expect(called.notice).toBeUndefined()
  const call = provider.calls.findLast(({ path }) => path.endsWith('/Calls.json'))
  const spoken = /(\d, ){5}\d/.exec(new URLSearchParams(call?.body).get('Twiml') ?? '')?.[0] ?? ''
  expect(called.text).toContain('value="resend:sms"')
  await visitor.post({ action: 'verify', code: spoken.replaceAll(', ', '') })
  const session = await service.request('GET', `/v1/otp/sessions/${id}`, { as: application })
  expect(session.data).toMatchObject({ status: 'verified' })
})

test('offers no call for a payment, which it could not say', async () => {
  accept()
  const texts = { en: '{code}: pay {amount} to {payee}' }
  const path = `/v1/applications/${application.id}/templates/payment`
  expect((await service.request('PUT', path, { as: owner, body: { texts } })).status).toBe(200)
  const variables = { amount: '9.99 EUR', payee: 'Ada Books' }
  const { visitor } = await visit({ template: 'payment', variables })
  const sent = await visitor.submit({ action: 'send', phone: newPhone() })
  expect(sent.text).toContain('value="resend"')
  expect(sent.text).not.toContain('value="resend:')
})

test('says that a message could not be delivered, and lets the user correct the phone', async () => {
  const { visitor } = await visit()
  provider.setHandler(() => Response.json({ code: 21211, message: 'Invalid', status: 400 }, { status: 400 }))
  const failed = await visitor.submit({ action: 'send', phone: newPhone() })
  expect([failed.status, failed.notice]).toEqual([
    502,
    'The code could not be delivered. Check the number or try again.',
  ])
  expect(failed.text).toContain('name="phone"')
  accept()
  expect((await visitor.submit({ action: 'send', phone: newPhone() })).text).toContain('name="code"')
})

test('says that a code will be sent while no provider takes it', async () => {
  const { visitor } = await visit()
  const phone = newPhone()
  provider.setHandler(() => new Response(null, { status: 503 }))
  const waiting = await visitor.submit({ action: 'send', phone })
  expect(waiting.text).toContain('<p>We will send a code to ')
  expect(waiting.text).not.toContain('We sent a code')
  expect(waiting.text).toContain('name="code"')
  accept()
  service.clock.advance(30_000)
  expect((await visitor.submit({ action: 'resend' })).text).toContain('<p>We sent a code to ')
})

test('says that the guard sends nothing to a phone', async () => {
  accept()
  const { visitor } = await visit()
  const blocked = await visitor.submit({ action: 'send', phone: '+5351234567' })
  expect([blocked.status, blocked.notice]).toEqual([403, 'We cannot send a code to this number.'])
})

test.each(Object.entries(pageTexts))('is smaller than 30 kB in %s, in both steps', async (locale, texts) => {
  accept()
  const { url } = await visit({ locale })
  const visitor = createPageVisitor(service, url)
  const first = await visitor.get()
  expect(first.text).toContain(`<html lang="${locale}" dir="${/^(ar|he|fa)/.test(locale) ? 'rtl' : 'ltr'}">`)
  expect(Buffer.byteLength(first.text)).toBeLessThan(30_000)
  const second = await visitor.submit({ action: 'send', phone: newPhone() })
  expect(Buffer.byteLength(second.text)).toBeLessThan(30_000)
  for (const text of [texts.title, texts.code, texts.verify, texts.cancel])
    expect(second.text).toContain(text)
})
