import { afterAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { enabledChannels, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { twilio } from '../../../src/delivery/providers/twilio.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  makeProvider,
  readCallback,
  sendTo,
  startProviderServer,
} from '../../helpers/provider-server.ts'
import { withVoiceChannel } from '../../helpers/provider-voice.ts'

const server = startProviderServer()
afterAll(server.stop)

const accountSid = `AC${'0a'.repeat(16)}`
const sms = { accountSid, authToken: 'token-of-the-account', from: '+15005550006', baseUrl: server.url }
const settings = { ...sms, voiceFrom: '+15005550001' }
const provider = withVoiceChannel(makeProvider(twilio, settings))
const parseForm = (body: string) => Object.fromEntries(new URLSearchParams(body))

test('voice needs a number to call from', () => {
  expect(enabledChannels(twilio, sms)).toEqual(['sms'])
  expect(enabledChannels(twilio, settings)).toEqual(['sms', 'voice'])
  expect(twilio.channels).toContain('voice')
  expect(findSettingFaults(twilio, { ...sms, voiceFrom: 'Acme' })).toMatchObject([{ name: 'voiceFrom' }])
})

describe('a call', () => {
  test('is posted as Twilio documents it, with its speech', async () => {
    server.setResponse(201, { sid: 'CA1', status: 'queued' })
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'CA1' })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', `/2010-04-01/Accounts/${accountSid}/Calls.json`])
    expect(atob(call.headers['authorization']?.replace('Basic ', '') ?? '')).toBe(
      `${accountSid}:token-of-the-account`,
    )
    expect(parseForm(call.body)).toEqual({
      To: '+31612345678',
      From: '+15005550001',
      Twiml:
        '<Response>' +
        '<Pause length="1"/><Say voice="Polly.Joanna" language="en-US">' +
        '4, 8, 2, 9, 1, 3 is your Acme verification code.</Say>' +
        '<Pause length="1"/><Say voice="Polly.Joanna" language="en-US">4, 8, 2, 9, 1, 3.</Say>' +
        '</Response>',
      Timeout: '25',
      StatusCallback: 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('speaks the language of the message, or English if Twilio lacks it, and escapes the name', async () => {
    const fetchTwiml = async (locale: string, applicationName = 'Acme') => {
      server.setResponse(201, { sid: 'CA1' })
      await sendTo(provider, { locale, applicationName, validitySeconds: 9 })
      const form = parseForm(server.takeCall().body)
      expect(form['Timeout']).toBe('9')
      return form['Twiml']
    }
    expect(await fetchTwiml('fr')).toContain('<Say voice="Polly.Lea" language="fr-FR">')
    expect(await fetchTwiml('fa')).toContain('is your Acme verification code')
    expect(await fetchTwiml('en', "A&B 'n")).toContain('your A&#38;B &#39;n verification')
  })
})

describe('an error', () => {
  test.each([
    [401, 20003, 'auth_failed', 'account', true],
    [400, 10001, 'auth_failed', 'account', true],
    [400, 10004, 'throttled', 'route', false],
    [400, 13224, 'invalid_number', 'number', true],
    [400, 13227, 'geo_blocked', 'route', true],
    [400, 21210, 'sender_invalid', 'route', true],
    [400, 21214, 'unreachable', 'number', true],
    [400, 21215, 'geo_blocked', 'route', true],
    [400, 21217, 'invalid_number', 'number', true],
    [400, 21219, 'sender_invalid', 'route', true],
    [500, 20500, 'provider_down', 'route', false],
    [400, 99999, 'unknown', 'route', false],
  ])('HTTP %i with code %i is %s of the %s', async (status, code, failureClass, at, permanent) => {
    server.setResponse(status, { code, message: 'words', status })
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: String(code) }),
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => withVoiceChannel(makeProvider(twilio, { ...settings, baseUrl })))

describe('a receipt', () => {
  const url = 'https://otp.example.com/v1/callbacks/main/k8s2?request=otp_1'
  const ended = (fields: Record<string, string>, token = settings.authToken) => {
    const form = { CallSid: 'CA1', AccountSid: accountSid, Direction: 'outbound-api', ...fields }
    const text = url + Object.entries(form).toSorted().flat().join('')
    const signature = createHmac('sha1', token).update(text).digest('base64')
    const body = new URLSearchParams(form).toString()
    return createCallback({ url, body, headers: { 'x-twilio-signature': signature } })
  }
  const ids = { messageId: 'CA1', requestId: 'otp_1' }

  test('of a completed call is delivered', async () => {
    expect(await readCallback(provider, ended({ CallStatus: 'completed', CallDuration: '21' }))).toEqual({
      kind: 'receipts',
      receipts: [{ ...ids, status: 'delivered', failure: null }],
    })
  })

  test.each([
    [{ CallStatus: 'busy' }, 'unreachable', 'number', false, 'busy'],
    [{ CallStatus: 'no-answer' }, 'unreachable', 'number', false, 'no-answer'],
    [{ CallStatus: 'canceled' }, 'unknown', 'route', false, 'canceled'],
    [{ CallStatus: 'failed' }, 'unreachable', 'number', false, 'failed'],
    [{ CallStatus: 'failed', SipResponseCode: '404' }, 'unreachable', 'number', true, '404'],
    [{ CallStatus: 'failed', SipResponseCode: '484' }, 'invalid_number', 'number', true, '484'],
    [{ CallStatus: 'failed', SipResponseCode: '403' }, 'unreachable', 'route', false, '403'],
    [{ CallStatus: 'failed', SipResponseCode: '503' }, 'provider_down', 'route', false, '503'],
    [{ CallStatus: 'failed', SipResponseCode: '480' }, 'unreachable', 'number', false, '480'],
    [{ CallStatus: 'failed', ErrorCode: '13227' }, 'geo_blocked', 'route', true, '13227'],
  ])('%j says %s of the %s', async (fields, failureClass, at, permanent, providerCode) => {
    expect(await readCallback(provider, ended(fields))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          ...ids,
          status: 'undelivered',
          failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode }),
        },
      ],
    })
  })

  test.each(['queued', 'ringing', 'in-progress', 'some-day-new'])(
    'of %s reports nothing',
    async (CallStatus) => {
      expect(await readCallback(provider, ended({ CallStatus }))).toEqual({ kind: 'receipts', receipts: [] })
    },
  )

  test('is forged with another token or another status', async () => {
    const genuineCallback = ended({ CallStatus: 'busy' })
    const forgeries = [
      ended({ CallStatus: 'busy' }, 'another token'),
      { ...genuineCallback, body: genuineCallback.body.replace('busy', 'completed') },
      { ...genuineCallback, headers: {} },
    ]
    for (const one of forgeries) expect(await readCallback(provider, one)).toEqual({ kind: 'forged' })
  })
})
