import { beforeAll, expect, test } from 'bun:test'
import type { Failure } from '../../src/domain/model/delivery.ts'
import type { ClaimedMessage, MessageKey, MessageOutcome } from '../../src/domain/model/message.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'
import { testKeys } from '../helpers/keys.ts'

const start = 1_800_000_000_000
const nothing: MessageOutcome = {
  status: 'pending',
  provider: null,
  messageId: null,
  failure: null,
  nextAttemptAt: start,
  excluded: [],
}
const sent = (provider: string, messageId: string | null): MessageOutcome => ({
  ...nothing,
  status: 'sent',
  provider,
  messageId,
  nextAttemptAt: null,
})

describeEachDatabase('the outbox of messages', (database) => {
  let store: Store
  let ids = 0
  beforeAll(async () => {
    store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'dev', 'prj', 'app')
  })

  /** Inserts a message, leased by its sender for the first attempt. */
  async function insert(message = 0, requestId = `otp_${ids++}`): Promise<ClaimedMessage> {
    const key = { requestId, message }
    await store.write(async (tx) => {
      if (message === 0) await tx.otpRequests.insert(createRequest(requestId))
      await tx.otpDeliveries.insert({ ...key, channels: ['sms', 'voice'] }, 'me', start, start + 20_000)
    })
    return { ...key, owner: 'me', attempt: 1 }
  }
  const claim = (owner: string, now: number, limit = 100) =>
    store.write((tx) => tx.otpDeliveries.claim({ owner, now, leaseUntil: now + 20_000, limit }))
  const finish = (claimed: ClaimedMessage, outcome: MessageOutcome) =>
    store.write((tx) => tx.otpDeliveries.finish(claimed, outcome, start))
  const find = (key: MessageKey) => store.read.otpDeliveries.find(key)

  test('leases a pending message to exactly one of many workers, and no leased one', async () => {
    const leased = await insert()
    const waiting = await insert()
    await finish(waiting, nothing)
    const racingClaims = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(`other-${index}`, start)),
    )
    expect(racingClaims.flat()).toMatchObject([{ requestId: waiting.requestId, attempt: 2 }])
    expect((await find(leased))?.attempts).toBe(1)
  })

  test('leases a message again when its lease has expired, and ignores the first worker', async () => {
    const first = await insert()
    const [second] = (await claim('other', start + 20_000)).filter(
      ({ requestId }) => requestId === first.requestId,
    )
    expect(second?.attempt).toBe(2)
    expect(await finish(first, sent('main', 'late'))).toBe(false)
    if (second) expect(await finish(second, sent('main', 'right'))).toBe(true)
    expect(await find(first)).toMatchObject({ status: 'sent', messageId: 'right', leaseUntil: null })
  })

  test('keeps excluded providers and the time of the next attempt', async () => {
    const message = await insert()
    await finish(message, { ...nothing, nextAttemptAt: start + 5_000, excluded: ['sms/main', 'sms/spare'] })
    expect(await find(message)).toMatchObject({
      channels: ['sms', 'voice'],
      excluded: ['sms/main', 'sms/spare'],
    })
    const isClaimable = async (now: number) =>
      (await claim('other', now)).some(({ requestId }) => requestId === message.requestId)
    expect([await isClaimable(start + 4_999), await isClaimable(start + 5_000)]).toEqual([false, true])
  })

  test('finds the message of a receipt by message id, otherwise by request id', async () => {
    const first = await insert()
    const second = await insert(1, first.requestId)
    await finish(first, sent('main', 'one'))
    await finish(second, sent('main', null))
    const findMessageNumber = async (provider: string, messageId: string | null, requestId: string | null) =>
      (await store.read.otpDeliveries.findForReceipt(provider, { messageId, requestId }))?.message
    expect(await findMessageNumber('main', 'one', null)).toBe(0)
    expect(await findMessageNumber('main', 'two', first.requestId)).toBe(1)
    expect(await findMessageNumber('main', null, first.requestId)).toBe(1)
    expect(await findMessageNumber('spare', 'one', first.requestId)).toBeUndefined()
    expect(await findMessageNumber('main', 'two', null)).toBeUndefined()
  })

  test('accepts one final status per message, the first that arrives', async () => {
    const message = await insert()
    await finish(message, sent('main', 'one'))
    const failure: Failure = { class: 'unreachable', permanent: false, at: 'number', providerCode: null }
    const receiveReceipt = (status: 'sent' | 'delivered' | 'undelivered') =>
      store.write((tx) =>
        tx.otpDeliveries.receive(
          message,
          'main',
          { messageId: 'one', requestId: null, status, failure: status === 'undelivered' ? failure : null },
          start,
        ),
      )
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => receiveReceipt(index % 2 === 0 ? 'delivered' : 'undelivered')),
    )
    expect(results.filter(Boolean)).toHaveLength(1)
    expect(await receiveReceipt('sent')).toBe(false)
  })

  test('releases the leases of a former process, and deletes old messages', async () => {
    const message = await insert()
    await store.write((tx) => tx.otpDeliveries.releaseAll())
    expect(await claim('other', start)).toContainEqual(
      expect.objectContaining({ requestId: message.requestId }),
    )
    while (await store.write((tx) => tx.otpDeliveries.deleteOldest(start, 3)));
    expect(await find(message)).toBeUndefined()
  })
})

const createRequest = (id: string) => createPendingRequest(start, { id, deliveryStatus: 'queued' })
