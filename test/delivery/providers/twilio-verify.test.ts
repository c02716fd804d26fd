import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { twilioVerify } from '../../../src/delivery/providers/twilio-verify.ts'
import { describeCarrier } from '../../helpers/carriers/carrier-contract.ts'
import { startTwilioVerify, verifyServiceSid } from '../../helpers/carriers/twilio-verify-server.ts'
import { startProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { createOutcomeReport, longTimeout, makeProvider, sendTo } from '../../helpers/provider-server.ts'

const server = startTwilioVerify()
afterAll(() => server.stop())
beforeEach(() => {
  server.setMode('accept')
  server.verifications.clear()
})

const settings = {
  accountSid: `AC${'0a'.repeat(16)}`,
  authToken: 'token-of-the-account',
  serviceSid: verifyServiceSid,
  channels: 'sms, voice, whatsapp',
}
const provider = makeProvider(twilioVerify, { ...settings, baseUrl: server.url })
const lastForm = () => Object.fromEntries(new URLSearchParams(server.calls.at(-1)?.body))
const send = async (code = '482913') => {
  const outcome = await sendTo(provider, { code })
  return outcome.kind === 'accepted' ? (outcome.messageId ?? '') : ''
}

test.each([
  [403, 60410, 'blocked_by_carrier'],
  [403, 60412, 'blocked_by_carrier'],
  [400, 60436, 'invalid_number'],
])('HTTP %i with code %i is %s', async (status, code, failureClass) => {
  const api = startProviderApi(twilioVerify, settings)
  api.setResponse(status, { code })
  expect(await api.send()).toMatchObject({ kind: 'refused', failure: { class: failureClass } })
  await api.stop()
})

describe('a message', () => {
  test('is posted as the OpenAPI document has it, with the own code and the language', async () => {
    expect(await sendTo(provider, { locale: 'pt-BR' })).toEqual({
      kind: 'accepted',
      messageId: expect.stringMatching(/^VE[0-9a-f]{32}$/),
    })
    const call = server.calls.at(-1)
    expect([call?.method, call?.path]).toEqual(['POST', `/v2/Services/${verifyServiceSid}/Verifications`])
    expect(call?.headers['authorization']).toBe(
      `Basic ${btoa(`${settings.accountSid}:token-of-the-account`)}`,
    )
    expect(lastForm()).toEqual({
      To: '+31612345678',
      Channel: 'sms',
      CustomCode: '482913',
      Locale: 'pt-BR',
      Tags: '{"request":"otp_01jd3m2k5xe8r9s0t1v2w3x4y5"}',
    })
  })

  test.each([
    ['voice', 'call', true],
    ['whatsapp', 'whatsapp', false],
  ] as const)(
    'over %s is of channel %s; templates are for SMS and calls',
    async (channel, name, hasTemplate) => {
      const templateSid = `HJ${'0c'.repeat(16)}`
      const withTemplate = makeProvider(twilioVerify, { ...settings, templateSid, baseUrl: server.url })
      await sendTo(withTemplate, { channel })
      expect(lastForm()['Channel']).toBe(name)
      expect(lastForm()['TemplateSid']).toBe(hasTemplate ? templateSid : undefined)
    },
  )

  test('in a language that Twilio refuses is sent again without one', async () => {
    const calls = server.calls.length
    expect(await sendTo(provider, { locale: 'sw' })).toMatchObject({ kind: 'accepted' })
    expect(server.calls.length - calls).toBe(2)
    expect(lastForm()['Locale']).toBeUndefined()
    expect(lastForm()['CustomCode']).toBe('482913')
  })

  test('that is sent again, with the same code or another, belongs to the pending verification', async () => {
    const first = await send()
    expect(await send()).toBe(first)
    expect(await send('117206')).toBe(first)
    expect(server.messages.slice(-3).map(({ code }) => code)).toEqual(['482913', '482913', '117206'])
  })

  test('after five for one pending verification is refused for this number only', async () => {
    for (let count = 0; count < 5; count++) await send()
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled', permanent: false, at: 'number', providerCode: '60203' },
    })
  })

  test('to what is no phone number is refused for the number', async () => {
    expect(await sendTo(provider, { to: '+0612345678' })).toMatchObject({
      failure: { class: 'invalid_number', at: 'number', providerCode: '60200' },
    })
  })

  test('of a Service without custom codes is refused for the account', async () => {
    server.service.custom_code_enabled = false
    expect(await sendTo(provider)).toMatchObject({
      failure: { class: 'auth_failed', at: 'account', providerCode: '60204' },
    })
    server.service.custom_code_enabled = true
  })
})

describe('the outcome', () => {
  test.each([
    ['verified', 'approved'],
    ['expired', 'canceled'],
    ['canceled', 'canceled'],
    ['failed', 'canceled'],
  ] as const)('%s ends the verification as %s', async (outcome, status) => {
    const messageId = await send()
    const report = createOutcomeReport({ messageId, outcome })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
    expect(server.verifications.get(messageId)?.status).toBe(status)
    // A crash may repeat the report; Twilio has ended the verification by then.
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual(
      outcome === 'verified' ? { kind: 'rejected', providerCode: '20404' } : { kind: 'done' },
    )
  })

  test('makes the next message a verification of its own', async () => {
    const messageId = await send()
    await provider.reportOutcome?.(createOutcomeReport({ messageId, outcome: 'canceled' }), longTimeout())
    expect(await send('117206')).not.toBe(messageId)
  })

  test('is reported again if the credentials are wrong', async () => {
    server.setMode('unauthorized')
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toEqual({
      kind: 'retry',
      providerCode: '20003',
    })
  })
})

describe('the account check', () => {
  test('says that the Service takes custom codes, and sends nothing', async () => {
    const before = server.messages.length
    expect(await provider.checkAccount?.(longTimeout())).toEqual({
      kind: 'ready',
      facts: [['Name that people see', 'Acme']],
    })
    expect(server.messages).toHaveLength(before)
    server.service.custom_code_enabled = false
    expect(await provider.checkAccount?.(longTimeout())).toMatchObject({
      problem: 'The Verify Service does not take custom codes.',
    })
    server.service.custom_code_enabled = true
  })
})

test.each([
  [{ serviceSid: `VA${'0'.repeat(31)}` }, 'serviceSid does not look right'],
  [{ apiKeySid: `SK${'0'.repeat(32)}` }, 'authToken conflicts with apiKeySid'],
  [{ templateSid: 'my template' }, 'templateSid does not look right'],
  [{ channels: 'telegram' }, 'channels does not look right'],
])('settings with %j are faulty: %s', (changes, fault) => {
  const [first] = findSettingFaults(twilioVerify, { ...settings, ...changes })
  expect(`${first?.name} ${first?.fault}`).toBe(fault)
})

describeCarrier({
  kind: 'twilio-verify',
  server,
  settings,
  failures: { refuse: 'geo_blocked', throttle: 'throttled', unauthorized: 'auth_failed' },
  blocksAtOnce: true,
})
describeHttpFaults((baseUrl) => makeProvider(twilioVerify, { ...settings, baseUrl }))
