import { beforeAll, beforeEach, expect, test } from 'bun:test'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import { ServiceError } from '../../src/domain/model/errors.ts'
import { attemptsMax } from '../../src/domain/model/code.ts'
import { readOpened } from '../helpers/sealed-rows.ts'
import { describeEachDatabase, raceRounds } from '../helpers/databases.ts'
import { accepted, createOtpOperations, type OtpOperations } from '../helpers/otp-operations.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

// On SQLite the calls of a test share one transaction; on PostgreSQL they wait for each other's locks.
describeEachDatabase('concurrent operations on one request', (database, kind) => {
  let service: TestService
  let application: CallingApplication
  let otp: OtpOperations
  let id: string
  let numbers = 0

  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans })
    const developer = await service.createDeveloper()
    application = await service.services.appAuth.authenticate(await service.createApplication(developer))
    otp = createOtpOperations({ store: service.store, clock: service.clock })
  })
  const newPhone = () => `+1415${2_000_000 + numbers++}`
  beforeEach(async () => {
    id = (await otp.send(application, { phone: newPhone() })).requestId
  })

  const find = () => service.store.read.otpRequests.find(id)
  const verify = async (distance: number) => otp.verify(application, id, await otp.code(id, distance))

  /** Runs calls at once. @returns for each of them 'ok', or the code and the reason of its refusal */
  async function runTogether(calls: ReadonlyArray<() => Promise<unknown>>): Promise<string[]> {
    const settled = await Promise.allSettled(calls.map((call) => call()))
    return settled.map((one) => {
      if (one.status === 'fulfilled') return 'ok'
      const error: unknown = one.reason
      if (!(error instanceof ServiceError)) throw error
      return [error.code, error.reason].filter(Boolean).join(' ')
    })
  }
  const rowsOf = async (table: 'events' | 'messages') =>
    (await readOpened(database(), table)).filter(({ requestId }) => requestId === id)
  const eventTypes = async () => (await rowsOf('events')).map(({ type }) => String(type)).toSorted()

  test('compare a code five times, with wrong and right ones in any order', async () => {
    for (const right of kind === 'PGlite' ? [0, 4, 5] : [0, 1, 2, 3, 4, 5, 6]) {
      id = (await otp.send(application, { phone: newPhone() })).requestId
      const codes = await Promise.all(
        Array.from({ length: 7 }, (_, i) => otp.code(id, i === right ? 0 : i + 1)),
      )
      const calls = codes.map((code) => () => otp.verify(application, id, code))
      // On a PostgreSQL server calls overtake each other.
      const outcomes =
        kind === 'PostgreSQL'
          ? (await Array.fromAsync(calls, (call) => runTogether([call]))).flat()
          : await runTogether(calls)
      const wrong = Array(Math.min(right, attemptsMax)).fill('INVALID_CODE')
      const rest = 7 - wrong.length
      const isVerified = right < attemptsMax
      expect(outcomes).toEqual([
        ...wrong,
        ...(isVerified
          ? ['ok', ...Array(rest - 1).fill('ALREADY_VERIFIED')]
          : Array(rest).fill('ATTEMPTS_EXHAUSTED')),
      ])
      expect(await find()).toMatchObject(
        isVerified
          ? { status: 'verified', attempts: right + 1, verifiedAt: service.clock.now() }
          : { status: 'failed', failureReason: 'max_attempts', attempts: 5, verifiedAt: null },
      )
      expect(await eventTypes()).toEqual(
        [
          'otp.sent',
          ...wrong.map(() => 'otp.attempt_failed'),
          isVerified ? 'otp.verified' : 'otp.failed',
        ].toSorted(),
      )
    }
  })

  test('tell each wrong code how many attempts are left', async () => {
    const settled = await Promise.allSettled(Array.from({ length: 5 }, () => verify(1)))
    const left = settled.map((one) => one.status === 'rejected' && one.reason.metadata.attemptsRemaining)
    expect(left.toSorted()).toEqual([0, 1, 2, 3, 4])
  })

  test('close it once, whichever comes first', async () => {
    for (let round = 0; round < raceRounds(kind) / 10; round++) {
      id = (await otp.send(application, { phone: newPhone() })).requestId
      service.clock.advance(31_000)
      const code = await otp.code(id)
      const calls = [
        () => otp.resend(application, { requestId: id }),
        () => otp.verify(application, id, code),
        () => otp.cancel(application, id),
      ]
      const rotated = [...calls.slice(round % 3), ...calls.slice(0, round % 3)]
      const outcomes = await runTogether([...rotated, ...rotated])
      const request = await find()
      expect(['verified', 'canceled']).toContain(request?.status ?? '')
      const closed = request?.status === 'verified' ? 'ALREADY_VERIFIED' : 'OTP_CANCELED'
      const resends = request?.resends ?? 0
      expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(1 + resends)
      // The second resend comes too soon after the first, unless the request was closed before it.
      const tooSoon = outcomes.filter((outcome) => outcome === 'RATE_LIMITED RESEND_TOO_SOON').length
      expect(tooSoon).toBeLessThanOrEqual(resends)
      expect(outcomes.filter((outcome) => outcome === closed)).toHaveLength(5 - resends - tooSoon)
      const messages = await rowsOf('messages')
      expect(messages.map(({ messageNumber }) => messageNumber).toSorted()).toEqual(
        resends === 1 ? [0, 1] : [0],
      )
      const sent = Array.from({ length: 1 + resends }, () => 'otp.sent')
      expect(await eventTypes()).toEqual([...sent, `otp.${request?.status}`].toSorted())
    }
  })

  test('resend it once, and void the message that waits', async () => {
    // The sender of the first message died; its lease has expired.
    service.clock.advance(31_000)
    const outcomes = await runTogether(
      Array.from({ length: 10 }, () => () => otp.resend(application, { requestId: id })),
    )
    expect(outcomes.toSorted()).toEqual(['ok', ...Array(9).fill('RATE_LIMITED RESEND_TOO_SOON')].toSorted())
    expect(await find()).toMatchObject({ resends: 1, sentAt: service.clock.now() })
    const messages = (await rowsOf('messages')).map(({ messageNumber, status }) => [messageNumber, status])
    expect(messages.toSorted()).toEqual([
      [0, 'void'],
      [1, 'pending'],
    ])
  })

  test('change nothing of one that is closed, and expire one whose time is over once', async () => {
    const closed = id
    await otp.cancel(application, closed)
    const before = await find()
    const guesses = await runTogether(Array.from({ length: 10 }, (_, i) => () => verify(i % 2)))
    expect(guesses).toEqual(Array(10).fill('OTP_CANCELED'))
    expect(await find()).toEqual(before)

    id = (await otp.send(application, { phone: newPhone() })).requestId
    service.clock.advance(300_000)
    const late = await runTogether([
      ...Array.from({ length: 10 }, (_, i) => () => verify(i % 2)),
      () => otp.expireRequests(),
      () => otp.resend(application, { requestId: id }),
      () => otp.cancel(application, id),
    ])
    expect(late.toSorted()).toEqual([...Array(12).fill('OTP_EXPIRED'), 'ok'].toSorted())
    expect(await find()).toMatchObject({ status: 'expired', attempts: 0 })
    expect(await eventTypes()).toEqual(['otp.expired', 'otp.sent'])
  })

  test('keep the budget of one phone, and the list of its requests', async () => {
    const phone = newPhone()
    const outcomes = await runTogether(
      Array.from({ length: 30 }, () => () => otp.send(application, { phone })),
    )
    expect(outcomes.toSorted()).toEqual([
      ...Array(25).fill('RATE_LIMITED PHONE_SEND_BUDGET'),
      ...Array(5).fill('ok'),
    ])
    const rows = (await readOpened(database(), 'otpRequests')).filter((row) => row['phone'] === phone)
    expect(rows).toHaveLength(5)
    // Each names the one before it, and the record of the phone the newest.
    const [record] = (await readOpened(database(), 'phones')).filter((row) => row['phone'] === phone)
    const listed: unknown[] = []
    let next = record?.['newestRequest']
    while (next) {
      listed.push(next)
      next = rows.find(({ id }) => id === next)?.['previousRequest']
    }
    expect(listed.toSorted()).toEqual(rows.map(({ id }) => id).toSorted())
  })

  test('end an attempt to deliver it in any order with a verification', async () => {
    const code = await otp.code(id)
    await Promise.all([otp.verify(application, id, code), otp.attempt(otp.firstClaim(id), accepted('one'))])
    const [message] = await rowsOf('messages')
    // Void if the code was verified before the attempt began.
    expect(['sent', 'void']).toContain(message?.['status'] as string)
    const isSent = message?.['status'] === 'sent'
    expect(message).toMatchObject({ messageId: isSent ? 'one' : null, leaseOwner: null })
    expect(await find()).toMatchObject({ status: 'verified', deliveryStatus: isSent ? 'sent' : 'queued' })
    expect(otp.errors).toEqual([])
  })
})
