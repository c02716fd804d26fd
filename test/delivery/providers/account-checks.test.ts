import { afterAll, expect, test } from 'bun:test'
import { awsSms } from '../../../src/delivery/providers/aws-sms.ts'
import { awsSns } from '../../../src/delivery/providers/aws-sns.ts'
import { infobip } from '../../../src/delivery/providers/infobip.ts'
import { messagebird } from '../../../src/delivery/providers/messagebird.ts'
import { plivo } from '../../../src/delivery/providers/plivo.ts'
import { telnyx } from '../../../src/delivery/providers/telnyx.ts'
import { twilio } from '../../../src/delivery/providers/twilio.ts'
import { vonageMessages } from '../../../src/delivery/providers/vonage-messages.ts'
import { vonageSms } from '../../../src/delivery/providers/vonage-sms.ts'
import { whatsapp } from '../../../src/delivery/providers/whatsapp.ts'
import { longTimeout, makeProvider, startProviderServer } from '../../helpers/provider-server.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'

const server = startProviderServer()
afterAll(server.stop)

const accountSid = `AC${'0a'.repeat(16)}`
const vonage = { apiKey: 'abcd1234', apiSecret: 'secret', from: 'Acme' }
const aws = { region: 'eu-central-1', accessKeyId: 'AKIDEXAMPLE0123456', secretAccessKey: 'secret' }
const profile = '40017f8e-49c2-4b6a-9f0a-5d2c4d3e1b7a'
const tier = { AccountAttributes: [{ Name: 'ACCOUNT_TIER', Value: 'SANDBOX' }] }

const checks = [
  {
    kind: twilio,
    settings: { accountSid, authToken: 'secret', from: '+15005550006' },
    call: `GET /2010-04-01/Accounts/${accountSid}.json`,
    response: { friendly_name: 'Acme', status: 'active', type: 'Full' },
    facts: 'Account Acme, Type Full',
  },
  {
    kind: vonageSms,
    settings: vonage,
    call: 'GET /account/get-balance',
    response: { value: 10.28 },
    facts: 'Balance 10.28 EUR',
  },
  {
    kind: vonageMessages,
    settings: vonage,
    call: 'GET /account/get-balance',
    response: { value: 10 },
    facts: 'Balance 10 EUR',
  },
  {
    kind: infobip,
    settings: { apiKey: 'secret', from: 'Acme' },
    call: 'GET /account/1/balance',
    response: { balance: 47, currency: 'EUR' },
    facts: 'Balance 47 EUR',
  },
  {
    kind: telnyx,
    settings: { apiKey: 'secret', messagingProfileId: profile },
    call: `GET /v2/messaging_profiles/${profile}`,
    response: { data: { name: 'Codes' } },
    facts: 'Messaging profile Codes',
  },
  {
    kind: plivo,
    settings: { authId: 'MA0123456789ABCDEFGH', authToken: 'secret', from: '15005550006' },
    call: 'GET /v1/Account/MA0123456789ABCDEFGH/',
    response: { name: 'Acme', cash_credits: '92.71' },
    facts: 'Account Acme, Credit 92.71 USD',
  },
  {
    kind: messagebird,
    settings: { accessKey: 'secret', originator: 'Acme' },
    call: 'GET /balance',
    response: { payment: 'prepaid', type: 'credits', amount: 9 },
    facts: 'Balance 9 credits',
  },
  { kind: awsSms, settings: aws, call: 'POST /', response: tier, facts: 'Account tier SANDBOX' },
  { kind: awsSns, settings: aws, call: 'POST /', response: '<GetSMSAttributesResponse/>', facts: '' },
  {
    kind: whatsapp,
    settings: { phoneNumberId: '106540352242922', accessToken: 'secret', template: 'code', languages: 'en' },
    call: 'GET /v23.0/106540352242922?fields=verified_name,display_phone_number',
    response: { verified_name: 'Acme', display_phone_number: '+1 555-0100' },
    facts: 'Name that people see Acme, Number +1 555-0100',
  },
]

test.each(checks.map((check) => [check.kind.kind, check] as const))(
  '%s looks its account up, and says what is wrong with it',
  async (_, { kind, settings, call, response, facts }) => {
    const check = (baseUrl: string) =>
      makeProvider(kind, { ...settings, baseUrl }).checkAccount?.(longTimeout())
    server.setResponse(200, response)
    const ready = await check(server.url)
    const shown = ready?.kind === 'ready' ? ready.facts.map((fact) => fact.join(' ')).join(', ') : ready
    expect(shown).toBe(facts)
    const { method, path } = server.takeCall()
    expect(`${method} ${path}`).toBe(call)
    for (const [status, problem] of [
      [401, 'The provider refuses the credentials (HTTP 401).'],
      [500, 'The provider answers HTTP 500.'],
    ] as const) {
      server.setResponse(status, 'secret')
      const faulty = await check(server.url)
      expect(faulty).toMatchObject({ kind: 'faulty', problem })
      expect(JSON.stringify(faulty)).not.toContain('secret')
      server.takeCall()
    }
    expect(await check(`http://127.0.0.1:${await findUnusedPort()}`)).toMatchObject({
      problem: 'The provider cannot be reached (connection refused, ECONNREFUSED).',
    })
  },
)
