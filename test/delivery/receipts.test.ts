import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Database } from '../../src/store/engine/database.ts'
import { openTestSqlite, withRetriedWrites } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { buildReceipt, startGateway, createTwilioSettings, type Gateway, type SmsMessage } from './gateway.ts'

const phone = '+31612345678'
type SentOtp = { requestId: string }
type OtpRequestState = {
  status: string
  deliveryStatus: string | null
  provider: string | null
  channel: string
}

let main: Gateway
let spare: Gateway
let service: TestService
let application: TestApplication

/** Both accounts send WhatsApp and SMS, in that order by default. */
const routeAndProvider = (name: string, url: string) => {
  const { values, ...rest } = createTwilioSettings(name, url)
  const whatsapp = { whatsappFrom: '+15005550006', whatsappContentSid: `HX${'0'.repeat(32)}` }
  return { ...rest, values: { ...values, ...whatsapp } }
}
const unrestricted = { countries: [], prefixes: [], applications: [] }

beforeEach(() => {
  main = startGateway()
  spare = startGateway()
})
afterEach(async () => {
  await service.dispose()
  await main.stop()
  await spare.stop()
})

const start = (...channels: Array<'sms' | 'whatsapp'>) => startOn(undefined, ...channels)

async function startOn(database: Database | undefined, ...channels: Array<'sms' | 'whatsapp'>) {
  service = await createTestService({
    plans: unlimitedPlans,
    ...(database && { database }),
    delivery: {
      providers: [routeAndProvider('main', main.url), routeAndProvider('spare', spare.url)],
      routes: channels.map((channel) => ({ channel, ...unrestricted, providers: ['main', 'spare'] })),
    },
    messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
  })
  application = await service.createApplication(await service.createDeveloper())
}

const send = async (body: object = {}) =>
  (await service.request<SentOtp>('POST', '/v1/otp/send', { as: application, body: { phone, ...body } })).data
    .requestId
const resend = (requestId: string, body: object = {}) =>
  service.request('POST', '/v1/otp/resend', { as: application, body: { requestId, ...body } })
const getRequest = async (requestId: string) =>
  (await service.request<OtpRequestState>('GET', `/v1/otp/${requestId}`, { as: application })).data
const listEventTypes = async (requestId: string) => {
  const { events } = service.database.tables
  const rows = await service.database.read.select().from(events)
  return rows
    .filter((row) => row.requestId === requestId && row.type !== 'guard.flagged')
    .map(({ type }) => type)
}

const listAttempts = async (requestId: string) => {
  const { data } = await service.request('GET', `/v1/otp/${requestId}/events`, { as: application })
  return (data as unknown as Array<{ type: string }>).filter(({ type }) => type === 'delivery.attempted')
}

/** Posts a receipt as the provider does. @returns the status of the response */
async function postReceipt(text: SmsMessage | undefined, status: string, errorCode?: number) {
  if (!text) throw new Error('there is no such message')
  const { url, method, headers, body } = buildReceipt(text, status, errorCode)
  const { pathname, search } = new URL(url)
  return (await service.request(method, pathname + search, { headers, body })).status
}
const sendDueMessages = () => service.services.messaging.sendDue()

