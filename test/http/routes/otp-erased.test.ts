import { expect, test } from 'bun:test'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'

describeEachDatabase('a code whose phone was erased', (database) => {
  test('is canceled for every call, and other developers notice nothing of these calls', async () => {
    const service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    const otp = createOtpClient(service)
    const eve = await service.createDeveloper()
    const ofEve = await service.createApplication(eve)
    const ofAda = await service.createApplication(await service.createDeveloper())
    const phone = '+14155550123'
    const { requestId } = await otp.sendOrThrow(ofEve, { phone })
    await service.request('DELETE', `/v1/users/${encodeURIComponent(phone)}?erase=true`, { as: eve })
    const calls = Array.from({ length: 8 }, async (_, index) => {
      const answers = await Promise.all([
        otp.resend(ofEve, requestId),
        otp.verify(ofEve, requestId, '123456'),
        otp.cancel(ofEve, requestId),
        otp.send(ofAda, { phone: `+1415555${1000 + index}` }),
      ])
      return answers.map(({ status, error }) => String(error?.code ?? status))
    })
    const expected = ['OTP_CANCELED', 'OTP_CANCELED', 'OTP_CANCELED', '201']
    expect(await Promise.all(calls)).toEqual(calls.map(() => expected))
    await service.dispose()
  }, 120_000)
})
