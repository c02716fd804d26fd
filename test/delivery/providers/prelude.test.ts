import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { prelude } from '../../../src/delivery/providers/prelude.ts'
import { describeCarrier } from '../../helpers/carriers/carrier-contract.ts'
import { startPrelude } from '../../helpers/carriers/prelude-server.ts'
import { signAsPrelude } from '../../helpers/carriers/signed-callbacks.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  createOutcomeReport,
  longTimeout,
  makeProvider,
  readCallback,
  sendTo,
} from '../../helpers/provider-server.ts'

const server = startPrelude()
afterAll(() => server.stop())
beforeEach(() => {
  server.setMode('accept')
  server.pending.clear()
})

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const webhookPublicKey = keys.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const settings = { apiToken: 'sk_1', channels: 'sms, whatsapp, voice', webhookPublicKey }
const provider = makeProvider(prelude, { ...settings, baseUrl: server.url })
const lastBody = () => JSON.parse(server.calls.at(-1)?.body ?? '')

describe('a message', () => {
  test('is posted as the API has it, with the own code, language and reference', async () => {
    const outcome = await sendTo(provider, { locale: 'fr' })
    expect(outcome).toEqual({ kind: 'accepted', messageId: 'vrf_0', via: 'sms' })
    expect(server.calls.at(-1)?.path).toBe('/v2/verification')
    expect(lastBody()).toEqual({
      target: { type: 'phone_number', value: '+31612345678' },
      options: {
        custom_code: '482913',
        locale: 'fr',
        method: 'message',
        preferred_channel: 'sms',
        callback_url: 'https://otp.example.com/v1/callbacks/main/k8s2',
      },
      metadata: { correlation_id: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5' },
    })
  })

  test('over voice is a call', async () => {
    await sendTo(provider, { channel: 'voice' })
    expect(lastBody().options).toMatchObject({ method: 'voice' })
    expect(lastBody().options.preferred_channel).toBeUndefined()
  })

  test('that is sent again is a retry of the pending verification', async () => {
    const first = await sendTo(provider)
    expect(await sendTo(provider)).toEqual(first)
    expect(await sendTo(provider, { code: '117206' })).toEqual(first)
    expect(server.messages.slice(-2).map(({ code }) => code)).toEqual(['482913', '117206'])
  })

  test.each([
    ['suspicious', 'blocked_by_carrier', 'message'],
    ['in_block_list', 'blocked_by_carrier', 'message'],
    ['repeated_attempts', 'blocked_by_carrier', 'message'],
    ['invalid_phone_line', 'invalid_number', 'number'],
    ['invalid_phone_number', 'invalid_number', 'number'],
  ])('that is blocked as %s is %s of the %s', async (reason, failureClass, at) => {
    server.setMode('block')
    server.block.reason = reason
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, at, permanent: true, providerCode: reason },
    })
    server.block.reason = 'suspicious'
  })

  test('of an account without custom codes is refused for the account', async () => {
    server.account.hasCustomCodes = false
    expect(await sendTo(provider)).toMatchObject({
      failure: { class: 'auth_failed', at: 'account', providerCode: 'custom_code_not_allowed' },
    })
    server.account.hasCustomCodes = true
  })
})

describe('the outcome', () => {
  test('verified is a check of the code, which Prelude takes once', async () => {
    await sendTo(provider)
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toEqual({ kind: 'done' })
    expect(lastBody()).toEqual({ target: { type: 'phone_number', value: '+31612345678' }, code: '482913' })
    expect(server.pending.size).toBe(0)
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toEqual({
      kind: 'rejected',
      providerCode: 'expired_or_not_found',
    })
  })

  test.each([['expired'], ['canceled'], ['failed']] as const)('%s makes no call', async (outcome) => {
    const before = server.calls.length
    expect(await provider.reportOutcome?.(createOutcomeReport({ outcome }), longTimeout())).toEqual({
      kind: 'done',
    })
    expect(server.calls).toHaveLength(before)
  })

  test('is reported again if the credentials are wrong', async () => {
    server.setMode('unauthorized')
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toMatchObject({
      kind: 'retry',
    })
  })
})

test('the account check sends nothing', async () => {
  const before = server.messages.length
  expect(await provider.checkAccount?.(longTimeout())).toMatchObject({ kind: 'ready' })
  server.setMode('unauthorized')
  expect(await provider.checkAccount?.(longTimeout())).toMatchObject({ kind: 'faulty' })
  expect(server.messages).toHaveLength(before)
})

describe('a receipt', () => {
  // The example of Prelude's page on webhooks.
  const eventBody = (type: string, status: string) =>
    JSON.stringify({
      id: 'evt_1',
      type,
      payload: {
        status,
        metadata: { correlation_id: 'otp_1' },
        price: { amount: 0.03, currency: 'EUR' },
        verification_id: 'vrf_1',
      },
    })
  const callback = (body: string, signedBody = body) =>
    createCallback({ ...signAsPrelude(signedBody, keys.privateKey), body })

  test.each([
    ['in_transit', 'sent'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
  ] as const)('of %s is %s', async (deliveryStatus, status) => {
    const event = eventBody('verify.delivery_status', deliveryStatus)
    expect(await readCallback(provider, callback(event))).toEqual({
      kind: 'receipts',
      receipts: [{ messageId: 'vrf_1', requestId: 'otp_1', status, failure: null }],
    })
  })

  test('of undeliverable says nothing, because Prelude tries its other routes', async () => {
    const event = eventBody('verify.delivery_status', 'undeliverable')
    expect(await readCallback(provider, callback(event))).toEqual({ kind: 'receipts', receipts: [] })
  })

  test('of other events says nothing, and with another body it is forged', async () => {
    const event = eventBody('verify.authentication', 'x')
    expect(await readCallback(provider, callback(event))).toEqual({ kind: 'receipts', receipts: [] })
    expect(await readCallback(provider, callback(event, '{}'))).toEqual({ kind: 'forged' })
    expect(await readCallback(provider, createCallback({ body: event }))).toEqual({ kind: 'forged' })
  })
})

describeCarrier({
  kind: 'prelude',
  server,
  settings,
  failures: { refuse: 'geo_blocked', throttle: 'throttled', unauthorized: 'auth_failed' },
  blocksAtOnce: true,
})
test('a webhook key that is damaged is a faulty setting', () => {
  const webhookPublicKey = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'
  expect(findSettingFaults(prelude, { ...settings, webhookPublicKey })).toMatchObject([
    { name: 'webhookPublicKey', fault: 'does not look right' },
  ])
})

describeHttpFaults((baseUrl) => makeProvider(prelude, { ...settings, baseUrl }))
