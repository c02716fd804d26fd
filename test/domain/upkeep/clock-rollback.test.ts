import { expect, test } from 'bun:test'
import { repairAfterClockRollback } from '../../../src/domain/upkeep/clock-rollback.ts'
import { withUsage } from '../../../src/domain/model/phone-record.ts'
import { chargeRateLimit } from '../../../src/domain/limits/rate-limit.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase, registerShortIds } from '../../helpers/databases.ts'
import { createOtpClient } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'
import { testKeys } from '../../helpers/keys.ts'

const dayMs = 24 * 60 * 60 * 1000

describeEachDatabase('the clock-rollback repair', (database) => {
  test('clamps rate limit admissions to now, so that a limit neither opens early nor outlasts its window', async () => {
    const store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'app')
    const limit = { policy: 'webhook-test', subject: 'app', limit: 2, windowMs: 60_000 } as const
    const clock = testClock()
    await store.write((tx) => chargeRateLimit(tx, limit, clock.now(), 'APP_RATE'))
    await store.write((tx) => chargeRateLimit(tx, limit, clock.now(), 'APP_RATE'))
    clock.advance(-2 * 60 * 60 * 1000)
    await repairAfterClockRollback({ store, clock })
    const admitAgain = () => store.write((tx) => chargeRateLimit(tx, limit, clock.now(), 'APP_RATE'))
    expect(admitAgain()).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 60 })
    clock.advance(60_000)
    expect(await admitAgain()).toMatchObject({ remaining: 1 })
  })

  test('moves the end of codes, locks, retries and sessions earlier by the size of the rollback', async () => {
    const service = await createTestService({ database: database() })
    const { store } = service
    const ada = await service.createDeveloper()
    await createOtpClient(service).send(await service.createApplication(ada))
    const { otpRequests, refreshTokens } = database().tables
    const sentAt = service.clock.now()
    const lockedUntil = sentAt + dayMs
    const [phone] = await store.read.phones.scan(-1, 1)
    if (!phone) throw new Error('no record')
    const session = {
      family: 'f',
      developerId: ada.developer.id,
      createdAt: sentAt,
      expiresAt: sentAt + 30 * dayMs,
      sessionEndsAt: sentAt + 90 * dayMs,
    }
    await store.write(async (tx) => {
      const checks = { refilledAt: sentAt + 3_600_000, consecutiveFailures: 100, lockedUntil }
      const loaded = await tx.phones.load(phone.hash, phone.record)
      await tx.phones.save(loaded, withUsage(loaded.record, 'stranger', { checks }))
      await tx.refreshTokens.insert({ ...session, hash: 'h', usedAt: sentAt })
    })
    const clock = testClock(sentAt - 7_200_000)
    expect(await repairAfterClockRollback({ store, clock })).toBe(7_200_000)
    // A second run finds nothing left to repair.
    expect(await repairAfterClockRollback({ store, clock })).toBe(0)

    const { read } = database()
    const [request] = await read.select().from(otpRequests)
    expect(request).toMatchObject({
      sentAt: clock.now(),
      expiresAt: clock.now() + 300_000,
      createdAt: sentAt,
    })
    const [repaired] = await store.read.phones.scan(-1, 1)
    expect(repaired?.record).toMatchObject({
      lastSentAt: clock.now(),
      usages: {
        stranger: {
          sends: [clock.now()],
          checks: { refilledAt: clock.now() + 3_600_000, lockedUntil: clock.now() + dayMs },
        },
      },
    })
    expect(await read.select().from(refreshTokens)).toMatchObject([
      {
        createdAt: clock.now(),
        usedAt: clock.now(),
        expiresAt: clock.now() + 30 * dayMs,
        sessionEndsAt: clock.now() + 90 * dayMs,
      },
    ])
    await service.dispose()
  })

  test('changes nothing after downtime or when the clock was set forward', async () => {
    const service = await createTestService({ database: database() })
    const application = await service.createApplication(await service.createDeveloper())
    await createOtpClient(service).send(application)
    const before = await database().read.select().from(database().tables.otpRequests)
    service.clock.advance(7_200_000)
    expect(await repairAfterClockRollback(service)).toBe(0)
    expect(await database().read.select().from(database().tables.otpRequests)).toEqual(before)
    await service.dispose()
  })
})
