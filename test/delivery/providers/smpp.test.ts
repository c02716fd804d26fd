import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import type { ConnectionState, Provider } from '../../../src/delivery/kit/provider.ts'
import { smpp } from '../../../src/delivery/providers/smpp.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'
import { createOutgoingMessage, longTimeout, sendTo } from '../../helpers/provider-server.ts'
import { longPause, smppValues, startSmppTest, type SmppTest } from '../../helpers/smpp-provider.ts'
import { startSmsc, type Smsc } from '../../helpers/smsc.ts'
import { hasOpenssl, makeCertificate } from '../../helpers/webhook-receiver.ts'

let smsc: Smsc
let makeProvider: SmppTest['makeProvider']
let stop: SmppTest['stop']
beforeEach(async () => {
  ;({ smsc, makeProvider, stop } = await startSmppTest())
})
afterEach(async () => {
  await stop()
  // A test may have replaced the SMSC.
  smsc.stop()
})

describe('a message over SMPP', () => {
  test('is submitted as the specification requires', async () => {
    const provider = makeProvider({ systemType: 'OTP' })
    const before = Date.now()
    expect(await sendTo(provider)).toEqual({ kind: 'accepted', messageId: 'id-1' })
    expect(smsc.binds[0]).toMatchObject({
      command: 'bind_transceiver',
      system_id: 'otpd',
      password: 'secret',
      system_type: 'OTP',
      interface_version: 0x34,
    })
    const [pdu] = smsc.submits
    expect(pdu).toMatchObject({
      service_type: '',
      source_addr_ton: 5,
      source_addr_npi: 0,
      source_addr: 'ACME',
      dest_addr_ton: 1,
      dest_addr_npi: 1,
      destination_addr: '31612345678',
      esm_class: 0,
      protocol_id: 0,
      registered_delivery: 1,
      data_coding: 0,
      short_message: { message: createOutgoingMessage().text },
    })
    const validUntil = pdu?.['validity_period']
    if (!(validUntil instanceof Date)) throw new Error('no validity period')
    const seconds = (validUntil.getTime() - before) / 1000
    expect(seconds).toBeGreaterThan(298)
    expect(seconds).toBeLessThan(310)
  })

  test('reuses the open connection', async () => {
    const provider = makeProvider()
    const all = await Promise.all([sendTo(provider), sendTo(provider), sendTo(provider)])
    expect(all.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted'])
    expect(smsc.binds).toHaveLength(1)
  })

  test.each([
    ['+31101234567', { source_addr: '31101234567', source_addr_ton: 1, source_addr_npi: 1 }],
    ['12345', { source_addr: '12345', source_addr_ton: 3, source_addr_npi: 0 }],
    ['Acme Bank', { source_addr: 'Acme Bank', source_addr_ton: 5, source_addr_npi: 0 }],
  ])('from %s has the matching type of number', async (from, expected) => {
    await sendTo(makeProvider({ from }))
    expect(smsc.submits[0]).toMatchObject(expected)
  })

  test('follows the settings', async () => {
    await sendTo(
      makeProvider({
        from: '12345',
        fromTon: '6',
        fromNpi: '9',
        toTon: '0',
        toNpi: '0',
        serviceType: 'VMA',
        dataCodingGsm: '1',
        bind: 'transmitter',
      }),
    )
    expect(smsc.binds[0]?.command).toBe('bind_transmitter')
    expect(smsc.submits[0]).toMatchObject({
      source_addr_ton: 6,
      source_addr_npi: 9,
      dest_addr_ton: 0,
      dest_addr_npi: 0,
      service_type: 'VMA',
      data_coding: 1,
    })
  })

  test('beyond the GSM alphabet is sent in UCS-2', async () => {
    await sendTo(makeProvider(), { text: 'Код 482913 😀' })
    expect(smsc.submits[0]).toMatchObject({ data_coding: 8, short_message: { message: 'Код 482913 😀' } })
  })

  test('that is too long is sent in parts, and requests a receipt for the last', async () => {
    const text = `${'a'.repeat(150)}${'b'.repeat(150)}${'c'.repeat(20)}`
    expect(await sendTo(makeProvider(), { text })).toEqual({ kind: 'accepted', messageId: 'id-3' })
    expect(smsc.submits.map((pdu) => pdu['esm_class'])).toEqual([0x40, 0x40, 0x40])
    expect(smsc.submits.map((pdu) => pdu['registered_delivery'])).toEqual([0, 0, 1])
    const texts = smsc.submits.map((pdu) => {
      const message = pdu['short_message']
      return typeof message === 'object' && message !== null && 'message' in message ? message.message : ''
    })
    expect(texts.join('')).toBe(text)
  })

  test('with a refused part is refused as a whole', async () => {
    smsc.onSubmit((session, pdu) => {
      const response = smsc.submits.length === 1 ? { message_id: 'first' } : { command_status: 0x58 }
      session.send(pdu.response(response))
    })
    expect(await sendTo(makeProvider(), { text: 'a'.repeat(400) })).toMatchObject({
      kind: 'refused',
      failure: { class: 'throttled' },
    })
    expect(smsc.submits).toHaveLength(2)
  })

  test('that gets no id is accepted all the same', async () => {
    smsc.onSubmit((session, pdu) => session.send(pdu.response({ message_id: '' })))
    expect(await sendTo(makeProvider())).toEqual({ kind: 'accepted', messageId: null })
  })

  test.each([
    [0x0b, 'invalid_number', 'number', true],
    [0x0a, 'sender_invalid', 'route', true],
    [0x58, 'throttled', 'route', false],
    [0x14, 'throttled', 'route', false],
    [0x08, 'provider_down', 'route', false],
    [0x01, 'content_blocked', 'route', true],
    [0x0f, 'auth_failed', 'account', true],
    [0x15, 'unknown', 'route', true],
    [0x45, 'unknown', 'route', false],
    [0x4ff, 'unknown', 'route', false],
  ])('answered with status %i is %s', async (status, failureClass, at, permanent) => {
    smsc.refuseSubmits(status)
    expect(await sendTo(makeProvider())).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({
        class: failureClass,
        at,
        permanent,
        providerCode: `0x${status.toString(16)}`,
      }),
    })
  })
})

