import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { enabledChannels } from '../../../src/delivery/kit/provider-kinds.ts'
import { vonageVerify } from '../../../src/delivery/providers/vonage-verify.ts'
import { describeCarrier } from '../../helpers/carriers/carrier-contract.ts'
import { startVonageVerify } from '../../helpers/carriers/vonage-verify-server.ts'
import { testClock } from '../../helpers/clock.ts'
import { signAsVonage } from '../../helpers/carriers/signed-callbacks.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import {
  createCallback,
  createOutcomeReport,
  longTimeout,
  makeProvider,
  readCallback,
  sendTo,
} from '../../helpers/provider-server.ts'

const server = startVonageVerify()
afterAll(() => server.stop())
beforeEach(() => {
  server.setMode('accept')
  server.requests.clear()
  server.rules.lockCancel = false
})

const settings = {
  apiKey: 'abcd1234',
  apiSecret: 'secret',
  brand: 'Acme',
  whatsappFrom: '447700900000',
  channels: 'sms, voice, whatsapp',
  signatureSecret: 'signature-secret',
}
const provider = makeProvider(vonageVerify, { ...settings, baseUrl: server.url })
const lastBody = () => JSON.parse(server.calls.at(-1)?.body ?? '')
const send = async (code = '482913') => {
  const outcome = await sendTo(provider, { code })
  return outcome.kind === 'accepted' ? (outcome.messageId ?? '') : ''
}

describe('a message', () => {
  test('is posted as the API has it, with the own code, language, lifetime and reference', async () => {
    expect(await sendTo(provider, { locale: 'de' })).toMatchObject({ kind: 'accepted' })
    expect([server.calls.at(-1)?.method, server.calls.at(-1)?.path]).toEqual(['POST', '/v2/verify'])
    expect(lastBody()).toEqual({
      brand: 'Acme',
      code: '482913',
      locale: 'de-de',
      channel_timeout: 300,
      client_ref: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
      workflow: [{ channel: 'sms', to: '31612345678' }],
    })
  })

  test.each([
    ['pt', 'pt-br'],
    ['en-GB', 'en-gb'],
    ['nl', 'nl-nl'],
    ['zh-CN', 'zh-cn'],
    ['ja', undefined],
  ])('in %s is of locale %s', async (locale, expected) => {
    await sendTo(provider, { locale })
    expect(lastBody().locale).toBe(expected)
  })

  test('over WhatsApp and RCS needs their senders', async () => {
    await sendTo(provider, { channel: 'whatsapp' })
    expect(lastBody().workflow).toEqual([{ channel: 'whatsapp', to: '31612345678', from: '447700900000' }])
    const rcsSettings = { ...settings, channels: 'sms, rcs', rcsFrom: 'Acme', baseUrl: server.url }
    const withRcs = makeProvider(vonageVerify, rcsSettings)
    expect(enabledChannels(vonageVerify, rcsSettings)).toEqual(['sms', 'rcs'])
    await sendTo(withRcs, { channel: 'rcs' })
    expect(lastBody().workflow).toEqual([{ channel: 'rcs', to: '31612345678', from: 'Acme' }])
    const { whatsappFrom: _, ...others } = settings
    expect(enabledChannels(vonageVerify, others)).toEqual(['sms', 'voice'])
  })

  test.each([['482913'], ['117206']])(
    'that is sent again, with code %s, ends the pending one',
    async (code) => {
      const first = await send()
      const second = await send(code)
      expect(second).not.toBe(first)
      expect(server.requests.get(first)?.status).toBe('canceled')
      expect(server.requests.get(second)).toEqual({ to: '31612345678', code, status: 'pending' })
    },
  )

  test('is refused for this number only while the pending one cannot be canceled', async () => {
    await send()
    server.rules.lockCancel = true
    expect(await sendTo(provider)).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled', permanent: false, at: 'number', providerCode: 'conflict' },
    })
  })

  test('to an invalid number is refused for the number', async () => {
    expect(await sendTo(provider, { to: '+12' })).toMatchObject({
      failure: { class: 'invalid_number', at: 'number' },
    })
  })
})

describe('the outcome', () => {
  test('verified is a check of the code', async () => {
    const report = createOutcomeReport({ messageId: await send() })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
    expect(server.requests.get(report.messageId)?.status).toBe('completed')
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({
      kind: 'rejected',
      providerCode: 'not-found',
    })
  })

  test.each([['expired'], ['canceled'], ['failed']] as const)('%s cancels the request', async (outcome) => {
    const report = createOutcomeReport({ messageId: await send(), outcome })
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
    expect(server.requests.get(report.messageId)?.status).toBe('canceled')
    // It has ended there already, as when a later code for the phone took its place.
    expect(await provider.reportOutcome?.(report, longTimeout())).toEqual({ kind: 'done' })
  })

  test('is reported again if the credentials are wrong', async () => {
    server.setMode('unauthorized')
    expect(await provider.reportOutcome?.(createOutcomeReport(), longTimeout())).toEqual({
      kind: 'retry',
      providerCode: 'unauthorized',
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

describe('a status webhook', () => {
  const callback = (status: string, secret = 'signature-secret') => {
    // The example of Vonage's page on its anti-fraud system.
    const body = JSON.stringify({
      request_id: 'r1',
      client_ref: 'otp_1',
      status,
      type: 'summary',
      workflow: [],
    })
    return createCallback(signAsVonage(body, secret, Math.floor(testClock().now() / 1000)))
  }

  test('that the request was blocked is a receipt of that class, so that no other provider sends', async () => {
    expect(await readCallback(provider, callback('blocked'))).toEqual({
      kind: 'receipts',
      receipts: [
        {
          messageId: 'r1',
          requestId: 'otp_1',
          status: 'undelivered',
          failure: { class: 'blocked_by_carrier', permanent: true, at: 'message', providerCode: 'blocked' },
        },
      ],
    })
  })

  test('of failed is undelivered, and of completed and expired says nothing', async () => {
    expect(await readCallback(provider, callback('failed'))).toMatchObject({
      receipts: [{ status: 'undelivered', failure: { class: 'unreachable' } }],
    })
    for (const status of ['completed', 'expired'])
      expect(await readCallback(provider, callback(status))).toEqual({ kind: 'receipts', receipts: [] })
  })

  test('is forged with another secret', async () => {
    expect(await readCallback(provider, callback('blocked', 'other'))).toEqual({ kind: 'forged' })
  })
})

describeCarrier({
  kind: 'vonage-verify',
  server,
  settings,
  failures: { refuse: 'no_credit', throttle: 'throttled', unauthorized: 'auth_failed' },
  blocksAtOnce: false,
})
describeHttpFaults((baseUrl) => makeProvider(vonageVerify, { ...settings, baseUrl }))
