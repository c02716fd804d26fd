import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Provider, Receipt } from '../../../src/delivery/kit/provider.ts'
import { sendTo } from '../../helpers/provider-server.ts'
import { startSmppTest, type SmppTest } from '../../helpers/smpp-provider.ts'
import type { Smsc } from '../../helpers/smsc.ts'

let smsc: Smsc
let makeProvider: SmppTest['makeProvider']
let stop: SmppTest['stop']
beforeEach(async () => {
  ;({ smsc, makeProvider, stop } = await startSmppTest())
})
afterEach(() => stop())

function collectReceipts(provider: Provider) {
  const receipts: Receipt[] = []
  let wake = () => {}
  provider.listen?.(
    (receipt) => {
      receipts.push(receipt)
      wake()
    },
    () => {},
  )
  return {
    receipts,
    next: () => new Promise<void>((resolve) => (wake = resolve)),
  }
}

describe('receipts over SMPP', () => {
  const text = (stat: string, id = 'id_1', err = '000') =>
    `id:${id} sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:${stat} err:${err} text:Your code`

  /** Starts a bound provider that collects its receipts. */
  async function startBound() {
    const listening = collectReceipts(makeProvider())
    await smsc.waitUntil(() => smsc.binds.length === 1)
    const deliver = (fields: Record<string, string | number | Uint8Array>) =>
      new Promise<number>((resolve) =>
        smsc
          .session()
          .deliver_sm(
            { source_addr: '31612345678', destination_addr: 'ACME', esm_class: 4, ...fields },
            (pdu) => resolve(pdu.command_status),
          ),
      )
    return { ...listening, deliver }
  }
  const bytes = (value: string) => Buffer.from(value, 'latin1')

  test.each([
    ['DELIVRD', 'delivered', null],
    ['ACCEPTD', 'sent', null],
    ['ENROUTE', 'sent', null],
    ['UNKNOWN', 'sent', null],
    ['EXPIRED', 'undelivered', 'unreachable'],
    ['UNDELIV', 'undelivered', 'unreachable'],
    ['REJECTD', 'undelivered', 'unknown'],
    ['DELETED', 'undelivered', 'unknown'],
  ] as const)('%s says %s', async (stat, status, failureClass) => {
    const { receipts, deliver } = await startBound()
    expect(await deliver({ short_message: bytes(text(stat, 'id_1', '045')) })).toBe(0)
    expect(receipts).toEqual([
      {
        messageId: 'id_1',
        requestId: null,
        status,
        failure:
          failureClass && expect.objectContaining({ class: failureClass, providerCode: `${stat} 045` }),
      },
    ])
  })

  test.each([
    ['parameters of their own', { receipted_message_id: 'id_9', message_state: 2, short_message: bytes('') }],
    [
      'parameters next to a text',
      { receipted_message_id: 'id_9', message_state: 2, short_message: bytes(text('X')) },
    ],
    ['a text in the payload', { message_payload: bytes(text('DELIVRD', 'id_9')), short_message: bytes('') }],
    ['a text of an ordinary message', { esm_class: 0, short_message: bytes(text('DELIVRD', 'id_9')) }],
    ['a text in small letters', { short_message: bytes('ID:id_9 STAT:delivrd') }],
    ['a text with data coding 1', { data_coding: 1, short_message: bytes(text('DELIVRD', 'id_9')) }],
    ['a text that ends in NUL', { short_message: bytes('stat:DELIVRD id:id_9\0') }],
  ])('are read from %s', async (_, fields) => {
    const { receipts, deliver } = await startBound()
    expect(await deliver(fields)).toBe(0)
    expect(receipts).toEqual([{ messageId: 'id_9', requestId: null, status: 'delivered', failure: null }])
  })

  test.each([
    ['an incoming SMS', { esm_class: 0, short_message: Buffer.from('STOP') }],
    // One pattern for id and state took minutes.
    [
      'a long SMS that begins like many',
      { esm_class: 0, short_message: Buffer.from(''), message_payload: Buffer.from('id:'.repeat(4_000)) },
    ],
    ['an unknown state', { short_message: Buffer.from('id:1 stat:WHATEVR') }],
    ['a receipt without an id', { short_message: Buffer.from('stat:DELIVRD') }],
    ['nothing', { short_message: Buffer.from('') }],
  ])('%s is not a receipt, and is acknowledged', async (_, fields) => {
    const { receipts, deliver } = await startBound()
    expect(await deliver(fields)).toBe(0)
    expect(receipts).toEqual([])
  })

  test('are not taken from ordinary messages of an SMSC that marks its receipts', async () => {
    const { receipts, deliver } = await startBound()
    const ordinary = (id: string) => ({ esm_class: 0, short_message: bytes(text('REJECTD', id)) })
    await deliver(ordinary('id_1'))
    await deliver({ short_message: bytes(text('DELIVRD', 'id_2')) })
    // Anyone can send this to the number of the operator.
    expect(await deliver(ordinary('id_3'))).toBe(0)
    expect(receipts.map(({ messageId }) => messageId)).toEqual(['id_1', 'id_2'])
  })

  test('are sent again if there is no listener yet', async () => {
    const provider = makeProvider()
    await sendTo(provider)
    const status = await new Promise<number>((resolve) =>
      smsc
        .session()
        .deliver_sm({ esm_class: 4, short_message: bytes(text('DELIVRD')) }, (pdu) =>
          resolve(pdu.command_status),
        ),
    )
    expect(status).toBe(0x64)
  })

  test.each([
    ['hex', 'decimal', '1A2b', '6699'],
    ['decimal', 'hex', '6699', '1a2b'],
    ['hex', 'hex', '00001A2B', '1a2b'],
    ['decimal', 'decimal', '0006699', '6699'],
    ['text', 'text', 'a-b-c', 'a-b-c'],
    ['hex', 'decimal', 'no-number', 'no-number'],
  ])(
    'match their response if its ids are %s and those of receipts %s',
    async (submitIdFormat, receiptIdFormat, submittedId, here) => {
      smsc.onSubmit((session, pdu) => session.send(pdu.response({ message_id: submittedId })))
      const provider = makeProvider({ submitIdFormat, receiptIdFormat })
      const { receipts, next } = collectReceipts(provider)
      const outcome = await sendTo(provider)
      const came = next()
      smsc.session().deliver_sm({ esm_class: 4, short_message: bytes(text('DELIVRD', here)) })
      await came
      const [receipt] = receipts
      expect(outcome).toEqual({ kind: 'accepted', messageId: receipt?.messageId ?? 'none' })
    },
  )
})
