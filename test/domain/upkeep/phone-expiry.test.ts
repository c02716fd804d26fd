import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hashOwnedPhone } from '../../../src/domain/model/phone-record.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createPurger } from '../../helpers/retention.ts'
import { createTestService, type TestApplication, type TestService } from '../../helpers/service.ts'

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs

describeEachDatabase('the retention of the records of phones', (database) => {
  let service: TestService
  let otp: OtpClient
  let app: TestApplication
  let developerId: string
  let purge: ReturnType<typeof createPurger>
  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    const developer = await service.createDeveloper()
    developerId = developer.developer.id
    app = await service.createApplication(developer)
    purge = createPurger(service)
  })
  afterAll(() => service.dispose())

  const findRecord = (phone: string) =>
    service.store.read.phones.find(hashOwnedPhone(testKeys, { developerId, environment: 'live', phone }))
  const previous = (id: string) => service.store.read.otpRequests.findPrevious(id)
  const send = async (phone: string, body: object = {}) =>
    (await otp.sendOrThrow(app, { phone, ...body })).requestId

  test('cuts the links to requests whose number became a pseudonym, and keeps the others', async () => {
    const phone = '+14155557001'
    const old = [await send(phone), await send(phone)]
    service.clock.advance(20 * dayMs)
    const young = [await send(phone), await send(phone)]
    service.clock.advance(11 * dayMs)
    await purge()
    expect((await findRecord(phone))?.newestRequest).toBe(young[1] ?? '')
    expect(await previous(young[1] ?? '')).toBe(young[0] ?? '')
    expect(await previous(young[0] ?? '')).toBeUndefined()
    expect(await previous(old[1] ?? '')).toBeUndefined()
    service.clock.advance(20 * dayMs)
    await purge()
    expect(await findRecord(phone)).toBeUndefined()
  })

  test('clears the contexts of old requests', async () => {
    const requestId = await send('+14155557002', { deviceId: 'device' })
    service.clock.advance(31 * dayMs)
    await purge()
    expect((await service.store.read.otpRequests.find(requestId))?.contexts).toEqual([])
  })

  test('keeps the contexts and the last verification for 180 days, under the hash alone', async () => {
    const phone = '+14155557003'
    const sender = { deviceId: 'device' }
    const requestId = await send(phone, sender)
    await otp.verifyRightCode(app, requestId)
    service.clock.advance(31 * dayMs)
    await purge()
    const record = await findRecord(phone)
    expect(record).toMatchObject({ phone: expect.stringMatching(/^anon_/), newestRequest: null })
    expect(record?.contexts).toHaveLength(1)
    const later = await send(phone, sender)
    expect((await service.store.read.otpRequests.find(later))?.startedBy).toBe('known')
    service.clock.advance(149 * dayMs)
    await purge()
    expect((await findRecord(phone))?.contexts).toEqual([])
    expect((await findRecord(phone))?.identity).toMatchObject({ verificationCount: 1 })
  })

  test('deletes records of unverified phones once their budgets are full, and no sooner', async () => {
    const phone = '+14155557004'
    const requestId = await send(phone)
    await otp.verifyWrongCode(app, requestId)
    service.clock.advance(30 * dayMs)
    await purge()
    expect((await findRecord(phone))?.usages.stranger.checks).not.toBeNull()
    service.clock.advance(2 * dayMs)
    await purge()
    expect(await findRecord(phone)).toBeUndefined()
  })

  test('scans them once a day, whichever process does', async () => {
    const phone = '+14155557900'
    service.clock.set(Math.ceil(service.clock.now() / dayMs) * dayMs + hourMs)
    await send(phone)
    service.clock.advance(30 * dayMs - hourMs)
    await purge()
    service.clock.advance(12 * hourMs)
    // As after a restart, or at the next leader: old enough, and yet not scanned.
    await createPurger(service)()
    expect((await findRecord(phone))?.phone).toBe(phone)
    service.clock.advance(12 * hourMs)
    await purge()
    expect((await findRecord(phone))?.phone).not.toBe(phone)
  })
})
