import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { DeliverySettings } from '../../../src/domain/model/delivery.ts'
import { createTestService, type TestApplication, type TestService } from '../../helpers/service.ts'
import { startProviderServer, type ProviderServer } from '../../helpers/provider-server.ts'
import { createTwilioSettings } from '../gateway.ts'

const phone = '+31612345678'
type OtpRequestState = { channel: string; deliveryStatus: string | null; provider: string | null }

let server: ProviderServer
let service: TestService
let application: TestApplication

beforeEach(() => {
  server = startProviderServer()
})
afterEach(async () => {
  await service.dispose()
  await server.stop()
})

async function start(providers: DeliverySettings['providers']) {
  service = await createTestService({ delivery: { providers, routes: [] } })
  application = await service.createApplication(await service.createDeveloper())
}
const send = (body: object) =>
  service.request<{ requestId: string }>('POST', '/v1/otp/send', {
    as: application,
    body: { phone, ...body },
  })
const getRequest = async (requestId: string) =>
  (await service.request<OtpRequestState>('GET', `/v1/otp/${requestId}`, { as: application })).data

test('a landline that accepts no SMS is called, with a code that verifies', async () => {
  const twilio = createTwilioSettings('main', server.url)
  await start([{ ...twilio, values: { ...twilio.values, voiceFrom: '+15005550001' } }])
  server.setHandler(({ path }) =>
    path.endsWith('/Calls.json')
      ? Response.json({ sid: 'CA1', status: 'queued' }, { status: 201 })
      : Response.json({ code: 21614, message: 'words', status: 400 }, { status: 400 }),
  )
  const { data } = await send({ locale: 'de' })
  const [, call] = server.calls
  const twiml = new URLSearchParams(call?.body).get('Twiml') ?? ''
  expect(twiml).toContain('language="de-DE"')
  expect(await getRequest(data.requestId)).toMatchObject({
    channel: 'voice',
    provider: 'main',
    deliveryStatus: 'sent',
  })

  const code = /(\d, ){5}\d/.exec(twiml)?.[0].replaceAll(', ', '')
  const body = { requestId: data.requestId, code }
  expect((await service.request('POST', '/v1/otp/verify', { as: application, body })).status).toBe(200)
})

test('a request for a call fails if no provider makes calls', async () => {
  await start([createTwilioSettings('main', server.url)])
  expect((await send({ channel: 'voice' })).status).toBe(502)
  expect(server.calls).toEqual([])
})

test("the operator's own gateway gets the text to speak", async () => {
  server.setResponse(200, { messageId: 'm1' })
  const values = { url: server.url, secret: `whsec_${btoa('s'.repeat(32))}`, channels: 'voice' }
  await start([{ name: 'own', kind: 'http', values }])
  await send({ locale: 'fr' })
  const callRequest = JSON.parse(server.takeCall().body).data
  expect(callRequest.text).toMatch(/^(\d, ){5}\d est votre code de vérification .+\. (\d, ){5}\d\.$/)
  expect(callRequest).toMatchObject({ channel: 'voice', locale: 'fr' })
})