describe('a receipt', () => {
  test('that a message arrived is reported once', async () => {
    await start('sms')
    const requestId = await send()
    expect(await postReceipt(main.messages[0], 'sent')).toBe(200)
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'sent' })
    expect([
      await postReceipt(main.messages[0], 'delivered'),
      await postReceipt(main.messages[0], 'delivered'),
    ]).toEqual([200, 200])
    expect(await getRequest(requestId)).toMatchObject({ status: 'pending', deliveryStatus: 'delivered' })
    expect(await listEventTypes(requestId)).toEqual(['otp.sent', 'otp.delivered'])
  })

  test('never goes backwards', async () => {
    await start('sms')
    const requestId = await send()
    await postReceipt(main.messages[0], 'delivered')
    await postReceipt(main.messages[0], 'undelivered', 30003)
    await postReceipt(main.messages[0], 'sent')
    await sendDueMessages()
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'delivered' })
    expect(await listEventTypes(requestId)).toEqual(['otp.sent', 'otp.delivered'])
    expect(spare.calls).toEqual([])
  })

  test('that arrives after the code was verified still counts', async () => {
    await start('sms')
    const requestId = await send()
    const code = main.messages[0]?.code ?? ''
    await service.request('POST', '/v1/otp/verify', { as: application, body: { requestId, code } })
    expect(await postReceipt(main.messages[0], 'delivered')).toBe(200)
    expect(await getRequest(requestId)).toMatchObject({ status: 'verified', deliveryStatus: 'delivered' })
  })

  test('that arrives before the response to the send is kept for it', async () => {
    await start('sms')
    main.setHandler(async (call) => {
      const text = main.acceptMessage(call)
      expect(await postReceipt(text, 'delivered')).toBe(200)
      return main.createdResponse(text)
    })
    const requestId = await send()
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'delivered', provider: 'main' })
    expect(await listEventTypes(requestId)).toEqual(['otp.sent', 'otp.delivered'])
  })

  test('that arrives early is not lost if the transaction that takes it is retried', async () => {
    const opened = await openTestSqlite()
    await startOn(withRetriedWrites(opened.database), 'sms')
    main.setHandler(async (call) => {
      const text = main.acceptMessage(call)
      await postReceipt(text, 'delivered')
      return main.createdResponse(text)
    })
    expect(await getRequest(await send())).toMatchObject({ deliveryStatus: 'delivered', provider: 'main' })
    await opened.dispose()
  })

  test('that arrives early is applied at the next start if the server was killed before', async () => {
    const opened = await openTestSqlite()
    await startOn(opened.database, 'sms')
    const requestId = await send()
    const messageId = main.messages[0]?.messageId ?? ''
    const receipt = { messageId, requestId, status: 'delivered', failure: null } as const
    await service.store.write((tx) => tx.earlyReceipts.put('main', receipt, service.clock.now()))
    await service.dispose()
    await startOn(opened.database, 'sms')
    expect((await service.store.read.otpRequests.find(requestId))?.deliveryStatus).toBe('delivered')
    await opened.dispose()
  })

  test('resolves a message that got no response', async () => {
    await start('sms')
    main.setHandler((call) => {
      main.acceptMessage(call)
      return new Response(null, { status: 504 })
    })
    const requestId = await send()
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'unknown' })
    await postReceipt(main.messages[0], 'delivered')
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'delivered' })
    expect(spare.calls).toEqual([])
  })

  test('that a message did not arrive fails over to the next route, with the same code', async () => {
    await start('sms')
    const requestId = await send()
    await postReceipt(main.messages[0], 'undelivered', 30008)
    await sendDueMessages()
    expect(spare.messages).toMatchObject([{ to: phone, code: main.messages[0]?.code }])
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'sent', provider: 'spare' })
    expect(await listAttempts(requestId)).toMatchObject([
      { provider: 'main', outcome: 'accepted', error: 'unknown' },
      { provider: 'spare', outcome: 'accepted', error: null },
    ])
    await postReceipt(spare.messages[0], 'undelivered', 30008)
    await sendDueMessages()
    expect(await getRequest(requestId)).toMatchObject({ status: 'pending', deliveryStatus: 'undelivered' })
    expect(await listEventTypes(requestId)).toEqual(['otp.sent', 'otp.undelivered'])
    expect([main.messages.length, spare.messages.length]).toEqual([1, 1])
  })

  test('that the number is at fault ends the attempts', async () => {
    await start('sms')
    const requestId = await send()
    await postReceipt(main.messages[0], 'undelivered', 30005)
    await sendDueMessages()
    expect(spare.calls).toEqual([])
    expect(await getRequest(requestId)).toMatchObject({ status: 'pending', deliveryStatus: 'undelivered' })
  })

  test('of an earlier message does not count for the resend, unless it arrived', async () => {
    await start('sms')
    const requestId = await send()
    service.clock.advance(30_000)
    await resend(requestId)
    await postReceipt(main.messages[0], 'undelivered', 30008)
    await sendDueMessages()
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'sent' })
    await postReceipt(main.messages[1], 'undelivered', 30005)
    expect(await getRequest(requestId)).toMatchObject({ deliveryStatus: 'undelivered' })
    expect(spare.calls).toEqual([])
  })
})

describe('the callback route', () => {
  test('responds alike to a wrong token, an unknown provider and another provider', async () => {
    await start('sms')
    await send()
    const url = new URL(main.messages[0]?.callbackUrl ?? '')
    const token = url.pathname.split('/').at(-1)
    for (const path of [`/main/${'A'.repeat(43)}`, `/missing/${token}`, `/spare/${token}`, '/main/x']) {
      const { status, error } = await service.request('POST', `/v1/callbacks${path}`, {
        headers: {},
        body: '',
      })
      expect([status, error.code]).toEqual([404, 'NOT_FOUND'])
    }
  })

  test('refuses an invalid signature, and a body that is no receipt', async () => {
    await start('sms')
    const requestId = await send()
    const text = main.messages[0]
    if (!text) throw new Error('nothing was sent')
    const { url, headers, body } = buildReceipt(text, 'delivered')
    const { pathname, search } = new URL(url)
    const forged = await service.request('POST', pathname + search, {
      headers: { ...headers, 'x-twilio-signature': 'AAAA' },
      body,
    })
    expect([forged.status, forged.error.reason]).toEqual([403, 'SIGNATURE_INVALID'])
    expect((await getRequest(requestId)).deliveryStatus).toBe('sent')
  })

  test('accepts a receipt of an unknown message', async () => {
    await start('sms')
    await send()
    const [firstMessage] = main.messages
    if (!firstMessage) throw new Error('nothing was sent')
    const callbackUrl = (firstMessage.callbackUrl ?? '').replace(/\?.*/, '')
    expect(await postReceipt({ ...firstMessage, messageId: 'SMunknown', callbackUrl }, 'delivered')).toBe(200)
  })

  test('is not in the API description', async () => {
    await start('sms')
    const document = await service.request('GET', '/v1/openapi.json')
    expect(document.text).not.toContain('/v1/callbacks')
  })
})

