import { expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { countByOutcome, createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'

const settings = { plans: unlimitedPlans, env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off' } }

describeEachDatabase('concurrent calls by phone', (database, kind) => {
  async function start(env = {}) {
    const service = await createTestService({
      ...settings,
      env: { ...settings.env, ...env },
      database: database(),
    })
    const otp = createOtpClient(service)
    const developer = await service.createDeveloper()
    const [application, other] = [
      await service.createApplication(developer),
      await service.createApplication(developer),
    ]
    const phone = '+14155552671'
    /** Sends a code to the phone after one that was verified: the list of the phone goes on behind it. */
    const send = async () => {
      const earlier = await otp.sendOrThrow(application, { phone })
      await otp.verify(application, earlier.requestId, await otp.getCode(earlier.requestId))
      return otp.sendOrThrow(application, { phone })
    }
    /** Sends a code of the other application, then two of this one, over which a look-up of the other passes. */
    const sendThree = async (to: string) => {
      const foreign = await otp.sendOrThrow(other, { phone: to })
      const older = await otp.sendOrThrow(application, { phone: to })
      const newest = await otp.sendOrThrow(application, { phone: to })
      return {
        older,
        code: await otp.getCode(newest.requestId),
        foreignCode: await otp.getCode(foreign.requestId),
        wrong: await otp.getWrongCode(older.requestId),
      }
    }
    return { service, otp, developer, application, other, phone, send, sendThree }
  }
  const times = <T>(count: number, call: () => Promise<T>) => Promise.all(Array.from({ length: count }, call))

  test('with the right code succeed once', async () => {
    const { otp, application, phone, send } = await start()
    const code = await otp.getCode((await send()).requestId)
    const responses = await times(4, () => otp.verifyByPhone(application, phone, code))
    expect(countByOutcome(responses)).toEqual({ '200': 1, '404 NOT_FOUND': 3 })
  })

  test('with wrong codes end the code', async () => {
    const { otp, application, phone, send } = await start()
    const wrong = await otp.getWrongCode((await send()).requestId)
    const responses = await times(7, () => otp.verifyByPhone(application, phone, wrong))
    expect(countByOutcome(responses)).toEqual({ '400 INVALID_CODE': 5, '410 ATTEMPTS_EXHAUSTED': 2 })
  })

  test('cancel once', async () => {
    const { service, application, phone, send } = await start()
    await send()
    const call = { as: application, body: { phone } }
    const responses = await times(4, () => service.request('POST', '/v1/otp/cancel', call))
    expect(countByOutcome(responses)).toEqual({ '200': 1, '404 NOT_FOUND': 3 })
  })

  // The database's clock, which SQLite has not.
  test.if(kind === 'PostgreSQL')('cancel no code that has expired by the time of the database', async () => {
    const { service, application, phone, send } = await start()
    const expiresAt = Date.parse((await send()).expiresAt)
    let now = expiresAt - 1
    Object.assign(service.clock, { now: () => now, follow: () => (now = expiresAt) })
    const canceled = await service.request('POST', '/v1/otp/cancel', { as: application, body: { phone } })
    expect(countByOutcome([canceled])).toEqual({ '404 NOT_FOUND': 1 })
  })

  const title = 'count each attempt at an older code that calls of another application have passed over'
  // A second node, which SQLite has not.
  test.if(kind === 'PostgreSQL')(title, async () => {
    const { service, otp, application, other, sendThree } = await start()
    const node = createOtpClient(await createTestService({ ...settings, database: database() }))
    for (let round = 0; round < 10; round++) {
      const phone = `+1415555267${round}`
      const { older, code, foreignCode, wrong } = await sendThree(phone)
      const [responses, byId] = await Promise.all([
        Promise.all([
          otp.verifyByPhone(application, phone, code),
          otp.verifyByPhone(application, phone, code),
          otp.verifyByPhone(other, phone, foreignCode),
        ]),
        times(3, () => node.verify(application, older.requestId, wrong)),
      ])
      expect(countByOutcome(responses)).toEqual({ '200': 2, '400 INVALID_CODE': 1 })
      expect(countByOutcome(byId)).toEqual({ '400 INVALID_CODE': 3 })
      expect((await service.store.read.otpRequests.find(older.requestId))?.attempts).toBe(4)
    }
  })

  // A second node, which SQLite has not.
  test.if(kind === 'PostgreSQL')('keep attempts at an older code while its resend is blocked', async () => {
    const { service, otp, application, other, developer, sendThree } = await start({
      OTPD_GUARD_MODE: 'enforce',
    })
    const second = await createTestService({ ...settings, database: database() })
    const node = createOtpClient(second)
    for (let round = 0; round < 10; round++) {
      const phone = `+1415555268${round}`
      const { older, code, foreignCode, wrong } = await sendThree(phone)
      const rule = { effect: 'deny', value: phone, appId: application.id }
      expect((await service.request('POST', '/v1/guard/rules', { as: developer, body: rule })).status).toBe(
        201,
      )
      service.clock.advance(31_000)
      second.clock.advance(31_000)
      const [responses, byId] = await Promise.all([
        Promise.all([
          otp.verifyByPhone(application, phone, code),
          service.request('POST', '/v1/otp/resend', { as: application, body: { phone } }),
          otp.verifyByPhone(other, phone, foreignCode),
        ]),
        times(3, () => node.verify(application, older.requestId, wrong)),
      ])
      expect(countByOutcome(responses)).toEqual({ '200': 2, '403 DESTINATION_BLOCKED': 1 })
      expect(countByOutcome(byId)).toEqual({ '400 INVALID_CODE': 3 })
      expect((await service.store.read.otpRequests.find(older.requestId))?.attempts).toBe(3)
    }
  })
})
