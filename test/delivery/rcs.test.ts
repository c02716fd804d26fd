import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { enabledChannels } from '../../src/delivery/kit/provider-kinds.ts'
import { infobip } from '../../src/delivery/providers/infobip.ts'
import { twilio } from '../../src/delivery/providers/twilio.ts'
import { vonageMessages } from '../../src/delivery/providers/vonage-messages.ts'
import type { Channel } from '../../src/domain/model/request.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { makeProvider, sendTo, startProviderServer } from '../helpers/provider-server.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { buildReceipt, createTwilioSettings, startGateway } from './gateway.ts'

const server = startProviderServer()
afterAll(server.stop)
const baseUrl = server.url
const accountSid = `AC${'0a'.repeat(16)}`

describe('a message over RCS', () => {
  test('goes to the rcs address at Twilio, so that Twilio sends nothing else (page on error 21664)', async () => {
    const settings = { accountSid, authToken: 't', from: '+15005550006', rcsFrom: 'rcs:acme_agent', baseUrl }
    const provider = makeProvider(twilio, settings)
    expect(enabledChannels(twilio, settings)).toEqual(['sms', 'rcs'])
    server.setResponse(201, { sid: 'SM1', status: 'queued' })
    expect(await sendTo(provider, { channel: 'rcs' })).toEqual({ kind: 'accepted', messageId: 'SM1' })
    expect(Object.fromEntries(new URLSearchParams(server.takeCall().body))).toMatchObject({
      To: 'rcs:+31612345678',
      From: 'rcs:acme_agent',
      Body: '482913 is your verification code. It is valid for 5 minutes.',
    })
  })

  test('is a text of channel rcs at Vonage (data set of vonage-node-sdk babd2d8c)', async () => {
    const settings = { apiKey: 'abcd1234', apiSecret: 's', from: 'Acme', rcsFrom: 'AcmeAgent', baseUrl }
    const provider = makeProvider(vonageMessages, settings)
    expect(enabledChannels(vonageMessages, settings)).toEqual(['sms', 'rcs'])
    server.setResponse(202, { message_uuid: 'm1' })
    await sendTo(provider, { channel: 'rcs' })
    expect(JSON.parse(server.takeCall().body)).toMatchObject({
      channel: 'rcs',
      message_type: 'text',
      from: 'AcmeAgent',
      to: '31612345678',
      ttl: 300,
    })
  })

  test('is one of the Messages API at Infobip (types of infobip-api-python-client 6.0.0)', async () => {
    const settings = { apiKey: 'k', from: 'Acme', rcsFrom: 'AcmeAgent', baseUrl }
    const provider = makeProvider(infobip, settings)
    expect(enabledChannels(infobip, settings)).toEqual(['sms', 'rcs'])
    server.setResponse(200, { messages: [{ messageId: '1', status: { groupId: 1, id: 26 } }] })
    expect(await sendTo(provider, { channel: 'rcs' })).toEqual({ kind: 'accepted', messageId: '1' })
    const { path, body } = server.takeCall()
    expect(path).toBe('/messages-api/1/messages')
    expect(JSON.parse(body)).toEqual({
      messages: [
        {
          channel: 'RCS',
          sender: 'AcmeAgent',
          destinations: [{ to: '31612345678' }],
          content: {
            body: { type: 'TEXT', text: '482913 is your verification code. It is valid for 5 minutes.' },
          },
          options: { validityPeriod: { amount: 300, timeUnit: 'SECONDS' } },
          webhooks: {
            delivery: { url: 'https://otp.example.com/v1/callbacks/main/k8s2' },
            contentType: 'application/json',
            callbackData: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
          },
        },
      ],
    })
  })

  test('needs its sender', () => {
    expect(enabledChannels(infobip, { apiKey: 'k', from: 'Acme', baseUrl })).toEqual(['sms'])
  })
})

describe('with routes for RCS and SMS', () => {
  let service: TestService
  let application: TestApplication
  const gateway = startGateway()
  afterEach(() => service.dispose())
  afterAll(() => gateway.stop())

  const unrestricted = { countries: [], prefixes: [], applications: [], providers: ['main'] }
  async function send(body: object = {}, channels: Channel[] = ['rcs', 'sms']) {
    const { values, ...rest } = createTwilioSettings('main', gateway.url)
    service = await createTestService({
      plans: unlimitedPlans,
      delivery: {
        providers: [{ ...rest, values: { ...values, rcsFrom: 'rcs:acme_agent', voiceFrom: '+15005550006' } }],
        routes: channels.map((channel) => ({ channel, ...unrestricted })),
      },
      messaging: { pollMs: 3_600_000 },
    })
    application = await service.createApplication(await service.createDeveloper())
    return service.request<{ channel: string; requestId: string }>('POST', '/v1/otp/send', {
      as: application,
      body: { phone: '+31612345678', ...body },
    })
  }

  test('a phone without RCS gets the code by SMS', async () => {
    gateway.setHandler((call) =>
      new URLSearchParams(call.body).get('To')?.startsWith('rcs:')
        ? Response.json({ code: 63003, message: 'no', status: 400 }, { status: 400 })
        : gateway.createdResponse(gateway.acceptMessage(call)),
    )
    expect((await send()).status).toBe(201)
    expect(gateway.messages.map(({ to }) => to)).toEqual(['+31612345678'])
  })

  test('a caller can name RCS', async () => {
    gateway.acceptAll()
    gateway.messages.splice(0)
    expect((await send({ channel: 'rcs' })).status).toBe(201)
    expect(gateway.messages.map(({ to }) => to)).toEqual(['rcs:+31612345678'])
  })

  test('a repeated receipt of RCS does not count for the SMS, whose response was lost', async () => {
    gateway.messages.splice(0)
    gateway.setHandler((call) => {
      const message = gateway.acceptMessage(call)
      return message.to.startsWith('rcs:')
        ? gateway.createdResponse(message)
        : new Response(null, { status: 504 })
    })
    const { requestId } = (await send({}, ['rcs', 'sms', 'voice'])).data
    const [message] = gateway.messages
    if (!message) throw new Error('there is no message')
    const { url, method, headers, body } = buildReceipt(message, 'undelivered', 63003)
    for (let times = 0; times < 3; times++) {
      const { pathname, search } = new URL(url)
      await service.request(method, pathname + search, { headers, body })
      await service.services.messaging.sendDue()
    }
    expect(gateway.messages.map(({ to }) => to)).toEqual(['rcs:+31612345678', '+31612345678'])
    const request = await service.request('GET', `/v1/otp/${requestId}`, { as: application })
    expect(request.data).toMatchObject({ channel: 'sms', deliveryStatus: 'unknown' })
  })
})