describe('channels', () => {
  const messageChannel = (text: SmsMessage | undefined) =>
    text?.to.startsWith('whatsapp:') ? 'whatsapp' : 'sms'

  test('are tried in the order of the routes, the next one at once if a number is not on the first', async () => {
    await start('whatsapp', 'sms')
    main.setHandler((call) => {
      if (!call.body.includes('whatsapp')) return main.createdResponse(main.acceptMessage(call))
      return Response.json({ code: 63024, message: 'not on WhatsApp' }, { status: 400 })
    })
    spare.refuseAll(400, 63024)
    const requestId = await send()
    expect(main.messages.map(messageChannel)).toEqual(['sms'])
    expect(await getRequest(requestId)).toMatchObject({ channel: 'sms', deliveryStatus: 'sent' })
  })

  test('named by the caller are the only ones', async () => {
    await start('whatsapp', 'sms')
    const requestId = await send({ channel: 'sms' })
    expect(main.messages.map(messageChannel)).toEqual(['sms'])
    expect(await getRequest(requestId)).toMatchObject({ channel: 'sms' })
  })

  test('change with a resend that names another one', async () => {
    await start('sms', 'whatsapp')
    const requestId = await send()
    service.clock.advance(30_000)
    await resend(requestId, { channel: 'whatsapp' })
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'whatsapp'])
    expect(await getRequest(requestId)).toMatchObject({ channel: 'whatsapp', deliveryStatus: 'sent' })
  })

  test('stay as they are after a resend through one without a route, which another can follow at once', async () => {
    await start('sms', 'whatsapp')
    const requestId = await send({ channel: 'sms' })
    const before = await getRequest(requestId)
    service.clock.advance(30_000)
    for (let count = 0; count < 4; count++)
      expect((await resend(requestId, { channel: 'telegram' })).error.reason).toBe('NO_ROUTE')
    expect(await getRequest(requestId)).toEqual(before)
    expect((await resend(requestId)).status).toBe(200)
  })

  test('change with a resend after a message that did not arrive, and not otherwise', async () => {
    await start('sms', 'whatsapp')
    const requestId = await send({ channel: 'sms' })
    service.clock.advance(30_000)
    await resend(requestId, { channel: 'sms' })
    await postReceipt(main.messages[1], 'undelivered', 30005)
    await sendDueMessages()
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'sms'])
    service.clock.advance(30_000)
    await resend(requestId)
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'sms', 'whatsapp'])
    expect(new Set(main.messages.map(({ code }) => code).filter((code) => code !== '')).size).toBe(1)
  })

  test('change with a resend once the route of the last message is gone', async () => {
    await start('sms')
    const requestId = await send()
    await service.services.messaging.reload({
      providers: [routeAndProvider('main', main.url)],
      routes: [{ channel: 'whatsapp', ...unrestricted, providers: ['main'] }],
    })
    service.clock.advance(30_000)
    expect((await resend(requestId)).status).toBe(200)
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'whatsapp'])
  })

  test('stay as they are with a resend of a text of the caller', async () => {
    await start('sms', 'whatsapp')
    const { appAuth, otp } = service.services
    const caller = await appAuth.findActive(application.id)
    const text = { phone, channel: 'sms', ownText: 'Your code is {{code}}' } as const
    const { requestId } = await otp.replace('camara', caller, text)
    await postReceipt(main.messages[0], 'undelivered', 30005)
    await sendDueMessages()
    service.clock.advance(30_000)
    expect((await resend(requestId)).status).toBe(200)
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'sms'])
  })

  test('change by themselves after a message that did not arrive, if the caller names none', async () => {
    await start('sms', 'whatsapp')
    const requestId = await send()
    await postReceipt(main.messages[0], 'undelivered', 30005)
    await sendDueMessages()
    expect(main.messages.map(messageChannel)).toEqual(['sms', 'whatsapp'])
    expect(await getRequest(requestId)).toMatchObject({ channel: 'whatsapp', deliveryStatus: 'sent' })
  })
})

test('a resend replaces a queued message', async () => {
  await start('sms')
  main.refuseAll(500, 0)
  spare.refuseAll(500, 0)
  const requestId = await send({ ttlSeconds: 600 })
  // Its next attempt would be due before the resend.
  service.clock.advance(30_000)
  main.acceptAll()
  await resend(requestId)
  await sendDueMessages()
  service.clock.advance(60_000)
  await sendDueMessages()
  expect(main.messages).toHaveLength(1)
})
