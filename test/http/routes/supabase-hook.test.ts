import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { signWebhook } from '../../../src/shared/webhook-signature.ts'
import { createTwilioSettings, startGateway, type Gateway } from '../../delivery/gateway.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

// Requests and answers as supabase/auth sends and reads them.

let gateway: Gateway
let service: TestService
let owner: TestDeveloper
let application: TestApplication

beforeAll(async () => {
  gateway = startGateway()
  service = await createTestService({
    plans: { free: { ...unlimitedPlan, sendPerMinute: 5 } },
    env: { OTPD_GUARD_MODE: 'enforce', OTPD_GUARD_DENIED_COUNTRIES: 'CN' },
    delivery: deliveryTo([]),
  })
  owner = await service.createDeveloper()
})
afterAll(async () => {
  await service.dispose()
  await gateway.stop()
})
beforeEach(async () => {
  application = await service.createApplication(owner)
  gateway.acceptAll()
  gateway.messages.length = 0
})

/** Settings with a route to these countries, or to all. */
const deliveryTo = (countries: string[]) => ({
  providers: [createTwilioSettings('main', gateway.url)],
  routes: [{ channel: 'sms' as const, countries, prefixes: [], applications: [], providers: ['main'] }],
})

let ids = 0
let phones = 0

const hookBody = (changes: { user?: object; sms?: object } = {}) => ({
  metadata: { uuid: '8f1b', time: '2026-11-20T12:00:00Z', name: 'send-sms', ip_address: '192.0.2.7' },
  user: { id: '4b0c', phone: `3161${1_000_000 + phones++}`, user_metadata: {}, ...changes.user },
  sms: { otp: '907155', ...changes.sms },
})

type HookOptions = {
  secret?: string
  id?: string
  ageSeconds?: number
  signature?: (real: string) => string
  appId?: string
}

async function call(body: unknown, options: HookOptions = {}) {
  const { secret = application.webhookSecret, ageSeconds = 0, signature = (real) => real } = options
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const id = options.id ?? `hook-${ids++}`
  const timestamp = String(Math.floor(service.clock.now() / 1000) - ageSeconds)
  const real = signWebhook(secret, { id, timestamp, body: text })
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature(real),
  }
  const response = await service.request('POST', `/v1/hooks/supabase/${options.appId ?? application.id}`, {
    body: text,
    headers,
  })
  return { status: response.status, headers: response.headers, json: JSON.parse(response.text) }
}

describe('the hook of supabase/auth', () => {
  test('sends the code and answers {}', async () => {
    const body = hookBody({ user: { user_metadata: { locale: 'de' } } })
    const { status, json, headers } = await call(body)
    expect([status, json]).toEqual([200, {}])
    expect(headers.get('content-type')).toContain('application/json')
    expect(gateway.messages).toMatchObject([{ to: `+${body.user.phone}`, code: '907155' }])
    expect(gateway.takeCall().body).toContain('Ihr+')
  })

  test('sends to the new number of a change', async () => {
    await call(hookBody({ sms: { phone: '31612000001' } }))
    expect(gateway.messages).toMatchObject([{ to: '+31612000001' }])
  })

  test('answers a repeated webhook-id again, and sends once', async () => {
    const body = hookBody()
    expect((await call(body, { id: 'same' })).json).toEqual({})
    service.clock.advance(120_000)
    expect((await call(body, { id: 'same' })).json).toEqual({})
    expect(gateway.messages).toHaveLength(1)
  })

  test('answers its repeat with a new webhook-id again, and sends once', async () => {
    const body = hookBody()
    await call(body)
    expect((await call(body)).json).toEqual({})
    expect(gateway.messages).toHaveLength(1)
  })

  test.each<[string, HookOptions]>([
    ['joined by a comma and a space', { signature: (real) => `v1,${'A'.repeat(43)}=, ${real}` }],
    ['with a comma behind', { signature: (real) => `${real}, v1,AAAA` }],
    ['joined by a space', { signature: (real) => `v1a,AAAA ${real}` }],
    ['of 299 seconds ago', { ageSeconds: 299 }],
  ])('takes signatures %s', async (_, options) => {
    expect((await call(hookBody(), options)).status).toBe(200)
  })

  test.each<[string, () => Promise<HookOptions>]>([
    ['of another secret', async () => ({ secret: `whsec_${'a'.repeat(48)}` })],
    ['that is none', async () => ({ signature: () => '' })],
    ['of another version', async () => ({ signature: (real) => real.replace('v1,', 'v2,') })],
    ['of 301 seconds ago', async () => ({ ageSeconds: 301 })],
    ['of the future', async () => ({ ageSeconds: -302 })],
    ['for another application', async () => ({ appId: (await service.createApplication(owner)).id })],
    ['for no application', async () => ({ appId: 'app_01m80sr471e27v7f4wrmn5z47g' })],
    ['for no id', async () => ({ appId: 'nothing' })],
  ])('refuses a signature %s with 401', async (_, options) => {
    const { status, json } = await call(hookBody(), await options())
    expect([status, json.error.code, json.error.reason]).toEqual([
      401,
      'UNAUTHENTICATED',
      'SIGNATURE_INVALID',
    ])
    expect(gateway.messages).toEqual([])
  })

  test('refuses the old secret after its rotation', async () => {
    await service.request('POST', `/v1/applications/${application.id}/rotate/webhook_secret`, {
      as: owner,
    })
    expect((await call(hookBody())).status).toBe(401)
  })

  test.each<[string, number, () => unknown]>([
    ['a phone number that cannot be one', 400, () => hookBody({ user: { phone: '12' } })],
    ['no phone number', 400, () => hookBody({ user: { phone: '' } })],
    ['no code', 400, () => hookBody({ sms: { otp: 907155 } })],
    ['a body that is not JSON', 400, () => '{'],
    ['a denied country', 403, () => hookBody({ user: { phone: '8613800138000' } })],
  ])('answers %s with 200 and http_code %d', async (_, status, body) => {
    expect(await call(body())).toMatchObject({
      status: 200,
      json: { error: { http_code: status, message: expect.any(String) } },
    })
  })

  test('answers limits with http_code 429', async () => {
    const app = await service.createApplication(owner)
    const answers = []
    for (let i = 0; i < 6; i++)
      answers.push((await call(hookBody(), { appId: app.id, secret: app.webhookSecret })).json)
    expect(answers.slice(0, 5)).toEqual([{}, {}, {}, {}, {}])
    expect(answers[5]).toMatchObject({ error: { http_code: 429 } })
  })

  test('answers 502 if no provider takes the message', async () => {
    gateway.refuseAll(400, 21606)
    expect((await call(hookBody())).json).toMatchObject({ error: { http_code: 502 } })
  })

  test('names a missing route, as a send does', async () => {
    await service.services.messaging.reload(deliveryTo(['US']))
    expect((await call(hookBody())).json).toEqual({
      error: {
        http_code: 502,
        message: expect.stringMatching(/^No route leads to this phone number in [A-Z]{2} on any channel\. /),
      },
    })
    await service.services.messaging.reload(deliveryTo([]))
  })

  test('answers 403 for a disabled application', async () => {
    await service.request('PATCH', `/v1/applications/${application.id}`, {
      as: owner,
      body: { status: 'disabled' },
    })
    expect((await call(hookBody())).json).toMatchObject({ error: { http_code: 403 } })
    expect((await call(hookBody(), { secret: `whsec_${'a'.repeat(48)}` })).status).toBe(401)
  })
})
