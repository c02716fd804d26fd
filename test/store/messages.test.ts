import { beforeAll, expect, test } from 'bun:test'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import {
  messageLeaseLeftMinMs,
  messageLeaseMs,
  type MessageClaim,
  type MessageKey,
} from '../../src/domain/model/message.ts'
import { createFairPermits, type FairPermits } from '../../src/domain/model/fair-permits.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import {
  accepted,
  createOtpOperations,
  deferred,
  receipt,
  refused,
  uncertain,
  type OtpOperations,
} from '../helpers/otp-operations.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { unsharedPermits } from '../domain/webhooks/fixture.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

describeEachDatabase('the outbox of messages', (database) => {
  let service: TestService
  let store: Store
  let application: CallingApplication
  let otp: OtpOperations
  let numbers = 0

  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans })
    const developer = await service.createDeveloper()
    application = await service.services.appAuth.authenticate(await service.createApplication(developer))
    store = service.store
    otp = worker('me')
  })
  const worker = (owner: string) => createOtpOperations({ store: service.store, clock: service.clock, owner })

  /** Sends a code, whose message is leased by its sender for the first attempt. */
  async function send(): Promise<MessageClaim> {
    const { requestId } = await otp.send(application, { phone: `+1415${2_000_000 + numbers++}` })
    return { requestId, messageNumber: 0, owner: 'me', attempt: 1 }
  }
  const find = async (key: MessageKey) => (await store.read.messages.load(key))?.message
  const findRequest = ({ requestId }: MessageKey) => store.read.otpRequests.find(requestId)
  const claim = (owner: string, key: MessageKey) =>
    worker(owner)
      .claimDue(unsharedPermits())
      .then((claimed) => claimed.find(({ requestId }) => requestId === key.requestId))

  test('says when a message may next be leased: once it is due, and its lease has ended', async () => {
    const nextDueAt = () => store.read.messages.nextDueAt()
    expect(await nextDueAt()).toBeUndefined()
    const leased = await send()
    expect(await nextDueAt()).toBe(service.clock.now() + messageLeaseMs)
    const waiting = await send()
    await otp.attempt(waiting, deferred)
    const dueAt = (await find(waiting))?.nextAttemptAt ?? 0
    expect(await nextDueAt()).toBe(dueAt)
    service.clock.advance(dueAt - service.clock.now())
    const again = await claim('me', waiting)
    if (!again) throw new Error('it was not due')
    await otp.attempt(again, accepted('second'))
    expect(await nextDueAt()).toBe((await find(leased))?.leaseUntil ?? 0)
    await otp.attempt(leased, accepted('first'))
    expect(await nextDueAt()).toBeUndefined()
  })

  test('leases a pending message to exactly one of many workers, and no leased one', async () => {
    const leased = await send()
    const waiting = await send()
    await otp.attempt(waiting, deferred)
    expect(await find(waiting)).toMatchObject({ status: 'pending', leaseOwner: null })
    service.clock.advance(2_000)
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) => worker(`other-${i}`).claimDue(unsharedPermits())),
    )
    // Its first attempt ended.
    expect(claims.flat()).toMatchObject([{ requestId: waiting.requestId, attempt: 2 }])
    expect(claims.flat()[0]).not.toHaveProperty('isInterrupted')
    expect((await find(leased))?.attempts).toBe(1)
  })

  test('gives developers turns, whose permits are limited', async () => {
    const other = await service.createDeveloper()
    const otherApplication = await service.services.appAuth.authenticate(
      await service.createApplication(other),
    )
    const busy = [await send(), await send(), await send(), await send()]
    const { requestId } = await otp.send(otherApplication, { phone: '+14155550177' })
    for (const claim of [...busy, { requestId, messageNumber: 0, owner: 'me', attempt: 1 }]) {
      service.clock.advance(1)
      await otp.attempt(claim, deferred)
    }
    service.clock.advance(2_000)
    const claimIds = async (permits: FairPermits) =>
      (await worker('other').claimDue(permits)).map((claimed) => claimed.requestId)
    expect(await claimIds(unsharedPermits(2))).toEqual([busy[0]?.requestId ?? '', requestId])
    expect(await claimIds(createFairPermits(4, 1))).toEqual(busy.slice(1, 3).map((one) => one.requestId))
    expect(await claimIds(unsharedPermits())).toHaveLength(1)
  })

  test('hands over nothing of a worker that was paused until another had the lease, or nearly so', async () => {
    const taken = await send()
    const late = await send()
    const inTime = await send()
    const paused = worker('me')
    service.clock.advance(messageLeaseMs - messageLeaseLeftMinMs)
    await paused.attempt(inTime, accepted('in time'))
    expect(paused.countDispatches()).toBe(1)
    service.clock.advance(1)
    await paused.attempt(late, accepted('late'))
    expect(paused.countDispatches()).toBe(1)
    service.clock.advance(messageLeaseLeftMinMs)
    expect(await claim('other', taken)).toMatchObject({ attempt: 2, isInterrupted: true })
    await paused.attempt(taken, accepted('of a zombie'))
    expect(paused.countDispatches()).toBe(1)
    expect(await find(taken)).toMatchObject({ status: 'pending', leaseOwner: 'other' })
  })

  test('leases a message again when its lease has expired, and ignores the first worker', async () => {
    const first = await send()
    service.clock.advance(messageLeaseMs)
    const second = await claim('other', first)
    expect(second?.attempt).toBe(2)
    if (!second) return
    const other = worker('other')
    await Promise.all([
      otp.attempt(first, accepted('late')),
      other.attempt(second, accepted('right', 'spare')),
    ])
    expect(await find(first)).toMatchObject({ status: 'sent', messageId: 'right', leaseUntil: null })
    expect(await findRequest(first)).toMatchObject({ deliveryStatus: 'sent', provider: 'spare' })
    // Nor does it fail the request, or end the attempt a second time.
    expect(await otp.attempt(first, refused)).toBeUndefined()
    expect(await other.attempt(second, refused)).toBeUndefined()
    expect(await findRequest(first)).toMatchObject({ status: 'pending', deliveryStatus: 'sent' })
  })

  test('ignores the answer of a provider that came when another worker had the lease', async () => {
    const first = await send()
    await otp.attemptSlowly(first, refused, async () => {
      service.clock.advance(messageLeaseMs)
      expect(await claim('other', first)).toMatchObject({ attempt: 2 })
    })
    expect(await find(first)).toMatchObject({ status: 'pending', leaseOwner: 'other', attempts: 2 })
    expect(await findRequest(first)).toMatchObject({ status: 'pending' })
  })

  test('keeps excluded providers and the time of the next attempt', async () => {
    const message = await send()
    await otp.attempt(message, { ...deferred, excluded: ['sms/main', 'sms/spare'], waitMs: 5_000 })
    expect(await find(message)).toMatchObject({ channels: ['sms'], excluded: ['sms/main', 'sms/spare'] })
    service.clock.advance(4_999)
    expect(await claim('other', message)).toBeUndefined()
    service.clock.advance(1)
    expect(await claim('other', message)).toBeDefined()
  })

  test('fails the request when no provider takes its only message, and keeps it while another is on its way', async () => {
    const only = await send()
    expect(await otp.attempt(only, refused)).toMatchObject({ rejected: { code: 'DELIVERY_FAILED' } })
    expect(await findRequest(only)).toMatchObject({ status: 'failed', failureReason: 'delivery_failed' })

    const first = await send()
    await otp.attempt(first, accepted(null))
    service.clock.advance(31_000)
    await otp.resend(application, { requestId: first.requestId })
    await otp.attempt({ ...first, messageNumber: 1 }, refused)
    expect(await findRequest(first)).toMatchObject({ status: 'pending', deliveryStatus: 'undelivered' })
  })

  test('finds the message of a receipt by message id, otherwise by request id', async () => {
    const first = await send()
    await otp.attempt(first, accepted('by-id'))
    service.clock.advance(31_000)
    await otp.resend(application, { requestId: first.requestId })
    await otp.attempt({ ...first, messageNumber: 1 }, accepted(null))
    const findMessageNumber = async (provider: string, messageId: string | null, requestId: string | null) =>
      (await store.read.messages.findForReceipt(provider, { messageId, requestId }))?.messageNumber
    expect(await findMessageNumber('main', 'by-id', null)).toBe(0)
    expect(await findMessageNumber('main', 'two', first.requestId)).toBe(1)
    expect(await findMessageNumber('main', null, first.requestId)).toBe(1)
    expect(await findMessageNumber('spare', 'by-id', first.requestId)).toBeUndefined()
    expect(await findMessageNumber('main', 'two', null)).toBeUndefined()
  })

  test('accepts one final status per message, the first that arrives', async () => {
    const message = await send()
    await otp.attempt(message, accepted('final'))
    // Closed, so that the message is not sent again through another provider.
    await otp.cancel(application, message.requestId)
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        otp.receive(receipt(index % 2 === 0 ? 'delivered' : 'undelivered', 'final')),
      ),
    )
    const [first, request] = [await find(message), await findRequest(message)]
    expect(['delivered', 'undelivered']).toContain(first?.status ?? '')
    expect(String(request?.deliveryStatus)).toBe(String(first?.status))
    const log = await store.read.events.list(application.developerId, { limit: 3 })
    const types = log.filter(({ requestId }) => requestId === message.requestId).map(({ type }) => type)
    expect(types).toEqual([`otp.${first?.status}`, 'otp.canceled', 'otp.sent'] as typeof types)
    for (const status of ['sent', 'delivered', 'undelivered'] as const)
      await otp.receive(receipt(status, 'final'))
    expect([await find(message), await findRequest(message)]).toEqual([first, request])
  })

  test('moves an uncertain message forwards only: unknown, sent, delivered', async () => {
    const message = await send()
    await otp.attempt(message, uncertain)
    const states = [(await find(message))?.status]
    for (const status of ['sent', 'sent', 'delivered', 'sent', 'undelivered'] as const) {
      await otp.receive({ ...receipt(status, 'late-id'), requestId: message.requestId })
      states.push((await find(message))?.status)
    }
    expect(states).toEqual(['unknown', 'sent', 'sent', 'delivered', 'delivered', 'delivered'])
    expect(await find(message)).toMatchObject({ messageId: 'late-id' })
  })

  test('reopens an undelivered message once for the next provider', async () => {
    const message = await send()
    await otp.attempt(message, accepted('lost'))
    await Promise.all(Array.from({ length: 5 }, () => otp.receive(receipt('undelivered', 'lost'))))
    expect(await find(message)).toMatchObject({ status: 'pending', provider: null, excluded: ['sms/main'] })
    const claimed = await claim('other', message)
    expect(claimed?.attempt).toBe(2)
    if (claimed) await worker('other').attempt(claimed, accepted('found', 'spare'))
    await otp.receive(receipt('delivered', 'found'), 'spare')
    expect(await findRequest(message)).toMatchObject({ deliveryStatus: 'delivered', provider: 'spare' })
  })

  test('names an attempt that did not end until a provider is asked again', async () => {
    const message = await send()
    await store.write((tx) => tx.messages.releaseAll())
    for (let attempt = 2; attempt < 4; attempt++) {
      const claimed = await claim('other', message)
      expect(claimed).toMatchObject({ attempt, isInterrupted: true })
      // Every circuit is open.
      if (claimed) await worker('other').attempt(claimed, deferred)
      service.clock.advance(((await find(message))?.nextAttemptAt ?? 0) - service.clock.now())
    }
    const asked = await claim('other', message)
    if (!asked) throw new Error('it was not due')
    await worker('other').attempt(asked, accepted('late'))
    expect((await find(message))?.leaseOwner).toBeNull()
  })

  test('releases the leases of a former process, and deletes old messages', async () => {
    const message = await send()
    await store.write((tx) => tx.messages.releaseAll())
    expect(await claim('other', message)).toMatchObject({ attempt: 2, isInterrupted: true })
    const now = service.clock.now()
    while (await store.write((tx) => tx.messages.deleteOldest(now, 3)));
    expect(await find(message)).toBeUndefined()
  })
})
