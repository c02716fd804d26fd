import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { requestToken } from '../../helpers/camara-token.ts'
import { guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

let service: TestService
beforeAll(async () => {
  const env = { ...guardOffEnv, OTPD_COMPAT: 'camara', OTPD_PHONE_SEND_BUDGET: 'off' }
  service = await createTestService({ plans: unlimitedPlans, env })
})
afterAll(() => service.dispose())

test('a send by CAMARA reads no more requests of the phone than can still be verified', async () => {
  const application = await service.createApplication(await service.createDeveloper())
  const send = async () => {
    const headers = {
      authorization: `Bearer ${await requestToken(service, application)}`,
      'content-type': 'application/json',
    }
    const body = { phoneNumber: '+14155550132', message: '{{code}}' }
    const path = '/one-time-password-sms/v1/send-code'
    expect((await service.request('POST', path, { headers, body })).status).toBe(200)
  }
  for (let count = 0; count < 10; count++) {
    await send()
    service.clock.advance(2 * 3_600_000)
  }
  const find = spyOn(service.store.read.otpRequests, 'find')
  await send()
  expect(find.mock.calls.length).toBeLessThanOrEqual(2)
  find.mockRestore()
})