describe('when the connection to the SMSC fails', () => {
  test('a refused connection is a refusal, and the next message does not wait for the backoff', async () => {
    const provider = makeProvider({ port: String(await findUnusedPort()) }, longPause)
    const down = {
      kind: 'refused',
      failure: { class: 'provider_down', permanent: false, at: 'route', providerCode: 'ECONNREFUSED' },
    }
    expect(await sendTo(provider)).toMatchObject(down)
    expect(await sendTo(provider)).toMatchObject(down)
  })

  test.each([
    ['password', 0x0e],
    ['system type', 0x53],
  ])('a wrong %s is the fault of the account, and is not tried with every message', async (_, status) => {
    smsc.onBind((session, pdu) => session.send(pdu.response({ command_status: status })))
    const provider = makeProvider({}, longPause)
    const refusal = { kind: 'refused', failure: { class: 'auth_failed', at: 'account' } }
    expect(await sendTo(provider)).toMatchObject(refusal)
    expect(await sendTo(provider)).toMatchObject(refusal)
    expect(smsc.binds).toHaveLength(1)
  })

  test('a refused bind is reported without a message, and so is its end', async () => {
    smsc.onBind((session, pdu) =>
      session.send(pdu.response({ command_status: smsc.binds.length < 3 ? 0x0e : 0 })),
    )
    const states: ConnectionState[] = []
    const { promise: connected, resolve } = Promise.withResolvers<void>()
    makeProvider().listen?.(
      () => {},
      (state) => {
        states.push(state)
        if (state === 'connected') resolve()
      },
    )
    await connected
    const failed = { failure: { class: 'auth_failed', at: 'account' }, retryMs: expect.any(Number) }
    expect(states).toMatchObject([failed, failed, 'connected'])
  })

  test('an SMSC that never answers a bind is a refusal', async () => {
    smsc.onBind(() => {})
    expect(await sendTo(makeProvider({}, { ...longPause, bindMs: 30 }))).toMatchObject({
      kind: 'refused',
      failure: { class: 'provider_down', providerCode: 'BIND_TIMEOUT' },
    })
  })

  test('an abort before the bind is a refusal: nothing was sent', async () => {
    smsc.onBind(() => {})
    const provider = makeProvider()
    const { promise, resolve } = Promise.withResolvers<void>()
    const controller = new AbortController()
    smsc.onBind(() => resolve())
    const sending = provider.send(createOutgoingMessage(), controller.signal)
    await promise
    controller.abort()
    expect(await sending).toMatchObject({ kind: 'refused', failure: { providerCode: 'ABORTED' } })
    expect(await provider.send(createOutgoingMessage(), controller.signal)).toMatchObject({ kind: 'refused' })
    expect(smsc.submits).toHaveLength(0)
  })

  test('an abort after the submit is uncertain', async () => {
    const controller = new AbortController()
    smsc.onSubmit(() => controller.abort())
    expect(await makeProvider().send(createOutgoingMessage(), controller.signal)).toMatchObject({
      kind: 'uncertain',
      failure: { providerCode: 'ABORTED' },
    })
  })

  test('a connection that ends before the answer is uncertain, for every message on it', async () => {
    smsc.onSubmit((session) => {
      if (smsc.submits.length === 3) session.destroy()
    })
    const provider = makeProvider()
    const outcomes = await Promise.all([sendTo(provider), sendTo(provider), sendTo(provider)])
    expect(outcomes.map(({ kind }) => kind)).toEqual(['uncertain', 'uncertain', 'uncertain'])
  })

  test('binds again after a lost connection, and after the SMSC was down', async () => {
    const provider = makeProvider()
    await sendTo(provider)
    smsc.session().destroy()
    await smsc.waitUntil(() => smsc.binds.length === 2)
    const { port } = smsc
    smsc.stop()
    smsc = await startSmsc({ port })
    await smsc.waitUntil(() => smsc.binds.length === 1 && smsc.sessions.size === 1)
    expect(await sendUntilTaken(provider)).toMatchObject({ kind: 'accepted' })
  })

  test('binds again after the SMSC unbinds', async () => {
    const provider = makeProvider()
    await sendTo(provider)
    smsc.session().unbind({})
    await smsc.waitUntil(() => smsc.binds.length === 2)
    expect(await sendUntilTaken(provider)).toMatchObject({ kind: 'accepted' })
  })

  test('sends keep-alives, and drops an SMSC that does not respond', async () => {
    // One second is the minimum of the setting; the response is awaited as long.
    await sendTo(makeProvider({ enquireLinkSeconds: '1' }))
    await smsc.waitUntil(() => smsc.enquireLinkCount() >= 1)
    expect(smsc.binds).toHaveLength(1)
    smsc.onEnquire(() => {})
    await smsc.waitUntil(() => smsc.binds.length === 2)
  })

  test('responds to the keep-alives of the SMSC', async () => {
    await sendTo(makeProvider())
    const { promise, resolve } = Promise.withResolvers<number>()
    smsc.session().enquire_link({}, (pdu) => resolve(pdu.command_status))
    expect(await promise).toBe(0)
  })

  test('bytes that are not a PDU end the connection, not the process', async () => {
    const provider = makeProvider()
    await sendTo(provider)
    smsc.session().socket.write(Buffer.alloc(64, 0xff))
    await smsc.waitUntil(() => smsc.binds.length === 2)
    expect(await sendUntilTaken(provider)).toMatchObject({ kind: 'accepted' })
  })

  test('unbinds when it is closed, and sends nothing any more', async () => {
    const provider = makeProvider()
    await sendTo(provider)
    await provider.close?.()
    expect(smsc.unbindCount()).toBe(1)
    expect(await sendTo(provider)).toMatchObject({ kind: 'refused' })
    expect(smsc.binds).toHaveLength(1)
  })

  /** The client sees its bind slightly later than the SMSC. */
  async function sendUntilTaken(provider: Provider) {
    const signal = longTimeout()
    for (;;) {
      const outcome = await provider.send(createOutgoingMessage(), signal)
      if (outcome.kind === 'accepted' || signal.aborted) return outcome
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
})

describe.if(hasOpenssl)('TLS', () => {
  test('accepts only a trusted certificate', async () => {
    const { key, cert } = makeCertificate('localhost')
    const secured = await startSmsc({ key, cert })
    const settings = { host: 'localhost', port: String(secured.port), tls: 'on' }
    expect(await sendTo(makeProvider({ ...settings, caCertificate: cert }))).toMatchObject({
      kind: 'accepted',
    })
    expect(await sendTo(makeProvider(settings, longPause))).toMatchObject({
      kind: 'refused',
      failure: { class: 'provider_down' },
    })
    const other = makeCertificate('sms.example.com')
    const wrong = await startSmsc(other)
    expect(
      await sendTo(
        makeProvider({ ...settings, port: String(wrong.port), caCertificate: other.cert }, longPause),
      ),
    ).toMatchObject({ kind: 'refused', failure: { class: 'provider_down' } })
    expect(wrong.binds).toHaveLength(0)
    secured.stop()
    wrong.stop()
  })
})

describe('settings', () => {
  test.each([
    ['port', { port: '0' }],
    ['port', { port: '65536' }],
    ['host', { host: 'smsc.example.com:2775/' }],
    ['systemId', { systemId: 'longer-than-15-characters' }],
    ['from', { from: 'longer than eleven' }],
    ['enquireLinkSeconds', { enquireLinkSeconds: '0' }],
    ['dataCodingGsm', { dataCodingGsm: '8' }],
    ['caCertificate', { caCertificate: 'no certificate' }],
  ])('%s of %j is refused', (name, changes) => {
    expect(findSettingFaults(smpp, { ...smppValues, port: '2775', ...changes })).toMatchObject([{ name }])
  })

  test('use TLS by default', () => {
    expect(smpp.fields['tls']?.default).toBe('on')
  })
})
