import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { telnyxVerify } from '../../../src/delivery/providers/telnyx-verify.ts'
import { describeCarrier } from '../../helpers/carriers/carrier-contract.ts'
import { startTelnyxVerify, verifyProfileId } from '../../helpers/carriers/telnyx-verify-server.ts'
import { signAsTelnyx } from '../../helpers/carriers/signed-callbacks.ts'
import { testClock } from '../../helpers/clock.ts'
import { startProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  createOutcomeReport,
  longTimeout,
  makeProvider,
  readCallback,
  sendTo,
} from '../../helpers/provider-server.ts'

const server = startTelnyxVerify()
afterAll(() => server.stop())
beforeEach(() => server.setMode('accept'))

const keys = generateKeyPairSync('ed25519')
const publicKey = Buffer.from(keys.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString(
  'base64',
)
const settings = { apiKey: 'KEY123', verifyProfileId, channels: 'sms, voice, whatsapp', publicKey }
const provider = makeProvider(telnyxVerify, { ...settings, baseUrl: server.url })
const send = async () => {
  const outcome = await sendTo(provider)
  return outcome.kind === 'accepted' ? (outcome.messageId ?? '') : ''
}

test.each([400, 429])('a spend limit with HTTP %i is taken for missing credit', async (status) => {
  const api = startProviderApi(telnyxVerify, settings)
  const detail = 'The daily spend limit configured on this profile has been reached'
  api.setResponse(status, { errors: [{ code: '40333', title: 'Spend limit reached', detail }] })
  expect(await api.send()).toMatchObject({ kind: 'refused', failure: { class: 'no_credit' } })
  await api.stop()
})

describe('a message', () => {
  test.each([
    ['sms', 'sms'],
    ['voice', 'call'],
    ['whatsapp', 'whatsapp'],
  ] as const)(
    'over %s is posted as the API has it, with the own code and its lifetime',
    async (channel, path) => {
      expect(await sendTo(provider, { channel })).toMatchObject({ kind: 'accepted' })
      const call = server.calls.at(-1)
      expect([call?.method, call?.path]).toEqual(['POST', `/v2/verifications/${path}`])
      expect(JSON.parse(call?.body ?? '')).toEqual({
        phone_number: '+31612345678',
        verify_profile_id: verifyProfileId,
        custom_code: '482913',
        timeout_secs: 300,
      })
    },
  )

  test('is a verification of its own each time', async () => {
    expect(await send()).not.toBe(await send())
  })
})

describe('the outcome', () => {
  test.each([
    ['verified', 'accepted'],
    ['expired', 'rejected'],
    ['canceled', 'rejected'],
    ['failed', 'rejected'],
  ] as const)('%s is reported as %s, once', async (outcome, status) => {
    const report = createOutcomeReport({ messageId: await send(), outcome })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
    expect(server.outcomes.get(report.messageId)).toBe(status)
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({
      kind: 'rejected',
      providerCode: '10005',
    })
  })

  test('is reported again if the credentials are wrong', async () => {
    server.setMode('unauthorized')
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toEqual({
      kind: 'retry',
      providerCode: '10009',
    })
  })
})

test('the account check shows what the Verify profile allows', async () => {
  expect(await provider.checkAccount?.(longTimeout())).toEqual({
    kind: 'ready',
    facts: [
      ['Name that people see', 'Acme Shop'],
      ['Countries', 'NL, DE'],
      ['Spend limit', '25 USD a day'],
    ],
  })
})

describe('a receipt', () => {
  const nowSeconds = Math.floor(testClock().now() / 1000)
  const callback = (type: string, status: string, timestamp = String(nowSeconds)) => {
    // The example of Telnyx's page on webhooks.
    const payload = { id: 'v1', custom_code: '25565', delivery_status: status, type: 'sms' }
    const body = JSON.stringify({ data: { event_type: type, payload, record_type: 'event' } })
    return createCallback(signAsTelnyx(body, keys.privateKey, timestamp))
  }

  test.each([
    ['verify.sent', 'sent', 'sent'],
    ['verify.delivered', 'delivered', 'delivered'],
    ['verify.failed', 'delivery_failed', 'undelivered'],
    ['verify.failed', 'sending_failed', 'undelivered'],
    ['verify.failed', 'delivery_unconfirmed', 'sent'],
  ])('of %s, %s is %s', async (type, deliveryStatus, status) => {
    expect(await readCallback(provider, callback(type, deliveryStatus))).toMatchObject({
      kind: 'receipts',
      receipts: [{ messageId: 'v1', status }],
    })
  })

  test('is forged with another body or an old timestamp, and absent without the key', async () => {
    const { headers } = callback('verify.sent', 'sent')
    expect(await readCallback(provider, createCallback({ headers, body: '{}' }))).toEqual({ kind: 'forged' })
    const old = callback('verify.sent', 'sent', String(nowSeconds - 301))
    expect(await readCallback(provider, old)).toEqual({ kind: 'forged' })
    const { publicKey: _, ...withoutKey } = settings
    expect(makeProvider(telnyxVerify, withoutKey).readCallback).toBeUndefined()
  })
})

describeCarrier({
  kind: 'telnyx-verify',
  server,
  settings,
  failures: { refuse: 'geo_blocked', throttle: 'throttled', unauthorized: 'auth_failed' },
  blocksAtOnce: true,
})
describeHttpFaults((baseUrl) => makeProvider(telnyxVerify, { ...settings, baseUrl }))
